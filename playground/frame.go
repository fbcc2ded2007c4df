package playground

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Limits of frames.
const (
	// maxFrames limits the pages of MCP Apps that the playground can show.
	maxFrames = 16
	// maxFrameBytes limits the page of an MCP App.
	maxFrameBytes = 16 << 20
)

// A frame is the page of an MCP App with its own content security policy. It has an address that
// nobody can guess, since the browser loads it without the token.
type frame struct {
	ID   string `json:"id"`
	html string
	csp  string
}

// frames are the pages that are shown.
type frames struct {
	mu  sync.Mutex
	all []*frame // guarded by mu, the newest last
}

// add adds a page.
func (f *frames) add(html, csp string) *frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == maxFrames {
		f.all = slices.Delete(f.all, 0, 1)
	}
	added := &frame{rand.Text(), html, csp}
	f.all = append(f.all, added)
	return added
}

func (f *frames) find(id string) *frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.all {
		if one.ID == id {
			return one
		}
	}
	return nil
}

// A sandbox is what the page of an MCP App asks for: the member ui of its _meta.
type sandbox struct {
	CSP struct {
		Connect   []string `json:"connectDomains"`
		Resources []string `json:"resourceDomains"`
		Frames    []string `json:"frameDomains"`
	} `json:"csp"`
}

// serveFrame takes the page of an MCP App (POST, with the token) and returns its address, or serves
// it (GET).
func (h *Handler) serveFrame(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet:
		f := h.frames.find(r.URL.Query().Get("id"))
		if f == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", f.csp)
		_, _ = io.WriteString(w, f.html) // the browser is gone
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "playground: use GET or POST", http.StatusMethodNotAllowed)
		return
	case !h.authorized(r):
		httpserve.Discard(w, r)
		http.Error(w, "playground: the token is missing or wrong", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFrameBytes))
	if err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "playground: the page is larger than 16 MiB, or was cut off", status)
		return
	}
	var in struct {
		HTML string  `json:"html"`
		UI   sandbox `json:"ui"`
	}
	if err := jsonx.Unmarshal(body, &in); err != nil {
		http.Error(w, "playground: "+err.Error(), http.StatusBadRequest)
		return
	}
	csp, err := in.UI.policy(r.Host)
	if err != nil {
		http.Error(w, "playground: "+err.Error(), http.StatusBadRequest)
		return
	}
	writeJSON(w, h.frames.add(in.HTML, csp))
}

// source is what a policy may name: an origin, perhaps with all hosts below a domain. Anything else
// could add to the policy.
var source = regexp.MustCompile(`^(https?|wss?)://((\*\.)?[A-Za-z0-9\-]+(\.[A-Za-z0-9\-]+)*|\[[0-9A-Fa-f:]+\])(:[0-9]+)?$`)

// isOwn reports whether a source is, or includes, the playground at host. Its port belongs to it on
// all loopback hosts.
func isOwn(source, host string) bool {
	u, err := url.Parse(source)
	self, selfErr := url.Parse("//" + host)
	if err != nil || selfErr != nil {
		return true
	}
	includes, _ := path.Match(strings.ToLower(u.Host), strings.ToLower(host))
	return includes || u.Port() == self.Port() && httpserve.IsLoopback(u.Hostname())
}

// policy returns the content security policy of the page, which has an origin of its own that
// nothing else has. host is that of the playground.
func (s *sandbox) policy(host string) (string, error) {
	for _, origin := range slices.Concat(s.CSP.Connect, s.CSP.Resources, s.CSP.Frames) {
		if !source.MatchString(origin) || isOwn(origin, host) {
			return "", fmt.Errorf("the page names %.100q, which is not the origin of another server", origin)
		}
	}
	list := func(always string, origins []string) string {
		if len(origins) == 0 {
			return always
		}
		return strings.TrimPrefix(strings.TrimPrefix(always, "'none'")+" "+strings.Join(origins, " "), " ")
	}
	resources := s.CSP.Resources
	return strings.Join([]string{
		"default-src 'none'",
		"script-src " + list("'unsafe-inline'", resources),
		"style-src " + list("'unsafe-inline'", resources),
		"img-src " + list("data:", resources),
		"media-src " + list("data:", resources),
		"font-src " + list("data:", resources),
		"connect-src " + list("'none'", s.CSP.Connect),
		"frame-src " + list("'none'", s.CSP.Frames),
		"base-uri 'none'",
		"frame-ancestors 'self'",
		"sandbox allow-scripts allow-forms",
	}, "; "), nil
}
