package websocket_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// end is the client's end of a connection, as package client uses it.
type end struct {
	conn.Wire
	stop func()
	done <-chan struct{}
}

func (e end) Send(message []byte) error {
	_, err := e.Write(append(message, '\n'))
	return err
}

func (e end) Receive() ([]byte, error) { return e.Read() }
func (e end) Stop()                    { e.stop() }
func (e end) Done() <-chan struct{}    { return e.done }

// listen serves h and returns the address.
func listen(t *testing.T, h transport.Handler, opts *websocket.Options) (addr string, stop func(), done <-chan struct{}) {
	opts.Logger = slog.New(slog.DiscardHandler)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	handler := websocket.NewHandler(h, opts)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer handler.Close()
		assert.NoError(t, httpserve.Run(ctx, listener, &http.Server{Handler: handler}, func() { _ = handler.Shutdown(context.Background()) }))
	}()
	return listener.Addr().String(), cancel, over
}

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
		addr, stop, done := listen(t, h, &websocket.Options{MaxMessageBytes: transporttest.MaxMessageBytes, ShutdownTimeout: time.Minute, WriteTimeout: 10 * time.Minute})
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		wire, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws", &websocket.DialOptions{Client: client})
		require.NoError(t, err)
		return end{wire, stop, done}
	})
}

func TestUpgradesAreGuarded(t *testing.T) {
	url := serveRaw(t, methods{}, &websocket.Options{}, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, test := range []struct {
		name, field, value string // "" for a field that is left out
		status             int
		want               string
	}{
		{"one subprotocol of several", "Sec-Websocket-Protocol", "chat, mcp", 101, ""},
		{"no subprotocol", "Sec-Websocket-Protocol", "", 400, `the client must offer the WebSocket subprotocol "mcp"`},
		{"other subprotocols", "Sec-Websocket-Protocol", "mcpx, xmcp, MCP", 400, `the client must offer the WebSocket subprotocol "mcp"`},
		{"no upgrade", "Upgrade", "", 426, ""},
		{"no key", "Sec-Websocket-Key", "", 400, ""},
		{"a foreign page", "Origin", "http://evil.example.com", 403, `origin "http://evil.example.com" is not allowed; name it in AllowedOrigins`},
		{"a page without an origin", "Origin", "null", 403, `origin "null" is not allowed; name it in AllowedOrigins`},
		{"a page of this machine", "Origin", "http://localhost:6274", 101, ""},
		{"a rebound host", "Host", "evil.example.com", 403, `host "evil.example.com" is not allowed; name it in AllowedHosts`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			require.NoError(t, err)
			for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13",
				"Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Protocol": "mcp", test.field: test.value} {
				r.Header.Set(name, value)
			}
			switch {
			case test.field == "Host":
				r.Host = test.value
			case test.value == "":
				r.Header.Del(test.field)
			}
			resp, err := client.Do(r)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, test.status, resp.StatusCode)
			if test.want != "" {
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, test.want, strings.TrimSpace(string(body)))
			}
		})
	}
}
