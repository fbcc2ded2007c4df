package client_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A shelf has resources that return readers.
type shelf struct {
	_ struct {
		Whole  mcpkit.Resource `uri:"shelf://whole" mime:"text/plain"`
		Broken mcpkit.Resource `uri:"shelf://broken" mime:"text/plain"`
	}
}

var manyWords = strings.Repeat("many words, ", 10_000)

// A volume is a file that cannot be read after Close or the end of its call.
type volume struct {
	io.Reader
	ctx    context.Context
	closed chan struct{}
}

func (v *volume) Read(p []byte) (int, error) {
	select {
	case <-v.closed:
		return 0, errors.New("read after close")
	default:
	}
	if err := v.ctx.Err(); err != nil {
		return 0, err
	}
	return v.Reader.Read(p)
}

func (v *volume) Close() error { close(v.closed); return nil }

func (*shelf) Whole(ctx context.Context) io.Reader {
	return &volume{strings.NewReader(manyWords), ctx, make(chan struct{})}
}

func (*shelf) Broken(ctx context.Context) io.Reader {
	return &volume{io.MultiReader(strings.NewReader(manyWords), iotest.ErrReader(errors.New("a page is missing"))), ctx, make(chan struct{})}
}

// A notebook records log messages.
type notebook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notebook) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notebook) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func TestReadersAreReadCompletelyOnEveryTransport(t *testing.T) {
	t.Parallel()
	for _, b := range []struct {
		name   string
		target func(*testing.T, *mcpkit.Server) any
	}{
		{"memory", func(_ *testing.T, srv *mcpkit.Server) any { return srv }},
		{"http", func(t *testing.T, srv *mcpkit.Server) any { return serveHTTP(t, srv) }},
		{"websocket", func(t *testing.T, srv *mcpkit.Server) any { return serveWebSocket(t, srv) }},
		{"unix", func(t *testing.T, srv *mcpkit.Server) any { return "unix:" + serveUnix(t, srv, nil) }},
		{"stream", func(t *testing.T, srv *mcpkit.Server) any { return serveStream(t, srv, nil) }},
		{"sse", func(t *testing.T, srv *mcpkit.Server) any { return client.HTTPSSE(serveSSE(t, srv)) }},
	} {
		for _, v := range protocol.Supported {
			if b.name == "sse" && v.Modern() {
				continue // HTTP+SSE supports only legacy versions
			}
			t.Run(b.name+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				log := &notebook{}
				srv, err := mcpkit.New(&shelf{}, mcpkit.Logger(slog.New(slog.NewTextHandler(log, nil))))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, srv.Close()) })
				c := dial(t, b.target(t, srv), client.Version(v))
				_, err = c.ReadResource(t.Context(), "shelf://broken")
				require.Error(t, err)
				require.NotContains(t, err.Error(), "a page is missing")
				logged := log.String()
				require.Contains(t, logged, "uri=shelf://broken")
				if b.name != "http" { // over HTTP the connection breaks, and the client tries again
					require.Equal(t, 1, strings.Count(logged, "a page is missing"), logged)
					ref := regexp.MustCompile(`internal error \(ref ([A-Z2-7]{10})\)`).FindStringSubmatch(err.Error())
					require.NotNil(t, ref, err.Error())
					require.Contains(t, logged, "ref="+ref[1])
				}
				read, err := c.ReadResource(t.Context(), "shelf://whole")
				require.NoError(t, err)
				require.Equal(t, manyWords, *read.Contents[0].Text)
			})
		}
	}
}
