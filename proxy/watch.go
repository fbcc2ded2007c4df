package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// subscribe watches a resource at the remote server, if it is not watched already. The error means
// that the server does not serve the subscription.
func (r *remote) subscribe(ctx context.Context, uri string) error {
	select {
	case begun := <-r.flight.DoChan("watch "+uri, func() (any, error) { return nil, r.watch(uri) }):
		if _, refused := errors.AsType[*jsonrpc.Error](begun.Err); refused || begun.Err == nil {
			return begun.Err
		}
		return r.unreachable(ctx, begun.Err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watch begins to watch a resource, or notes that one more client has subscribed to it.
func (r *remote) watch(uri string) error {
	r.mu.Lock()
	_, watched := r.watched[uri]
	full := !watched && len(r.watched) >= maxWatched
	if !full {
		r.watched[uri] = time.Now()
	}
	r.mu.Unlock()
	switch {
	case watched:
		return nil
	case full:
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "too many resources of %q are watched", r.title())
	}
	l, sub, err := r.open(uri)
	if err != nil {
		r.unwatch(uri)
		return err
	}
	// Ends when no client is subscribed, or with Close.
	r.spawn(func() { r.forward(uri, l, sub) })
	return nil
}

func (r *remote) unwatch(uri string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watched, uri)
}

// open subscribes to a resource at the remote server.
func (r *remote) open(uri string) (*link, *client.Subscription, error) {
	l, err := r.connect(r.base)
	if err != nil {
		return nil, nil, err
	}
	sub, err := l.client.Subscribe(l.ctx, uri)
	if err != nil {
		return nil, nil, err
	}
	if len(sub.Filter().ResourceSubscriptions) == 0 {
		_ = sub.Close()
		const text = "the remote server %q does not tell when this resource changes"
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, text, r.title())
	}
	return l, sub, nil
}

// forward forwards the updates of a resource until no client is subscribed. If the subscription ends,
// it makes another.
func (r *remote) forward(uri string, l *link, sub *client.Subscription) {
	for !r.unheard(uri) {
		if sub == nil {
			if !pause(r.base) {
				return
			}
			var err error
			l, sub, err = r.open(uri)
			if _, refused := errors.AsType[*jsonrpc.Error](err); refused {
				r.unwatch(uri)
				return
			}
			if err != nil {
				r.logger.Debug("proxy: a resource is not watched at the moment", "server", r.title(), "uri", uri, "error", err)
				continue
			}
			r.server.ResourceUpdated(uri) // an update may have been missed
		}
		next, cancel := context.WithTimeout(l.ctx, unheardFor)
		change, err := sub.Next(next)
		cancel()
		switch {
		case err == nil:
			r.server.ResourceUpdated(change.URI)
		case l.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			_ = sub.Close()
			sub = nil
		}
	}
	if sub != nil {
		_ = sub.Close()
	}
}

// unheard reports whether no client is subscribed to the resource. Then the next one begins to watch
// it again.
func (r *remote) unheard(uri string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.watched[uri]) < unheardFor || r.server.Subscribed(uri) {
		return false
	}
	delete(r.watched, uri)
	return true
}
