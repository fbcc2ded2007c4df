package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// readers has resources that are read while they are sent.
type readers struct {
	_ struct {
		Text mcpkit.Resource `uri:"r://text" mime:"text/plain"`
		Blob mcpkit.Resource `uri:"r://blob"`
		Nil  mcpkit.Resource `uri:"r://nil"`
		Slow mcpkit.Resource `uri:"r://slow" mime:"text/plain" timeout:"1h"`
	}
	closed int
	text   string
}

type closing struct {
	io.Reader
	close func()
}

func (c closing) Close() error { c.close(); return nil }

func (r *readers) Text() io.Reader {
	// One byte at a time: characters are cut everywhere.
	return closing{iotest.OneByteReader(strings.NewReader(r.text)), func() { r.closed++ }}
}
func (r *readers) Blob() (io.ReadCloser, error) {
	return closing{bytes.NewReader(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100_000)...)), func() { r.closed++ }}, nil
}
func (r *readers) Nil() io.Reader { return nil }
func (r *readers) Slow(ctx context.Context) io.Reader {
	return closing{readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return copy(p, "read under the call's context"), io.EOF
	}), func() { r.closed++ }}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// readStreamed reads a resource and returns the response as it goes over the wire.
func readStreamed(t *testing.T, p *peer, uri string) ([]byte, error) {
	t.Helper()
	resp := p.rpc(t.Context(), p.request("resources/read", `{"uri":"`+uri+`"}`))
	require.Nil(t, resp.Error)
	var wire bytes.Buffer
	err := jsonrpc.WriteResponse(&wire, resp)
	return wire.Bytes(), err
}

func contentsIn(t *testing.T, wire []byte) protocol.ResourceContents {
	var message struct {
		Result protocol.ReadResourceResult `json:"result"`
	}
	require.NoError(t, json.Unmarshal(wire, &message), "%s", wire)
	require.Len(t, message.Result.Contents, 1)
	return message.Result.Contents[0]
}

func TestReadersAreSentAsTheyAreRead(t *testing.T) {
	r := &readers{text: "a \"quoted\" line\n" + strings.Repeat("é€😀", 20_000) + "\x00 end"}
	srv, outer := newServer(t, r), newServer(t, nil, mcpkit.Name("readers", "0.0.0"))
	outer.MustMount("", srv)
	for _, p := range []*peer{modern(t, srv), modern(t, outer), legacy(t, srv, protocol.V20250618)} {
		r.closed = 0
		wire, err := readStreamed(t, p, "r://text")
		require.NoError(t, err)
		require.Equal(t, r.text, *contentsIn(t, wire).Text)
		require.Equal(t, p.session == nil, bytes.HasSuffix(wire, []byte(`"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"readers","version":"0.0.0"}}}}`)))
		require.Equal(t, 1, r.closed)
	}
	t.Run("the media type is found in the first bytes", func(t *testing.T) {
		wire, err := readStreamed(t, modern(t, srv), "r://blob")
		require.NoError(t, err)
		c := contentsIn(t, wire)
		require.Equal(t, "image/png", c.MIMEType)
		require.Len(t, c.Blob, 100_008)
	})
	t.Run("bytes that are no UTF-8 become replacement characters", func(t *testing.T) {
		begin := strings.Repeat("a", 70_000) // that is sent before the rest is read
		r.text = begin + "b\xffcd\xe2\x82"
		wire, err := readStreamed(t, modern(t, srv), "r://text")
		require.NoError(t, err)
		require.Equal(t, begin+"b\uFFFDcd\uFFFD\uFFFD", *contentsIn(t, wire).Text)
	})
	t.Run("the context of the call lasts until the reader is closed", func(t *testing.T) {
		wire, err := readStreamed(t, modern(t, srv), "r://slow")
		require.NoError(t, err)
		require.Equal(t, "read under the call's context", *contentsIn(t, wire).Text)
	})
	t.Run("nil is not found", func(t *testing.T) {
		require.Equal(t, jsonrpc.CodeInvalidParams, modern(t, srv).fails("resources/read", `{"uri":"r://nil"}`).Code)
	})
	t.Run("a response that nobody sends is closed when the request ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		closed := make(chan struct{})
		srv := newServer(t, nil, mcpkit.Items(mcpkit.NewResource("r://x", "x", func() io.Reader {
			return closing{strings.NewReader(""), func() { close(closed) }}
		})))
		p := modern(t, srv)
		p.rpc(ctx, p.request("resources/read", `{"uri":"r://x"}`))
		cancel()
		<-closed
	})
}

// zeros is n zero bytes.
type zeros int64

func (z *zeros) Read(p []byte) (int, error) {
	if *z == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), int64(*z))
	clear(p[:n])
	*z -= zeros(n)
	return int(n), nil
}

// counter counts what is written.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func TestMemoryDoesNotGrowWithTheSizeOfAReader(t *testing.T) {
	const size = 64 << 20
	srv := newServer(t, nil)
	require.NoError(t, srv.Add(mcpkit.NewResource("r://zeros", "zeros", func() io.Reader { z := zeros(size); return &z }).MIME("application/octet-stream")))
	p := modern(t, srv)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp := p.rpc(t.Context(), p.request("resources/read", `{"uri":"r://zeros"}`))
	var n counter
	require.NoError(t, jsonrpc.WriteResponse(&n, resp))
	runtime.ReadMemStats(&after)
	require.Greater(t, int64(n), int64(base64.StdEncoding.EncodedLen(size)))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "bytes allocated for a resource of 64 MiB")
}
