package metadata

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

const maxRequest = 64 << 10 // bytes of the body of a request to an endpoint

// A Refusal is an error response of an authorization server (RFC 6749, sections 4.1.2.1 and 5.2).
type Refusal struct{ Code, Description string }

// Error returns the code and the description.
func (r *Refusal) Error() string { return r.Code + ": " + r.Description }

// Refuse returns an error response.
func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// CodeInvalidClient is the code of the [Refusal] that asks a client to authenticate.
const CodeInvalidClient = "invalid_client"

// Endpoint serves requests whose responses must not be cached (RFC 6749, section 5.1). serve returns
// the document of a response, or nil for none. Errors go to report; the client sees only a [Refusal].
func Endpoint(
	status int, serve func(r *http.Request) (any, error), report func(ctx context.Context, err error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, h := status, w.Header()
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		answer, err := serve(r)
		if err != nil {
			report(r.Context(), err)
			status, answer = http.StatusServiceUnavailable, map[string]string{"error": "temporarily_unavailable"}
		}
		if refused, ok := errors.AsType[*Refusal](err); ok {
			status = http.StatusBadRequest
			answer = map[string]string{"error": refused.Code, "error_description": refused.Description}
			if refused.Code == CodeInvalidClient {
				status = http.StatusUnauthorized
			}
			if _, _, basic := r.BasicAuth(); basic && status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", `Basic realm="clients"`)
			}
		} else if err != nil {
			h.Set("Retry-After", "1")
		}
		if answer == nil {
			w.WriteHeader(status)
			return
		}
		doc, err := jsonx.Marshal(answer)
		if err != nil {
			report(r.Context(), err)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(doc)
	}
}

// Tokens is the response of a token endpoint (RFC 6749, section 5.1).
type Tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
}

// SameRedirect compares redirect URIs byte by byte, except for the port of a loopback address, which the
// system chooses (RFC 8252, section 7.3).
func SameRedirect(known, got string) bool { return WithoutPort(known) == WithoutPort(got) }

// WithoutPort returns a redirect URI without the port of a loopback address.
func WithoutPort(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || !IsLoopback(u.Hostname()) {
		return raw
	}
	return strings.Replace(raw, u.Host, strings.TrimSuffix(u.Host, ":"+u.Port()), 1)
}

// Document serves a JSON document that is public, so that any web page may read it.
func Document(doc []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			header.Set("Content-Type", "application/json")
			header.Set("Cache-Control", "public, max-age=300")
			_, _ = w.Write(doc)
		case http.MethodOptions:
			header.Set("Access-Control-Allow-Methods", "GET")
			header.Set("Access-Control-Allow-Headers", "MCP-Protocol-Version")
			w.WriteHeader(http.StatusNoContent)
		default:
			header.Set("Allow", "GET, HEAD, OPTIONS")
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
}
