// Package playground serves a page on which developers try a server, and see what happens inside of
// it.
//
//	play := playground.NewHandler(srv, nil)
//	defer play.Close()
//	e.Any("/playground/*", echo.WrapHandler(play))
//	log.Print(play.URL("http://127.0.0.1:8080/playground/"))
//
// The page lists what the server offers, makes forms from its schemas, calls, answers questions and
// tasks, and shows MCP Apps. It is a client of the server, with any protocol version since
// 2025-11-25. Its timeline shows calls of all clients as the server sees them: middleware, the
// method, rounds, values of [mcpkit.Once], faults of arguments and log lines.
//
// The page is for the developer of the server, on the same machine. The handler serves requests that
// arrive at a loopback address only, from its own page only, and needs a random token that is part
// of [Handler.URL]. Do not mount it in production.
package playground

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// TokenHeader is the header field with the token. Only the files of the page are served without it.
const TokenHeader = "Playground-Token"

// Options configures a [Handler]. The zero value and nil are ready to use.
type Options struct {
	// AllowedHosts are the hosts, such as "devbox:8080" or "devbox.example", that requests may name
	// in their Host field. With at least one, the handler also serves requests that do not arrive at
	// a loopback address: everybody who knows the token can call the server. "*" is not a host.
	AllowedHosts []string

	// Token is the token of the page. Empty means a random one.
	Token string

	// Principal is who the page calls the server as. Nil means the principal of the HTTP request's
	// context, if middleware in front has set one.
	Principal *oauth.Principal

	// Target is what commands that the page copies call: a URL, or a command line for stdio. Empty
	// means the handler itself, whose commands have the token.
	Target string

	// Proxy says that the server forwards calls to another program, whose steps [Handler.Report]
	// adds. The steps of the server itself are left out.
	Proxy bool

	// MaxEntries limits the calls of the timeline. Zero means 10,000.
	MaxEntries int

	// Logger receives warnings and errors meant for the operator. Nil means slog.Default.
	Logger *slog.Logger
}

// A Handler serves the page of one server. It serves all paths below the one that it is mounted at.
// Create one with [NewHandler]. It is safe for concurrent use.
type Handler struct {
	opts     Options
	token    string
	guard    httpserve.Guard
	mcp      *streamable.Handler
	timeline *timeline
	frames   frames
}

// NewHandler returns a Handler for srv, whose calls it observes from now on: it
// uses middleware outside of what the server has. It panics if srv is nil, or
// if "*" is an allowed host.
func NewHandler(srv *mcpkit.Server, opts *Options) *Handler {
	if srv == nil {
		panic("playground: NewHandler: the server is nil; make one with mcpkit.New, and look at its error")
	}
	h := &Handler{}
	if opts != nil {
		h.opts = *opts
	}
	if slices.Contains(h.opts.AllowedHosts, "*") {
		panic(`playground: NewHandler: AllowedHosts has "*"; name the hosts`)
	}
	h.opts.Logger = cmp.Or(h.opts.Logger, slog.Default())
	h.token = cmp.Or(h.opts.Token, rand.Text())
	h.guard = httpserve.NewGuard(nil, h.opts.AllowedHosts)
	h.mcp = streamable.NewHandler(srv, &streamable.Options{AllowedHosts: h.opts.AllowedHosts, Logger: h.opts.Logger})
	h.timeline = newTimeline(httpserve.Positive(h.opts.MaxEntries, defaultMaxEntries), h.opts.Proxy)
	srv.Use(h.timeline.middleware)
	return h
}

// URL returns the address of the page with the token. base is the URL that the handler is mounted
// at, such as "http://127.0.0.1:8080/playground/".
func (h *Handler) URL(base string) string {
	return strings.TrimSuffix(base, "/") + "/#token=" + url.QueryEscape(h.token)
}

// Close stops observing the server, whose middleware then does nothing, and ends the page's streams
// and sessions. It does not close the server. It may be called more than once.
func (h *Handler) Close() {
	h.timeline.stop()
	h.mcp.Close()
}

//go:embed page
var page embed.FS

// files are the files of the page.
var files = func() fs.FS {
	sub, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // it is embedded
	}
	return sub
}()

// policy is the content security policy of the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; " +
	"connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if why := h.refuse(r); why != "" {
		httpserve.Discard(w, r)
		http.Error(w, "playground: "+why, http.StatusForbidden)
		return
	}
	// Paths are relative to the page, wherever it is mounted.
	name := path.Base("/" + r.URL.Path)
	if strings.HasSuffix(r.URL.Path, "/") || r.URL.Path == "" {
		name = "index.html"
	}
	switch name {
	case "frame":
		h.serveFrame(w, r)
	case "mcp", "timeline", "info":
		if !h.authorized(r) {
			httpserve.Discard(w, r)
			http.Error(w, "playground: the token is missing or wrong; open the address that the program printed when it started", http.StatusUnauthorized)
			return
		}
		h.serveAPI(w, r, name)
	default:
		h.serveFile(w, r, name)
	}
}

// serveAPI serves what needs the token.
func (h *Handler) serveAPI(w http.ResponseWriter, r *http.Request, name string) {
	switch {
	case name == "mcp":
		if p := h.opts.Principal; p != nil {
			r = r.WithContext(oauth.NewContext(r.Context(), p))
		}
		h.mcp.ServeHTTP(w, r)
	case r.Method == http.MethodDelete && name == "timeline":
		h.timeline.clear()
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET")
		http.Error(w, "playground: use GET", http.StatusMethodNotAllowed)
	case name == "timeline":
		h.serveTimeline(w, r)
	default:
		writeJSON(w, map[string]any{"target": h.opts.Target, "maxEntries": h.timeline.max})
	}
}

// refuse returns why r is refused, or "".
func (h *Handler) refuse(r *http.Request) string {
	if len(h.opts.AllowedHosts) == 0 && !onLoopback(r) {
		return "requests have to arrive at a loopback address; name the host in Options.AllowedHosts to serve others"
	}
	if why := h.guard.Refuse(r); why != "" {
		return why
	}
	// Pages of other ports of this machine are foreign here.
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return fmt.Sprintf("origin %+.100q is not that of the page", origin)
		}
	}
	return ""
}

// onLoopback reports whether r arrived at a loopback address.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

func (h *Handler) authorized(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(TokenHeader)), []byte(h.token)) == 1
}

// serveFile serves a file of the page.
func (h *Handler) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "playground: use GET", http.StatusMethodNotAllowed)
		return
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		if path.Ext(name) != "" {
			http.NotFound(w, r)
			return
		}
		// The page needs the slash, since its addresses are relative.
		w.Header().Set("Location", "./"+url.PathEscape(name)+"/")
		w.WriteHeader(http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Content-Security-Policy", policy)
	_, _ = w.Write(text) // the browser is gone
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := jsonx.Marshal(v)
	if err != nil {
		http.Error(w, "playground: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the browser is gone
}
