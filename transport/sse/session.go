package sse

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
)

// sessionParam is the query parameter with the session ID, named as in the official SDKs.
const sessionParam = "sessionId"

// A session is the stream of one client.
type session struct {
	id    string
	owner string // key of the principal who opened it
	wire  *wire
}

// serveStream opens a session, which lasts as long as the stream.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request) {
	if _, stream := httpserve.Accepts(r.Header); !stream {
		http.Error(w, "Accept must list text/event-stream", http.StatusNotAcceptable)
		return
	}
	flush := httpserve.Flusher(w)
	if flush == nil {
		const text = "sse: the response cannot be streamed; does a middleware buffer it?"
		h.opts.Logger.WarnContext(r.Context(), text, "path", r.URL.Path)
		http.Error(w, "this server cannot stream", http.StatusInternalServerError)
		return
	}
	open := h.conns.Open(w)
	if open == nil {
		return
	}
	defer open.Close()
	// At least 128 random bits, in characters that a URL allows.
	s := &session{id: rand.Text(), owner: oauth.FromContext(r.Context()).Key()}
	s.wire = newWire(w, flush, h.opts.WriteTimeout)
	defer s.wire.leave()
	h.sessions.Store(s.id, s)
	defer h.sessions.Delete(s.id)
	if err := s.wire.open(h.endpoint(r, s.id)); err != nil {
		return
	}
	cut := func() { _ = s.wire.Close() }
	// When the client disconnects, everything ends at once.
	defer context.AfterFunc(r.Context(), cut)()
	if h.opts.KeepAlive > 0 {
		// Ends with the session.
		go s.wire.keepAlive(h.opts.KeepAlive)
	}
	err := open.Serve(r, s.wire, h.rpc, conn.Options{
		MaxInFlight:      h.opts.MaxInFlight,
		MaxInFlightBytes: h.opts.MaxInFlightBytes,
		DrainTimeout:     h.opts.ShutdownTimeout,
		WriteTimeout:     h.opts.WriteTimeout,
		Logger:           h.opts.Logger,
	}, h.opts.SessionIdle, cut)
	if err != nil {
		h.opts.Logger.WarnContext(r.Context(), "sse: session failed", "peer", r.RemoteAddr, "error", err)
	}
}

// endpoint returns the URL for the messages of a session. Its path is the one that the client
// requested, not the rest that a router left.
func (h *Handler) endpoint(r *http.Request, id string) string {
	base := h.opts.Endpoint
	if base == "" {
		u, err := url.ParseRequestURI(r.RequestURI)
		if err != nil {
			u = r.URL
		}
		// Two slashes would introduce another host name.
		base = "/" + strings.TrimLeft(u.EscapedPath(), "/")
	}
	sep := "?"
	if strings.Contains(base, "?") {
		sep = "&"
	}
	return base + sep + sessionParam + "=" + id
}

// servePost passes one message to its session.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) {
	if !httpserve.IsJSON(r.Header) {
		refuse(w, r, "Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	query := r.URL.Query()
	ids := query[sessionParam]
	if len(ids) != 1 {
		refuse(w, r, "send messages to the URL in the endpoint event of the stream", http.StatusBadRequest)
		return
	}
	s := h.session(ids[0], oauth.FromContext(r.Context()).Key())
	if s == nil {
		refuse(w, r, "session is unknown or has ended; open a new stream", http.StatusNotFound)
		return
	}
	held := conn.Share{All: &h.conns.Memory}
	defer held.Close() // the session has taken the message
	body, bad := httpserve.ReadBody(w, r, h.opts.MaxBodyBytes, &held)
	if bad != nil {
		if bad.Status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		refuse(w, r, bad.Text, bad.Status)
		return
	}
	m := posted{body, conn.Origin{Context: r.Context(), Header: transport.Header(r.Header)}}
	timeout := time.NewTimer(acceptTimeout)
	defer timeout.Stop()
	select {
	case s.wire.in <- m:
		w.WriteHeader(http.StatusAccepted)
	case <-s.wire.ended.Done():
		http.Error(w, "session has ended; open a new stream", http.StatusNotFound)
	case <-r.Context().Done():
	case <-timeout.C:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "the session takes no messages, since its stream is not read", http.StatusServiceUnavailable)
	}
}

// refuse sends an error response. The body of the request may not have been read yet.
func refuse(w http.ResponseWriter, r *http.Request, text string, status int) {
	httpserve.Discard(w, r)
	http.Error(w, text, status)
}
