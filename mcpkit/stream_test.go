package mcpkit_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
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

const (
	secretDSN = "dsn=postgres://root:hunter2@db"
	sentSoFar = 200 << 10 // more than is read before a response begins
)

// breaking has resources whose readers fail.
type breaking struct {
	_ struct {
		Text    mcpkit.Resource `uri:"b://{what}" params:"what" mime:"text/plain" timeout:"0"`
		Limited mcpkit.Resource `uri:"limited://{what}" params:"what" mime:"text/plain" timeout:"1s"`
	}
	stuck chan struct{} // closed to let readers return that ignore everything else
}

func (b *breaking) Limited(what string) (io.Reader, error) { return b.Text(what) }

func (b *breaking) Text(what string) (io.Reader, error) {
	kind, late := strings.CutPrefix(what, "late-")
	var fails io.Reader
	switch kind {
	case "error":
		fails = iotest.ErrReader(errors.New(secretDSN))
	case "told":
		fails = iotest.ErrReader(mcpkit.Errorf("the file is gone"))
	case "panic":
		fails = readerFunc(func([]byte) (int, error) { panic(secretDSN) })
	case "nothing":
		fails = readerFunc(func([]byte) (int, error) { return 0, nil })
	case "stuck":
		fails = readerFunc(func([]byte) (int, error) { <-b.stuck; return 0, io.EOF })
	case "small":
		fails = strings.NewReader("a few words")
	default:
		return nil, mcpkit.ErrNotFound
	}
	if late {
		fails = io.MultiReader(strings.NewReader(strings.Repeat("x", sentSoFar)), fails)
	}
	return fails, nil
}

// journal keeps what is logged.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

type entry struct {
	Level, Msg, Ref, Method, Name, Error, Stack string
}

// take returns what was logged since the last take.
func (j *journal) take(t *testing.T) (entries []entry) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range bytes.Lines(j.buf.Bytes()) {
		var e entry
		require.NoError(t, json.Unmarshal(line, &e), "%s", line)
		e.Msg, e.Stack, _ = strings.Cut(e.Msg, "\n")
		entries = append(entries, e)
	}
	j.buf.Reset()
	return entries
}

func serveBreaking(t *testing.T) (*mcpkit.Server, *breaking, *journal) {
	b, j := &breaking{stuck: make(chan struct{})}, &journal{}
	srv := newServer(t, b, mcpkit.Logger(slog.New(slog.NewJSONHandler(j, nil))))
	return srv, b, j
}

