package middleware_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// post sends a request to a handler in memory.
func post(h http.Handler, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// overHTTP calls a tool as a legacy and as a modern client.
func overHTTP(t *testing.T, h http.Handler, call func(name string, post func(tool string) *httptest.ResponseRecorder)) {
	call("modern", func(tool string) *httptest.ResponseRecorder {
		return post(h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`",`+modernMeta+`,"progressToken":1}}}`,
			http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}})
	})
	hello := post(h, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+initializeParams+`}`, nil)
	require.Equal(t, 200, hello.Code, hello.Body)
	session := http.Header{"Mcp-Session-Id": hello.Header()["Mcp-Session-Id"], "Mcp-Protocol-Version": {"2025-11-25"}}
	require.Equal(t, 202, post(h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session).Code)
	call("legacy", func(tool string) *httptest.ResponseRecorder {
		return post(h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","_meta":{"progressToken":1}}}`, session)
	})
}

// mounts are the ways to serve a server over HTTP.
func mounts(t *testing.T, srv *mcpkit.Server) map[string]http.Handler {
	e, direct := echo.New(), streamable.NewHandler(srv, nil)
	t.Cleanup(echomcp.Mount(e, "/mcp", srv).Close)
	t.Cleanup(direct.Close)
	return map[string]http.Handler{"streamable": direct, "echo": e}
}

type later struct {
	error
	after time.Duration
}

func (l later) Unwrap() error             { return l.error }
func (l later) RetryAfter() time.Duration { return l.after }

// refusing answers each tool call with an error.
func refusing(err error) mcpkit.Middleware {
	return middleware.When(func(call *mcpkit.Call) bool { return call.Method() == "tools/call" }, func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { return nil, err }
	})
}

func TestRefusalsSayInAHeaderWhenToComeBack(t *testing.T) {
	limited := func(after time.Duration) error { return &mcpkit.RateLimitError{After: after} }
	for _, test := range []struct {
		name string
		use  []mcpkit.Middleware
		want string // the header; "" for none
		body string
	}{
		{"in whole seconds", []mcpkit.Middleware{refusing(limited(2 * time.Second))}, "2", `"io.github.mcpkit/error":{"retryAfterMs":2000}`},
		{"rounded up", []mcpkit.Middleware{refusing(limited(time.Second + 1))}, "2", `"io.github.mcpkit/error":{"retryAfterMs":1001}`},
		{"at least one", []mcpkit.Middleware{refusing(limited(1))}, "1", `"io.github.mcpkit/error":{"retryAfterMs":1}`},
		{"no turn is free", []mcpkit.Middleware{refusing(&mcpkit.BusyError{Limit: 2})}, "1", `"io.github.mcpkit/error":{"limit":2}`},
		{"as a protocol error", []mcpkit.Middleware{middleware.ErrorCodes(), refusing(limited(3 * time.Second))}, "3", `"code":-32603,"message":"too many calls; try again in 3s","data":{"retryAfterMs":3000}`},
		{"an error of one's own", []mcpkit.Middleware{refusing(later{mcpkit.Errorf("closed on Sundays"), 24 * time.Hour})}, "86400", `closed on Sundays`},
		{"not before now", []mcpkit.Middleware{refusing(later{mcpkit.Errorf("x"), -time.Hour})}, "", `"isError":true`},
		{"another error", []mcpkit.Middleware{refusing(mcpkit.Errorf("x"))}, "", `"isError":true`},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := newServer(t, mcpkit.NewTool("x", ok))
			srv.Use(test.use...)
			for way, h := range mounts(t, srv) {
				overHTTP(t, h, func(family string, call func(string) *httptest.ResponseRecorder) {
					w := call("x")
					require.Equal(t, 200, w.Code, "%s, %s", way, family)
					require.Equal(t, "application/json", w.Header().Get("Content-Type"))
					require.Equal(t, test.want, w.Header().Get("Retry-After"), "%s, %s", way, family)
					require.Contains(t, w.Body.String(), test.body, "%s, %s", way, family)
				})
			}
		})
	}
}

func TestARefusalOnAStreamHasNoHeader(t *testing.T) {
	srv := newServer(t, mcpkit.NewTool("x", func(call *mcpkit.Call) error {
		call.Progress(1, 2, "half")
		return &mcpkit.RateLimitError{After: time.Second}
	}))
	for way, h := range mounts(t, srv) {
		overHTTP(t, h, func(family string, call func(string) *httptest.ResponseRecorder) {
			w := call("x")
			require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"), "%s, %s", way, family)
			require.NotContains(t, w.Header(), "Retry-After")
			require.Contains(t, w.Body.String(), `"retryAfterMs":1000`)
		})
	}
}
