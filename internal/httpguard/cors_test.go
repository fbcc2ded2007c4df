package httpguard

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShare(t *testing.T) {
	const page = "https://app.example.com"
	shared := http.Header{
		"Access-Control-Allow-Origin":   {page},
		"Access-Control-Expose-Headers": {"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"},
		"Vary":                          {"Origin"},
	}
	for _, test := range []struct {
		name     string
		method   string
		request  http.Header
		before   http.Header
		answered bool
		want     http.Header
	}{
		{name: "without an origin", method: "POST", want: http.Header{}},
		{name: "page", method: "POST", request: http.Header{"Origin": {page}}, want: shared},
		{name: "preflight", method: "OPTIONS", answered: true,
			request: http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"content-type,mcp-param-region"}},
			want: http.Header{
				"Access-Control-Allow-Origin":  {page},
				"Access-Control-Allow-Methods": {"POST, GET"},
				"Access-Control-Allow-Headers": {"content-type,mcp-param-region"},
				"Access-Control-Max-Age":       {"600"},
				"Vary":                         {"Origin", "Access-Control-Request-Headers"},
			}},
		{name: "preflight without header fields", method: "OPTIONS", answered: true,
			request: http.Header{"Origin": {page}, "Access-Control-Request-Method": {"GET"}},
			want: http.Header{
				"Access-Control-Allow-Origin":  {page},
				"Access-Control-Allow-Methods": {"POST, GET"},
				"Access-Control-Max-Age":       {"600"},
				"Vary":                         {"Origin"},
			}},
		{name: "OPTIONS that is not a preflight", method: "OPTIONS", request: http.Header{"Origin": {page}}, want: shared},
		{name: "behind a CORS middleware", method: "POST", request: http.Header{"Origin": {page}},
			before: http.Header{"Access-Control-Allow-Origin": {"*"}}, want: http.Header{
				"Access-Control-Allow-Origin":   {"*"},
				"Access-Control-Expose-Headers": {"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"}}},
		{name: "behind a CORS middleware that exposes other fields", method: "POST", request: http.Header{"Origin": {page}},
			before: http.Header{"Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {"X-Request-Id"}}, want: http.Header{
				"Access-Control-Allow-Origin":   {"*"},
				"Access-Control-Expose-Headers": {"X-Request-Id", "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"}}},
		{name: "preflight answered in front", method: "OPTIONS", before: http.Header{"Access-Control-Allow-Origin": {"*"}},
			request: http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}}, want: http.Header{"Access-Control-Allow-Origin": {"*"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "/", nil)
			r.Header = test.request
			w := httptest.NewRecorder()
			for name, values := range test.before {
				w.Header()[name] = values
			}
			require.Equal(t, test.answered, Share(w, r, "POST", "GET"))
			require.Equal(t, test.want, w.Header())
			if test.answered {
				require.Equal(t, http.StatusNoContent, w.Code)
			}
		})
	}
}
