package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Limits of resuming a stream (2025-11-25, basic/transports, "Resumability").
const (
	defaultRetry   = time.Second
	minRetry       = 100 * time.Millisecond // bounds of the retry time that the server sets
	maxRetry       = 30 * time.Second
	maxFruitless   = 5   // attempts in a row to resume a stream that bring no event
	maxReconnects  = 100 // attempts to resume the stream of one call
	maxResumeToken = 4096
)

// A resumption holds what is needed to resume a stream.
type resumption struct {
	id        string // of the last event; "" if the stream cannot be resumed
	retry     time.Duration
	fruitless int
}

// note stores the ID and the retry time of an event.
func (r *resumption) note(ev sse.Event) {
	r.fruitless = 0
	if len(ev.ID) <= maxResumeToken {
		r.id = ev.ID
	}
	if ev.HasRetry {
		r.retry = min(max(ev.Retry, minRetry), maxRetry)
	}
}

// wait waits until the stream may be resumed. The time doubles with each attempt that brings no
// event.
func (r *resumption) wait(ctx context.Context) error {
	d := r.retry
	if d == 0 {
		d = defaultRetry
	}
	for range r.fruitless {
		d = min(2*d, maxRetry)
	}
	r.fruitless++
	return sleep(ctx, d)
}

// stream reads events until the response. It resumes the stream if a legacy server ends it early.
func (h *httpConn) stream(ctx context.Context, x *exchange, body io.ReadCloser) (*jsonrpc.Response, error) {
	var r resumption
	resp, err := h.events(ctx, x, body, &r)
	for n := 0; errors.Is(err, errLost) && !x.version.Modern() && r.id != "" && ctx.Err() == nil; n++ {
		if n == maxReconnects || r.fruitless == maxFruitless {
			return nil, err
		}
		if err := r.wait(ctx); err != nil {
			return nil, err
		}
		again, fatal := h.get(ctx, r.id)
		if errors.Is(fatal, errNoSession) {
			return nil, fmt.Errorf("%w, and the session with it", errLost) // the server may have handled the request completely
		}
		if status, ok := errors.AsType[*StatusError](fatal); ok && status.Code == http.StatusBadRequest {
			return nil, fmt.Errorf("%w: %w", errLost, fatal) // the server no longer has the rest of the stream
		}
		if fatal != nil {
			return nil, fatal
		}
		if again == nil {
			continue
		}
		resp, err = h.resumed(ctx, x, again, &r)
	}
	return resp, err
}

// resumed reads a stream that get has opened, and closes it.
func (h *httpConn) resumed(ctx context.Context, x *exchange, body io.ReadCloser, r *resumption) (*jsonrpc.Response, error) {
	defer body.Close()
	begun := time.Now()
	resp, err := h.events(ctx, x, body, r)
	if time.Since(begun) >= steadyStream {
		r.fruitless = 0
	}
	return resp, err
}

// events reads one stream until the response. The error is errLost if the stream ends before.
func (h *httpConn) events(ctx context.Context, x *exchange, body io.Reader, r *resumption) (*jsonrpc.Response, error) {
	reader := sse.NewReader(body, h.c.cfg.maxMessage)
	for {
		ev, err := reader.Next()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			if _, ok := errors.AsType[*sse.SizeError](err); ok {
				return nil, invalid(x.method(), "an event is larger than %d bytes; raise client.MaxMessageBytes", h.c.cfg.maxMessage)
			}
			return nil, fmt.Errorf("%w: %w", errLost, err)
		}
		r.note(ev)
		if isEmpty(ev.Data) || ev.Type != "" && ev.Type != "message" {
			continue
		}
		resp, err := h.message(ctx, x, ev.Data)
		if err != nil {
			if x.req != nil {
				return nil, err
			}
			h.c.warn("client: the server sent something that is not a message", "error", err)
		}
		if resp != nil {
			return resp, nil
		}
	}
}

