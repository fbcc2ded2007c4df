package client_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestConcurrentCallersKeepTheirConnections(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			t.Run(fmt.Sprint(v, " HTTP2 ", http2), func(t *testing.T) {
				const callers, calls = 8, 15
				var conns atomic.Int64
				handler := streamable.NewHandler(shop(t), nil)
				t.Cleanup(handler.Close)
				server := httptest.NewUnstartedServer(handler)
				server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateNew {
						conns.Add(1)
					}
				}
				if server.EnableHTTP2 = http2; http2 {
					server.StartTLS()
					trust(t, server)
				} else {
					server.Start()
				}
				t.Cleanup(server.Close)
				c := dial(t, server.URL, client.Version(v))
				all := func() (made int64) {
					before := conns.Load()
					var group sync.WaitGroup
					for range callers {
						group.Go(func() {
							for range calls {
								_, err := client.Call[string](t.Context(), c, "region", map[string]any{"region": "north"})
								if err != nil {
									t.Error(err)
									return
								}
							}
						})
					}
					group.Wait()
					return conns.Load() - before
				}
				all() // the first calls open the connections
				if http2 {
					require.EqualValues(t, 1, conns.Load(), "one connection carries all calls")
				}
				require.Less(t, all(), int64(callers), "connections for %d later calls", callers*calls)
			})
		}
	}
}

// trust makes the default HTTP transport accept the certificate of server until the test ends.
func trust(t *testing.T, server *httptest.Server) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	trusting := before.(*http.Transport).Clone()
	trusting.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	http.DefaultTransport = trusting
}
