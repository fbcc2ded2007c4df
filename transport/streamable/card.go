package streamable

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/transport"
)

const cardName = "server-card"

// CardPath returns the path of the server card of a server that is mounted at path. It may end
// in "*", as paths of echo do.
func CardPath(path string) string { return strings.TrimRight(path, "/*") + "/" + cardName }

var errNoCard = errors.New("there is no server card")

// isCard reports whether a request is about the server card. Nothing else is served at such a path, since
// programs may leave it without authentication.
func isCard(r *http.Request) bool { return path.Base(r.URL.Path) == cardName }

// serveCard serves the server card (SEP-2127), which is for everybody, on pages of all origins.
func (h *Handler) serveCard(w http.ResponseWriter, r *http.Request) {
	card, err := []byte(nil), errNoCard
	if rpc, ok := h.rpc.(transport.CardHandler); ok && h.opts.Card != "-" {
		card, err = rpc.ServerCard(h.opts.Card)
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Allow-Methods", "GET")
	header.Set("Access-Control-Allow-Headers", "Content-Type, If-None-Match")
	header.Set("Access-Control-Expose-Headers", "ETag")
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusNotFound)
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		sum := sha256.Sum256(card)
		header.Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
		header.Set("Cache-Control", "public, max-age=3600")
		header.Set("Content-Type", "application/mcp-server-card+json")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(card))
	default:
		header.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "only the server card is served here, to GET", http.StatusMethodNotAllowed)
	}
}
