package httpguard

import (
	"net/http"
	"strings"
)

// exposed are the header fields of answers that clients read, and that browsers keep from pages unless told otherwise.
const exposed = "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"

// preflightSeconds is how long a browser may rely on the answer to a preflight.
const preflightSeconds = "600"

// Share lets the page that sent r read the answer, where a browser would keep it from the page (Fetch standard, "CORS
// protocol"). It is for requests that Refuse let pass. It answers preflights itself, for these methods, and then reports
// true. Where a CORS middleware in front has let the page in already, it only adds the header fields that clients read.
func Share(w http.ResponseWriter, r *http.Request, methods ...string) (answered bool) {
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
	// Mcp-Param-* fields have any name, and the page may be let in as it is.
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked)
		header.Add("Vary", "Access-Control-Request-Headers")
	}
	header.Set("Access-Control-Max-Age", preflightSeconds)
	w.WriteHeader(http.StatusNoContent)
	return true
}
