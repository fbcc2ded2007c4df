package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A status about the caller or a proxy is a StatusError, whatever the body contains.
func TestAStatusWithAMessageIsAStatusError(t *testing.T) {
	t.Parallel()
	refused := func(code int) answer {
		return func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer scope="x"`)
			withStatus(code, rpcError(-32001, "who are you?", `{"why":1}`))(w, r, req)
		}
	}
	check := func(t *testing.T, err error, code int) {
		t.Helper()
		var status *client.StatusError
		require.ErrorAs(t, err, &status)
		require.Equal(t, code, status.Code)
		require.Equal(t, `Bearer scope="x"`, status.Header.Get("WWW-Authenticate"))
		var rpc *jsonrpc.Error
		require.ErrorAs(t, err, &rpc, "the error in the body is available too")
		require.Equal(t, -32001, rpc.Code)
	}
	for _, code := range []int{401, 403, 503} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel() // the client waits before it tries again
			for _, at := range []string{"server/discover", "initialize", "tools/call"} {
				f := newLegacyFake(t, map[string]answer{at: refused(code)})
				c, err := dialing(t, f.URL)
				if at == "tools/call" {
					require.NoError(t, err)
					_, err = c.CallTool(t.Context(), "x", nil)
					require.EqualError(t, err, `client: tools/call "x": the server responded with HTTP status `+
						statusLine(code)+`: who are you? (code -32001)`)
				}
				check(t, err, code)
				if at == "server/discover" {
					require.Subset(t, []string{"server/discover"}, f.methods(), "the client sends no other request")
				}
			}
		})
	}
}

func statusLine(code int) string {
	return strings.TrimPrefix((&client.StatusError{Code: code}).Error(), "the server responded with HTTP status ")
}

func TestARefusedPostOfHTTPSSEIsAStatusError(t *testing.T) {
	o := &oldServer{}
	o.handle = func(w http.ResponseWriter, method string) {
		if method == "ping" {
			w.WriteHeader(http.StatusAccepted)
			o.stream <- `{"jsonrpc":"2.0","id":3,"result":{}}`
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"who are you?"}}`)
	}
	c := dial(t, startOld(t, o))
	_, err := c.CallTool(t.Context(), "x", nil)
	require.EqualError(t, err, `client: tools/call "x": the server responded with HTTP status 401 Unauthorized: who are you? (code -32001)`)
	var status *client.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, "Bearer", status.Header.Get("WWW-Authenticate"))
	require.NoError(t, c.Ping(t.Context()), "the connection continues")
}

func TestARefusedWebSocketHandshakeIsAStatusError(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "who are you?")
	}))
	defer s.Close()
	_, err := dialing(t, "ws"+strings.TrimPrefix(s.URL, "http"), client.Version(protocol.Latest))
	require.EqualError(t, err, `client: the server responded with HTTP status 401 Unauthorized: "who are you?"`)
	var status *client.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, http.StatusUnauthorized, status.Code)
	require.Equal(t, "Bearer", status.Header.Get("WWW-Authenticate"))
}
