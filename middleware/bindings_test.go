package middleware_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// A binding is a client over one transport, as a principal or unauthenticated.
type binding struct {
	target func(t *testing.T, srv *mcpkit.Server, p *oauth.Principal) any
	speaks func(v protocol.Version) bool
}

func any5(protocol.Version) bool { return true }

// bindings are all transports.
var bindings = map[string]binding{
	"memory": {func(_ *testing.T, srv *mcpkit.Server, p *oauth.Principal) any {
		return client.InMemory(authenticated{srv, p})
	}, any5},
	"stdio": {func(t *testing.T, srv *mcpkit.Server, p *oauth.Principal) any {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		// Ends when the client closes its end.
		go func() { served <- stdio.NewIO(in, out, nil).Serve(context.Background(), authenticated{srv, p}) }()
		t.Cleanup(func() { require.NoError(t, <-served) })
		return client.Stream(duplex{fromServer, toServer})
	}, any5},
	"streamable": {func(t *testing.T, srv *mcpkit.Server, p *oauth.Principal) any {
		h := streamable.NewHandler(srv, nil)
		return listen(t, p, h, h.Close)
	}, any5},
	"HTTP+SSE": {func(t *testing.T, srv *mcpkit.Server, p *oauth.Principal) any {
		h := sse.NewHandler(srv, nil)
		return listen(t, p, h, h.Close) + "/sse"
	}, func(v protocol.Version) bool { return v == protocol.V20241105 }},
	"WebSocket": {func(t *testing.T, srv *mcpkit.Server, p *oauth.Principal) any {
		h := websocket.NewHandler(srv, nil)
		return strings.Replace(listen(t, p, h, h.Close), "http", "ws", 1)
	}, any5},
}

// authenticated is a server whose callers are all the same.
type authenticated struct {
	*mcpkit.Server
	principal *oauth.Principal
}

func (a authenticated) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if a.principal != nil {
		ctx = oauth.NewContext(ctx, a.principal)
	}
	return a.Server.ServeRPC(ctx, req, peer)
}

type duplex struct {
	io.ReadCloser
	io.WriteCloser
}

func (d duplex) Close() error {
	_ = d.ReadCloser.Close() // of a pipe: never fails
	return d.WriteCloser.Close()
}

// listen serves h to a principal, as an authenticator in front of it does.
func listen(t *testing.T, p *oauth.Principal, h http.Handler, end func()) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p != nil {
			r = r.WithContext(oauth.NewContext(r.Context(), p))
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { end(); s.Close() })
	return s.URL
}

// overEach runs f for each transport and each version that it supports.
func overEach(t *testing.T, f func(t *testing.T, b binding, v protocol.Version)) {
	for name, b := range bindings {
		for _, v := range protocol.Supported {
			if b.speaks(v) {
				t.Run(name+" "+string(v), func(t *testing.T) { f(t, b, v) })
			}
		}
	}
}

// connect is a client that sends each request of a version once. While it listens to doc://one it
// calls listening.
func connect(t *testing.T, target any, v protocol.Version, listening func()) (send func(r request) string) {
	c, err := client.Dial(t.Context(), target, client.Version(v))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the process ends with its input
	return func(r request) string {
		if r.method == protocol.MethodSubscriptionsListen { // it lasts until it is closed
			sub, err := c.Subscribe(t.Context(), "doc://one", "any://x")
			if err != nil {
				return err.Error()
			}
			listening()
			require.NoError(t, sub.Close())
			return ""
		}
		var raw json.RawMessage
		if err := c.Request(t.Context(), r.method, json.RawMessage(r.params), &raw); err != nil {
			return err.Error()
		}
		if r.method == protocol.MethodResourcesSubscribe {
			listening()
		}
		return string(raw)
	}
}

// Callers without the scopes can neither call nor see what the scopes guard, over any transport:
// calls, lists, reads, completions, subscriptions.
func TestNothingLeaksOverAnyBinding(t *testing.T) {
	callers := map[string]*oauth.Principal{
		"nobody": nil, "without scopes": {Subject: "ann"}, "with another scope": {Subject: "ann", Scopes: []string{"secrets", "Secret"}},
		"with the scope": {Subject: "bob", Scopes: []string{"other", "secret"}},
	}
	overEach(t, func(t *testing.T, b binding, v protocol.Version) {
		var mu sync.Mutex
		var ran []string
		run := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, what)
		}
		for name, principal := range callers {
			// It has servers of its own, since earlier subscriptions may last for a moment.
			srv, inner := mcpkit.MustNew(nil, quiet, mcpkit.Authenticated()), mcpkit.MustNew(&everything{ran: run}, quiet, mcpkit.Authenticated())
			require.NoError(t, srv.Mount("m", inner))
			ran = nil
			heard := 0
			send := connect(t, b.target(t, srv, principal), v, func() {
				if inner.ResourceUpdated("doc://one") {
					heard++
				}
			})
			var replies []string
			for _, r := range requestsOf(v) {
				if r.method == "initialize" {
					continue
				}
				for _, thing := range []string{"open", "closed", "ask"} {
					r.params = strings.ReplaceAll(r.params, `"name":"`+thing+`"`, `"name":"m_`+thing+`"`)
				}
				replies = append(replies, send(r))
			}
			said := strings.Join(replies, "\n")
			if name == "with the scope" {
				require.ElementsMatch(t, []string{"closed", "ask", "doc", "any", "kinds"}, ran, said)
				require.Contains(t, said, `"m_closed"`)
				require.Equal(t, 1, heard, "an update")
				continue
			}
			require.Empty(t, ran, "%s: %s", name, said)
			require.NotContains(t, said, "-result", name)
			for _, hidden := range []string{`"name":"m_closed"`, `"name":"m_ask"`, `"uri":"doc://one"`, `"uriTemplate":"any://{id}"`, "-kind"} {
				require.NotContains(t, said, hidden, name)
			}
			require.Zero(t, heard, "%s is notified of updates", name)
		}
	})
}
