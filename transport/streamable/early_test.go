package streamable

import (
	"context"
	"net/http"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// earlyServer has a tool that responds early, and returns another response when it is let go. With
// talk, it notifies the client first.
func earlyServer(t *testing.T, opts *Options) (s *testServer, letGo func()) {
	release, returned := make(chan struct{}), make(chan struct{}, 1)
	early := func(talk bool) func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
		return func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			defer func() { returned <- struct{}{} }()
			if talk {
				_ = notify(ctx, peer, 1)
			}
			peer.(transport.EarlyResponder).RespondEarly(&jsonrpc.Response{Error: jsonrpc.Errorf(1, "late")})
			<-release
			_ = notify(ctx, peer, 2)
			peer.(transport.EarlyResponder).RespondEarly(result(req, `"again"`))
			return result(req, `"too late"`)
		}
	}
	s = serve(t, script{"early": early(false), "talk": early(true)}, opts)
	return s, func() {
		close(release)
		<-returned
	}
}

// Each test would hang if anything waited for the method.
func TestEarlyResponse(t *testing.T) {
	const late = `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"late"}}`
	for name, connect := range map[string]func(*testServer) *client{
		"modern":    (*testServer).modern,
		"session":   func(s *testServer) *client { return s.legacy("2025-11-25") },
		"stateless": func(s *testServer) *client { return s.client() },
	} {
		opts := func() *Options { return &Options{Stateless: name == "stateless"} }
		t.Run(name+", JSON", func(t *testing.T) {
			s, letGo := earlyServer(t, opts())
			c := connect(s)
			resp := c.call(7, "early")
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
			require.NotEmpty(t, resp.Header.Get("Date"))
			require.True(t, resp.Close, "the connection ends with it")
			require.Equal(t, late, read(t, resp))
			c.works()
			require.NoError(t, s.handler.Shutdown(t.Context()), "a shutdown does not wait for the method")
			letGo()
			require.NotContains(t, s.log.String(), "panic")
		})
		t.Run(name+", stream", func(t *testing.T) {
			s, letGo := earlyServer(t, opts())
			c := connect(s)
			first := eventsOf(t, c.call(7, "talk"))
			stream := first
			id := ""
			if name == "session" {
				id = stream.next().ID
			}
			require.Equal(t, progress1, stream.data())
			require.Equal(t, late, stream.data())
			c.works()
			if name == "session" { // which a client that lost its connection resumes
				stream = eventsOf(t, c.with("Last-Event-ID", id).get())
				require.Equal(t, progress1, stream.data())
				require.Equal(t, late, stream.data())
			}
			letGo()
			first.end()
			require.NotContains(t, s.log.String(), "panic")
		})
	}
}

func TestHandlerThatEndsItsGoroutineHasAResponse(t *testing.T) {
	s := serve(t, script{"exit": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
		runtime.Goexit()
		return nil
	}}, nil)
	for _, c := range []*client{s.modern(), s.legacy("2025-11-25")} {
		resp := c.call(7, "exit")
		require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
		require.Contains(t, read(t, resp), `"message":"internal error"`)
		c.works()
	}
	require.NoError(t, s.handler.Shutdown(t.Context()), "nothing is in flight")
}

// Behind a compressor and where no connection can be had, the peer says that it cannot
// respond early, so that the caller of the method waits elsewhere.
func TestPeersThatCannotRespondEarly(t *testing.T) {
	seen := make(chan bool, 1)
	s := serve(t, script{"look": func(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		_, ok := peer.(transport.EarlyResponder)
		seen <- ok
		return result(req, `{}`)
	}}, nil)
	s.modern().call(1, "look")
	require.True(t, <-seen)

	c := s.modern()
	c.url = serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "identity")
		s.handler.ServeHTTP(w, r)
	}))
	c.call(1, "look")
	require.False(t, <-seen, "compressed")

	c.url = serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handler.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	}))
	c.call(1, "look")
	require.False(t, <-seen, "the connection is hidden")
}