// get resumes the stream after the event id, or opens the stream of the session if id is empty. If
// both results are nil, the caller may try again; an error is final.
func (h *httpConn) get(ctx context.Context, id string) (io.ReadCloser, error) {
	v, session := h.state()
	req := h.newRequest(ctx, http.MethodGet, nil, v, session)
	if id != "" {
		req.Header.Set("Last-Event-ID", id)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, ctx.Err()
	}
	if resp.StatusCode == http.StatusOK && mediaType(resp.Header) == sse.ContentType {
		return resp.Body, nil
	}
	status := statusError(resp)
	switch {
	case status.Code == http.StatusNotFound && session != "":
		return nil, errNoSession
	case status.Code >= 500 || status.Code == http.StatusTooManyRequests || status.Code == http.StatusConflict:
		return nil, nil
	}
	return nil, status
}

// listen opens the stream of the session in the background, once for each session. The stream is
// optional for servers.
func (h *httpConn) listen() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.version.Modern() || h.listening != nil && h.heard == h.session {
		return nil
	}
	if h.listening != nil {
		h.listening()
	}
	var ctx context.Context
	ctx, h.listening = context.WithCancel(h.c.base)
	h.heard = h.session
	open := make(chan struct{})
	h.c.background(func(context.Context) { h.follow(ctx, sync.OnceFunc(func() { close(open) })) })
	return open
}

// steadyStream is how long a stream without events must last to count as a success.
const steadyStream = time.Second

// follow reads the stream of the session and reopens it when it ends. It calls open after the first
// response. If the stream cannot be reopened, the subscriptions end.
func (h *httpConn) follow(ctx context.Context, open func()) {
	defer open()
	x := &exchange{}
	var session string
	x.version, session = h.state()
	var r resumption
	for opened := false; ctx.Err() == nil; {
		body, err := h.get(ctx, r.id)
		if err != nil {
			h.refusedStream(ctx, session, opened, err)
			return
		}
		open()
		if body != nil {
			opened = true
			_, err = h.resumed(ctx, x, body, &r)
			h.c.log.Debug("client: the stream of the session ended", "error", err)
		}
		if r.fruitless > maxFruitless {
			h.unfollow(ctx, fmt.Errorf("client: the stream of the session ended %d times without an event; call Listen again", maxFruitless+1))
			return
		}
		if r.wait(ctx) != nil {
			return
		}
	}
}

// refusedStream handles that the server does not open the stream of a session, which is optional, or
// does not open it again.
func (h *httpConn) refusedStream(ctx context.Context, session string, opened bool, why error) {
	if !opened {
		if status, ok := errors.AsType[*StatusError](why); ok && status.Code != http.StatusMethodNotAllowed && status.Code != http.StatusNotFound {
			h.c.warn("client: the server refuses the stream of the session", "error", why)
		}
		return
	}
	if _, now := h.state(); now != session || ctx.Err() != nil {
		return // another session has taken its place, or the client is closed
	}
	if errors.Is(why, errNoSession) {
		if !h.c.changes.listening() && !h.c.cfg.handlers.unasked() {
			return // the next call begins another session
		}
		// Not with ctx, which ends when the stream of the new session is opened.
		if why = h.c.renewSession(h.c.base, h.c.agreed.Load()); why == nil || h.c.base.Err() != nil {
			return
		}
	}
	h.unfollow(ctx, fmt.Errorf("client: the stream of the session cannot be opened again; call Listen again: %w", why))
}

// unfollow gives up the stream of the session, and ends the subscriptions. The next Listen reopens
// it.
func (h *httpConn) unfollow(ctx context.Context, why error) {
	h.mu.Lock()
	if ctx.Err() == nil { // otherwise a newer stream has replaced it
		h.listening()
		h.listening = nil
	}
	h.mu.Unlock()
	h.c.changes.end(why, false)
}
