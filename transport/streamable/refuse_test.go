package streamable

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
)

func TestBadRequestsAreRefusedAndTheNextGoodOneIsAnswered(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":5,"method":"echo","params":{}}`
	const modern = "2026-07-28"
	for _, test := range []struct {
		name   string
		method string // POST if empty
		fields []string
		body   string // call if empty
		status int
		want   string // part of the body
	}{
		{name: "malformed JSON", body: `{"jsonrpc":`, status: 400, want: `"id":null,"error":{"code":-32700,"message":"invalid JSON: `},
		{name: "trailing data", body: call + `{}`, status: 400, want: `"id":null,"error":{"code":-32700,"message":"invalid JSON: `},
		{name: "empty body", body: " ", status: 400, want: "-32700"},
		{name: "not a message", body: `"hello"`, status: 400,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid message: a message is a JSON object"}}`},
		{name: "text/plain", fields: []string{"Content-Type", "text/plain"}, status: 415,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Content-Type must be application/json"}}`},
		{name: "no Content-Type", fields: []string{"Content-Type", ""}, status: 415, want: "Content-Type must be application/json"},
		{name: "look-alike Content-Type", fields: []string{"Content-Type", "application/jsonp"}, status: 415, want: "Content-Type must be application/json"},
		{name: "Accept of HTML", fields: []string{"Accept", "text/html"}, status: 406,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Accept must list application/json and text/event-stream"}}`},
		{name: "Accept of streams only", fields: []string{"Accept", "text/event-stream"}, status: 406, want: "Accept must list"},
		{name: "Accept that refuses JSON", fields: []string{"Accept", "application/json;q=0.0, text/event-stream"}, status: 406, want: "Accept must list"},
		{name: "large body", body: strings.Repeat(" ", 2000) + call, status: 413,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"body is larger than 1000 bytes"}}`},
		{name: "foreign origin", fields: []string{"Origin", "http://evil.example.com"}, status: 403,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"origin \"http://evil.example.com\" is not allowed; name it in AllowedOrigins"}}`},
		{name: "foreign origin of a GET", method: "GET", fields: []string{"Origin", "http://evil.example.com"}, status: 403, want: "is not allowed"},
		{name: "foreign origin of a DELETE", method: "DELETE", fields: []string{"Origin", "http://evil.example.com"}, status: 403, want: "is not allowed"},
		{name: "null origin", fields: []string{"Origin", "null"}, status: 403, want: `origin \"null\" is not allowed`},
		{name: "origin that looks like loopback", fields: []string{"Origin", "http://127.0.0.1.evil.com"}, status: 403, want: "is not allowed"},
		{name: "origin with userinfo", fields: []string{"Origin", "http://127.0.0.1@evil.com"}, status: 403, want: "is not allowed"},
		{name: "origin with userinfo of loopback", fields: []string{"Origin", "http://evil.com@127.0.0.1"}, status: 403, want: "is not allowed"},
		{name: "origin of a file", fields: []string{"Origin", "file://localhost"}, status: 403, want: "is not allowed"},
		{name: "origin with a path", fields: []string{"Origin", "http://localhost/x"}, status: 403, want: "is not allowed"},
		{name: "rebound host", fields: []string{"Host", "evil.example.com", "Origin", "http://evil.example.com"}, status: 403,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"host \"evil.example.com\" is not allowed; name it in AllowedHosts"}}`},
		{name: "rebound host without origin", fields: []string{"Host", "evil.example.com:80"}, status: 403, want: "AllowedHosts"},
		{name: "host that looks like loopback", fields: []string{"Host", "127.0.0.1.evil.com"}, status: 403, want: "AllowedHosts"},
		{name: "host that starts like localhost", fields: []string{"Host", "localhost.evil.com"}, status: 403, want: "AllowedHosts"},
		{name: "PUT", method: "PUT", status: 405,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"method PUT is not served here; use POST, GET, DELETE"}}`},
		{name: "OPTIONS", method: "OPTIONS", status: 405, want: "use POST, GET, DELETE"},
		{name: "modern GET", method: "GET", fields: []string{"MCP-Protocol-Version", modern}, status: 405, want: "method GET is not served here; use POST"},
		{name: "modern DELETE", method: "DELETE", fields: []string{"MCP-Protocol-Version", modern}, status: 405, want: "method DELETE is not served here; use POST"},
		{name: "GET without a session", method: "GET", status: 400, want: "header Mcp-Session-Id is missing"},
		{name: "DELETE without a session", method: "DELETE", status: 400, want: "header Mcp-Session-Id is missing"},
		{name: "GET that does not accept streams", method: "GET", fields: []string{"Accept", "application/json"}, status: 406, want: "Accept must list text/event-stream"},
		{name: "no session", status: 400,
			want: `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"header Mcp-Session-Id is missing; send initialize first, and then the session ID of its response"}}`},
		{name: "unknown session", fields: []string{"Mcp-Session-Id", "MADEUPMADEUPMADEUPMADEUPMA"}, status: 404,
			want: `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"session is unknown or has ended; send initialize without a session id"}}`},
		{name: "session and unsupported version", fields: []string{"Mcp-Session-Id", "SESSION", "MCP-Protocol-Version", "1999-01-01"}, status: 400,
			want: `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"header MCP-Protocol-Version: \"1999-01-01\" is not a version with sessions; send the version that initialize agreed on"}}`},
		{name: "batch in a session of another version", fields: []string{"Mcp-Session-Id", "SESSION"}, body: `[` + call + `]`, status: 400,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches exist only in 2025-03-26; send each message by itself"}}`},
		{name: "modern batch", fields: []string{"MCP-Protocol-Version", modern}, body: `[` + call + `]`, status: 400, want: "batches exist only in 2025-03-26"},
		{name: "batch without a session", body: `[` + call + `]`, status: 400, want: "header Mcp-Session-Id is missing"},
		{name: "modern response", fields: []string{"MCP-Protocol-Version", modern}, body: `{"jsonrpc":"2.0","id":1,"result":{}}`, status: 400,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a response needs a session; modern and stateless servers send no requests"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, nil, &Options{MaxBodyBytes: 1000})
			good := s.legacy("2025-11-25")
			if test.method == "" {
				test.method = http.MethodPost
			}
			if test.body == "" {
				test.body = call
			}
			for i, value := range test.fields {
				if value == "SESSION" {
					test.fields[i] = good.header.Get("Mcp-Session-Id")
				}
			}
			resp := s.client(test.fields...).send(test.method, test.body)
			body := read(t, resp)
			require.Equal(t, test.status, resp.StatusCode, body)
			if strings.HasPrefix(test.want, "{") {
				require.Equal(t, test.want, body)
			} else {
				require.Contains(t, body, test.want)
			}
			if test.status == http.StatusMethodNotAllowed {
				require.NotEmpty(t, resp.Header.Get("Allow"))
			}
			good.works()
			s.modern().works()
		})
	}
}