// readOf is a request that reads a resource.
func readOf(uri string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"` + uri + `",` + modernMeta + `}}`
}

// serveStdio serves on a pipe and returns the other end of it.
func serveStdio(t *testing.T, srv *mcpkit.Server, framing stdio.Framing) net.Conn {
	ours, theirs := net.Pipe()
	over := make(chan error, 1)
	opts := &stdio.Options{Framing: framing, Logger: slog.New(slog.DiscardHandler)}
	go func() { over <- stdio.NewIO(theirs, theirs, opts).Serve(context.Background(), srv) }()
	t.Cleanup(func() {
		ours.Close()
		assert.NoError(t, <-over)
	})
	return ours
}

// linesConn is the client's end of a pipe.
type linesConn struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func serveLines(t *testing.T, srv *mcpkit.Server, framing stdio.Framing) *linesConn {
	ours := serveStdio(t, srv, framing)
	return &linesConn{t, ours, bufio.NewReader(ours)}
}

func (c *linesConn) send(message string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, message+"\n")
	require.NoError(c.t, err)
}

func (c *linesConn) receive() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	require.NoError(c.t, err)
	return strings.TrimSuffix(line, "\n")
}

const listRequest = `{"jsonrpc":"2.0","id":8,"method":"resources/list","params":{` + modernMeta + `}}`

// works requires that other requests are answered.
func (c *linesConn) works() {
	c.t.Helper()
	c.send(listRequest)
	c.listed()
}

func (c *linesConn) listed() {
	c.t.Helper()
	require.Regexp(c.t, `^\{"jsonrpc":"2.0","id":8,"result":\{.*"resources":\[`, c.receive())
}

func failureOf(text string) string {
	return `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"` + text + `"}}`
}

var refInText = regexp.MustCompile(`\(ref ([A-Z2-7]{10})\)`)

// withoutRef replaces the reference in text, and returns it.
func withoutRef(text string) (string, string) {
	ref := refInText.FindStringSubmatch(text)
	if ref == nil {
		return text, ""
	}
	return strings.Replace(text, ref[1], "REF", 1), ref[1]
}

// readError reads a resource to its end and returns the error that the caller gets.
func readError(t *testing.T, srv *mcpkit.Server, uri string) *jsonrpc.Error {
	resp := modern(t, srv).rpc(t.Context(), readOf(uri))
	if resp.Stream == nil {
		return resp.Error
	}
	told, _ := errors.AsType[*jsonrpc.Error](resp.Stream(io.Discard))
	return told
}

// An error before the response begins is that of the method. Later the message breaks, with an error
// for transports that can still send one.
func TestReadersThatFail(t *testing.T) {
	const hidden, broke = "mcpkit: a call failed with an error that the caller does not see", "mcpkit: a result ended early because reading failed"
	for what, test := range map[string]struct{ want, msg, logged string }{
		"error":      {"internal error (ref REF)", hidden, secretDSN},
		"panic":      {"internal error (ref REF)", hidden, "panic: " + secretDSN},
		"nothing":    {"internal error (ref REF)", hidden, "multiple Read calls return no data or error"},
		"told":       {"the file is gone", "", ""},
		"late-error": {"internal error (ref REF)", broke, secretDSN},
		"late-panic": {"internal error (ref REF)", broke, "panic: " + secretDSN},
		"late-told":  {"the file is gone", broke, "the file is gone"},
	} {
		srv, _, j := serveBreaking(t)
		err := readError(t, srv, "b://"+what)
		require.NotNil(t, err, what)
		text, ref := withoutRef(err.Message)
		require.Equal(t, test.want, text)
		entries := j.take(t)
		if test.logged == "" {
			require.Empty(t, entries)
			continue
		}
		require.Len(t, entries, 1)
		require.Equal(t, strings.HasSuffix(what, "panic"), entries[0].Stack != "")
		entries[0].Stack = ""
		require.Equal(t, entry{Level: "ERROR", Msg: test.msg, Ref: cmp.Or(ref, entries[0].Ref), Method: "resources/read", Name: "b://" + what, Error: test.logged}, entries[0])
	}
}

func TestBrokenDeliveriesAreLogged(t *testing.T) {
	srv, _, j := serveBreaking(t)
	gone, sent := io.Pipe()
	require.NoError(t, gone.Close())
	require.ErrorIs(t, modern(t, srv).rpc(t.Context(), readOf("b://late-error")).Stream(sent), io.ErrClosedPipe)
	entries := j.take(t)
	require.Len(t, entries, 1)
	require.Equal(t, "mcpkit: a result was not delivered to its end", entries[0].Msg)
}

func TestSmallReadersArePlainResults(t *testing.T) {
	srv, _, j := serveBreaking(t)
	resp := modern(t, srv).rpc(t.Context(), readOf("b://small"))
	require.Nil(t, resp.Stream)
	require.Equal(t, `[{"uri":"b://small","mimeType":"text/plain","text":"a few words"}]`, member(t, string(resp.Result), "contents"))
	require.Empty(t, j.take(t))
}

func TestConnectionsHoldReadersUpToMaxResultBytes(t *testing.T) {
	srv := newServer(t, nil, mcpkit.MaxResultBytes(200_000))
	for uri, size := range map[string]int64{"r://small": 100_000, "r://large": 200_000} {
		read := func() io.Reader { return new(zeros(size)) }
		require.NoError(t, srv.Add(mcpkit.NewResource(uri, uri[len("r://"):], read).MIME("image/png")))
	}
	c := serveLines(t, srv, stdio.Lines)
	c.send(readOf("r://small"))
	require.Contains(t, c.receive(), `"result":{`)
	c.send(readOf("r://large"))
	require.Equal(t, failureOf("the result is larger than 200000 bytes; "+
		"raise mcpkit.MaxResultBytes, or serve it over Streamable HTTP, which sends it while it is read"), c.receive())
}

// spoiled is an error whose methods panic.
type spoiled struct{}

func (spoiled) Error() string { panic("no text") }

func TestErrorsOfReadersThatPanicAreAnsweredToo(t *testing.T) {
	j := &journal{}
	srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.NewJSONHandler(j, nil))))
	require.NoError(t, srv.Add(mcpkit.NewResource("b://spoiled", "spoiled", func() io.Reader {
		return io.MultiReader(strings.NewReader(strings.Repeat("x", sentSoFar)), iotest.ErrReader(spoiled{}))
	}).MIME("text/plain")))
	err := readError(t, srv, "b://spoiled")
	entries := j.take(t)
	require.Len(t, entries, 1)
	require.Equal(t, "mcpkit: a result or an error panicked", entries[0].Msg)
	require.Equal(t, jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error (ref %s)", entries[0].Ref), err)
}

func TestReadersThatBlockHoldUpTheirOwnCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, b, j := serveBreaking(t)
		defer close(b.stuck)
		c := serveLines(t, srv, stdio.Lines)
		c.send(readOf("limited://stuck"))
		synctest.Wait()
		c.works()
		require.Equal(t, failureOf("timed out after 1s"), c.receive())
		require.Len(t, j.take(t), 1, "the method is overdue")
	})
}
