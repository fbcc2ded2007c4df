package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A watch is a subscription to a resource at the remote server, on one connection after the other.
type watch struct {
	begun  time.Time     // when a client last subscribed; guarded by remote.mu
	once   sync.Once     // of agree
	agreed chan struct{} // closed when the server has responded
	err    error         // its refusal; set before agreed is closed
}

// agree notes the first response of the server. It returns false if there was one before.
func (w *watch) agree(err error) (first bool) {
	w.once.Do(func() {
		w.err, first = err, true
		close(w.agreed)
	})
	return first
}

// subscribe watches a resource at the remote server, if it is not watched already. The error means
// that the server does not serve the subscription.
func (r *remote) subscribe(ctx context.Context, uri string) error {
	r.mu.Lock()
	w := r.watched[uri]
	switch {
	case w != nil:
	case len(r.watched) >= maxWatched || r.closed:
		r.mu.Unlock()
		return mcpkit.Errorf("too many resources of the remote server %q are watched", r.title())
	default:
		w = &watch{agreed: make(chan struct{})}
		r.watched[uri] = w
		// Ends when no client is subscribed, or with Close.
		r.tasks.Go(func() { r.watch(uri, w) })
	}
	w.begun = time.Now()
	r.mu.Unlock()
	select {
	case <-w.agreed:
	case <-ctx.Done():
		return ctx.Err()
	}
	if rpc, ok := errors.AsType[*jsonrpc.Error](w.err); ok {
		return &jsonrpc.Error{Code: rpc.Code, Message: rpc.Message, Data: rpc.Data}
	}
	if w.err != nil {
		return r.unreachable(ctx, w.err)
	}
	return nil
}

// watch forwards updates of a resource until no client is subscribed.
func (r *remote) watch(uri string, w *watch) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := r.forward(uri, w)
		if w.agree(err) || err == nil {
			break // it was refused at once, or nobody wants to know
		}
		r.config.logger.Debug("proxy: a resource is not watched at the moment", "server", r.title(), "uri", uri, "error", err)
		if _, refused := errors.AsType[*jsonrpc.Error](err); refused || !pause(r.base, wait) || r.unheard(uri, w) {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched[uri] == w {
		delete(r.watched, uri)
	}
}

// forward subscribes on the connection, and forwards the updates until the subscription ends. The
// error is nil if no client is subscribed.
func (r *remote) forward(uri string, w *watch) error {
	l, err := r.connect(r.base)
	if err != nil {
		return err
	}
	sub, err := l.client.Subscribe(l.ctx, uri)
	if err != nil {
		return err
	}
	defer sub.Close()
	if len(sub.Filter().ResourceSubscriptions) == 0 {
		const message = "the remote server %q does not tell when this resource changes"
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, message, r.title())
	}
	if !w.agree(nil) {
		r.server.ResourceUpdated(uri) // an update may have been missed
	}
	for {
		next, cancel := context.WithTimeout(l.ctx, unheardFor)
		change, err := sub.Next(next)
		cancel()
		switch {
		case err == nil:
			r.server.ResourceUpdated(change.URI)
		case l.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			if l.client.Shared() && l.lost(err) {
				r.giveUp(l, err)
			}
			return err
		}
		if r.unheard(uri, w) {
			return nil
		}
	}
}

// unheard reports whether no client is subscribed to the resource, and then removes its watch.
func (r *remote) unheard(uri string, w *watch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(w.begun) < unheardFor || r.server.Subscribed(uri) {
		return false
	}
	if r.watched[uri] == w {
		delete(r.watched, uri)
	}
	return true
}