func TestRepeatedHeadersAreRefused(t *testing.T) {
	s := serve(t, nil, nil)
	legacy := s.legacy("2025-06-18")
	for _, name := range []string{"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id", "Mcp-Param-Region"} {
		for _, test := range []struct {
			family string
			c      *client
			code   int
		}{
			{"modern", s.modern(), -32020},
			{"legacy", legacy, -32600},
		} {
			t.Run(test.family+" "+name, func(t *testing.T) {
				c := test.c.with()
				value := c.header.Get(name)
				c.header[http.CanonicalHeaderKey(name)] = []string{value, value}
				resp := c.call(9, "echo")
				require.Equal(t, http.StatusBadRequest, resp.StatusCode)
				require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"error":{"code":%d,"message":"header %s is repeated"}}`,
					test.code, http.CanonicalHeaderKey(name)), read(t, resp))
				test.c.works()
			})
		}
	}
}

func TestGoodOriginsAndHosts(t *testing.T) {
	for _, test := range []struct {
		name   string
		opts   Options
		fields []string
	}{
		{"no origin", Options{}, nil},
		{"own origin", Options{}, []string{"Host", "localhost:8080", "Origin", "http://localhost:8080"}},
		{"own origin with the default port", Options{}, []string{"Host", "localhost", "Origin", "http://localhost:80"}},
		{"own origin behind TLS", Options{AllowedHosts: []string{"mcp.example.com"}}, []string{"Host", "mcp.example.com", "Origin", "https://mcp.example.com"}},
		{"another loopback origin", Options{}, []string{"Host", "127.0.0.1:8080", "Origin", "http://localhost:6274"}},
		{"IPv6", Options{}, []string{"Host", "[::1]:8080", "Origin", "http://[::1]:6274"}},
		{"IPv6 without port", Options{}, []string{"Host", "[::1]"}},
		{"allowed origin", Options{AllowedOrigins: []string{"https://App.example.com/"}}, []string{"Origin", "https://app.example.com"}},
		{"any origin", Options{AllowedOrigins: []string{"*"}}, []string{"Origin", "null"}},
		{"allowed host with any port", Options{AllowedHosts: []string{"MCP.example.com"}}, []string{"Host", "mcp.example.com:8443"}},
		{"allowed host with its port", Options{AllowedHosts: []string{"mcp.example.com:8443"}}, []string{"Host", "mcp.example.com:8443"}},
		{"any host", Options{AllowedHosts: []string{"*"}}, []string{"Host", "mcp.example.com"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, nil, &test.opts)
			s.modern().with(test.fields...).works()
		})
	}
}

// A browser sends a preflight, and hides responses that do not allow the origin of the page.
func TestPagesOfAllowedOriginsReadResponses(t *testing.T) {
	h := NewHandler(&scripted{}, &Options{AllowedOrigins: []string{"https://app.example.com"}})
	defer h.Close()
	do := func(method, origin string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://mcp.example.com/mcp", strings.NewReader(call1(1, "echo")))
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "content-type,mcp-method")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	w := do(http.MethodOptions, "https://app.example.com")
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Equal(t, "https://app.example.com", w.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "POST, GET, DELETE", w.Header().Get("Access-Control-Allow-Methods"))
	require.Equal(t, "content-type,mcp-method", w.Header().Get("Access-Control-Allow-Headers"))
	require.Equal(t, "https://app.example.com", do(http.MethodPost, "https://app.example.com").Header().Get("Access-Control-Allow-Origin"))
	for _, method := range []string{http.MethodOptions, http.MethodPost} {
		w := do(method, "https://evil.example.com")
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
	}
}

func TestAnyHostIsAllowedOffLoopback(t *testing.T) {
	h := NewHandler(&scripted{}, nil)
	defer h.Close()
	r := httptest.NewRequest(http.MethodPost, "http://mcp.example.com/mcp", strings.NewReader(call1(1, "echo")))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)

	r.Header.Set("Origin", "http://localhost")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code, "a page of the user's machine is foreign to a public host")
}

func TestAllowedHostsApplyToEveryAddress(t *testing.T) {
	h := NewHandler(&scripted{}, &Options{AllowedHosts: []string{"mcp.example.com"}})
	defer h.Close()
	post := func(host string, fields ...string) int {
		r := newPost(call1(1, "echo"), append(fields, "Mcp-Protocol-Version", "2026-07-28")...)
		r.Host = host
		w := newRecorder()
		h.ServeHTTP(w, r)
		return w.status
	}
	require.Equal(t, http.StatusOK, post("mcp.example.com"))
	require.Equal(t, http.StatusOK, post("localhost:8080"), "names of this machine cannot be rebound")
	require.Equal(t, http.StatusForbidden, post("evil.example.com"))
	require.Equal(t, http.StatusForbidden, post("evil.example.com", "X-Forwarded-Host", "mcp.example.com"), "anyone can send that")
}

func TestNotificationsGetNoResponseWhateverTheirParams(t *testing.T) {
	s := serve(t, nil, nil)
	for _, params := range []string{`[]`, `[1]`, `7`, `"x"`} {
		body := `{"jsonrpc":"2.0","method":"notifications/x","params":` + params + `}`
		for _, c := range []*client{s.modern(), s.legacy("2025-06-18")} {
			resp := c.post(body)
			require.Equal(t, http.StatusAccepted, resp.StatusCode, params)
			require.Empty(t, read(t, resp))
		}
		batch := s.legacy("2025-03-26").post(`[` + body + `]`)
		require.Equal(t, http.StatusAccepted, batch.StatusCode, params)
	}
}

// A client that writes its whole body before it reads must get the response, not a broken
// connection.
func TestRefusedBodiesAreReadToTheirEnd(t *testing.T) {
	s := serve(t, nil, nil)
	const size = 12 << 20
	for _, test := range []struct {
		name   string
		fields string
		status string
	}{
		{"too large", "Content-Type: application/json\r\n", "413 Request Entity Too Large"},
		{"not JSON", "Content-Type: text/plain\r\n", "415 Unsupported Media Type"},
		{"foreign page", "Content-Type: application/json\r\nOrigin: https://evil.example.com\r\n", "403 Forbidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n", test.fields, size)
			_, err = io.WriteString(conn, head)
			require.NoError(t, err)
			_, err = io.Copy(conn, io.LimitReader(endless(' '), size))
			require.NoError(t, err, "the server closed the connection before the body was written")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, test.status, resp.Status)
			_ = resp.Body.Close()
		})
	}
}

// endless is a body without end.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestAccept(t *testing.T) {
	for _, test := range []struct {
		accept       []string
		json, stream bool
	}{
		{nil, true, true},
		{[]string{"application/json, text/event-stream"}, true, true},
		{[]string{"text/event-stream,application/json;charset=utf-8"}, true, true},
		{[]string{"application/json", "text/event-stream"}, true, true},
		{[]string{"*/*"}, true, true},
		{[]string{"application/*"}, true, false},
		{[]string{"Application/JSON"}, true, false},
		{[]string{"text/*;q=0.1"}, false, true},
		{[]string{"application/json, text/event-stream; q=0"}, true, false},
		{[]string{""}, false, false},
		{[]string{"image/png"}, false, false},
	} {
		json, stream := httpserve.Accepts(http.Header{"Accept": test.accept})
		require.Equal(t, [2]bool{test.json, test.stream}, [2]bool{json, stream}, "%q", test.accept)
	}
}

func TestVersionOfARequest(t *testing.T) {
	const meta = `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"a":1}`
	for _, test := range []struct {
		name    string
		version string
		session string
		params  string
		modern  bool
	}{
		{name: "nothing"},
		{name: "legacy version", version: "2025-06-18"},
		{name: "modern version", version: "2026-07-28", modern: true},
		{name: "modern version with a session", version: "2026-07-28", session: "x", modern: true},
		{name: "future version", version: "2031-01-01", modern: true},
		{name: "unknown version", version: "v999", modern: true},
		{name: "unknown version with a session", version: "v999", session: "x"},
		{name: "meta alone", params: meta, modern: true},
		{name: "meta against the version", version: "2025-06-18", params: meta, modern: true},
		{name: "other meta", params: `,"params":{"_meta":{"progressToken":1}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, nil, nil)
			resp := s.client("MCP-Protocol-Version", test.version, "Mcp-Session-Id", test.session).
				post(`{"jsonrpc":"2.0","id":1,"method":"echo"` + test.params + `}`)
			if test.modern {
				require.Equal(t, http.StatusOK, resp.StatusCode, read(t, resp))
			} else {
				require.Equal(t, http.StatusBadRequest, resp.StatusCode, read(t, resp))
			}
		})
	}
}
