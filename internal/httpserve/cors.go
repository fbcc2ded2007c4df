package httpserve

import (
	"net/http"
	"strings"
)

// exposed lists the response header fields that clients read. Browsers hide them from pages by
// default.
const exposed = "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"

// preflightSeconds is how long a browser may cache the response to a preflight.
const preflightSeconds = "600"

// CORS adds CORS header fields so that the page that sent r can read the response (Fetch standard,
// "CORS protocol"). Refuse must have accepted r. CORS itself responds to a preflight, allowing
// these methods, and then returns true. If a CORS middleware has already allowed the page, CORS
// only exposes the header fields that clients read.
func CORS(w http.ResponseWriter, r *http.Request, methods ...string) (answered bool) {
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	origin := r.Header.Get("Origin")
	header := w.Header()
	if origin == "" {
		return false
	}
	if header.Get("Access-Control-Allow-Origin") != "" {
		if !preflight {
			header.Add("Access-Control-Expose-Headers", exposed)
		}
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	if !preflight {
		header.Set("Access-Control-Expose-Headers", exposed)
		return false
	}
	header.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	// Mcp-Param-* fields can have any name, so all requested fields are allowed.
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked)
		header.Add("Vary", "Access-Control-Request-Headers")
	}
	header.Set("Access-Control-Max-Age", preflightSeconds)
	w.WriteHeader(http.StatusNoContent)
	return true
}
