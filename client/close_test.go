package client_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A closer closes its client in the first call of one of its methods.
type closer struct {
	c      chan *client.Client // holds the client
	closed chan error          // the error of Close
}

func newCloser() *closer { return &closer{make(chan *client.Client, 1), make(chan error, 1)} }

func (k *closer) close() {
	select {
	case c := <-k.c:
		k.closed <- c.Close()
	default:
	}
}

// closesOn closes its client in the method of this name.
type closesOn struct {
	*closer
	method string
}

func (k closesOn) in(method string) {
	if k.method == method {
		k.close()
	}
}

func (k closesOn) ToolsChanged(context.Context)                        { k.in("ToolsChanged") }
func (k closesOn) ResourceUpdated(context.Context, string)             { k.in("ResourceUpdated") }
func (k closesOn) Log(context.Context, *protocol.LoggingMessageParams) { k.in("Log") }
func (k closesOn) Progress(context.Context, *protocol.ProgressParams)  { k.in("Progress") }
func (k closesOn) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	k.in("Elicit")
	return nil, client.ErrRejected
}

func TestCloseReturnsInsideAHandler(t *testing.T) {
	for _, test := range []struct {
		method, tool string // a method of the handlers, and the tool whose call makes the server use it
		args         any
	}{
		{"ToolsChanged", "change", nil},
		{"ResourceUpdated", "change", nil},
		{"Log", "count", nil},
		{"Progress", "count", nil},
		{"Elicit", "order", Hit{ID: 1, Title: "tea"}},
	} {
		t.Run(test.method, func(t *testing.T) {
			inBubbles(t, []protocol.Version{protocol.LatestLegacy, protocol.Latest}, func(t *testing.T, dial dialer, _ protocol.Version) {
				k := newCloser()
				c := dial(t, client.Handlers(closesOn{k, test.method}), client.LogLevel(protocol.LevelDebug))
				_, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"shop://hours"}})
				require.NoError(t, err)
				k.c <- c
				over := make(chan struct{})
				go func() {
					defer close(over)
					r, err := c.CallTool(t.Context(), test.tool, test.args) // it may return before or after Close
					if err != nil && r != nil {
						t.Error(err)
						k.closed <- c.Close()
					}
				}()
				require.NoError(t, <-k.closed)
				<-over
				_, err = c.CallTool(t.Context(), "add", nil)
				require.EqualError(t, err, `client: tools/call "add": transport: closed`)
			})
		})
	}
}

// A legacy server without sessions learns only from a cancellation that the client has closed.
func TestCloseCancelsCallsAtAServerWithoutSessions(t *testing.T) {
	for name, takes := range map[string]time.Duration{"a quick server": 0, "a server that does not respond": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				methods := make(chan string, 10)
				server := roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Context().Err() != nil {
						return nil, r.Context().Err()
					}
					body, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					method := jsonx.String(jsonx.Member(body, "method"))
					methods <- method
					var wait <-chan time.Time
					switch method {
					case "notifications/cancelled":
						wait = time.After(takes)
					case "tools/call":
					default:
						return (&babbler{}).RoundTrip(httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
					}
					select {
					case <-wait:
						return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody, Request: r}, nil
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				})
				c := dial(t, "http://example.com/mcp", client.Version(protocol.LatestLegacy), client.HTTPClient(&http.Client{Transport: server}))
				over := make(chan error, 1)
				go func() {
					_, err := c.CallTool(t.Context(), "add", nil)
					over <- err
				}()
				synctest.Wait()
				begun := time.Now()
				require.NoError(t, c.Close())
				require.LessOrEqual(t, time.Since(begun), time.Second)
				require.ErrorIs(t, <-over, transport.ErrClosed)
				close(methods)
				var all []string
				for method := range methods {
					all = append(all, method)
				}
				require.Equal(t, []string{"initialize", "notifications/initialized", "tools/call", "notifications/cancelled"}, all)
			})
		})
	}
}
