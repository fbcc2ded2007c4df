package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// remote is the service of a proxy.
type remote struct {
	config
	server *mcpkit.Server
	items  *mcpkit.ItemSet // of server
	said   atomic.Value    // the name that the remote server reports
	drain  time.Duration   // for calls on a link that is no longer current

	base   context.Context // of background work; ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup     // background work; none is added after Close
	flight singleflight.Group // attempts to connect, and to watch a resource

	connecting sync.Mutex          // held while a link or its lists become current
	target     any                 // where to connect; nil if a Switch has no target yet; guarded by connecting
	opts       []client.DialOption // after those of config; guarded by connecting
	retryAt    time.Time           // when to connect again after a failure; guarded by connecting
	lastErr    error               // that failure; guarded by connecting

	link atomic.Pointer[link] // the current one, or nil; changed while mu is held

	mu      sync.Mutex
	watched map[string]time.Time // when a client last subscribed, by URI; guarded by mu
	parked  map[string]*running  // by a key in the caller's sealed state; guarded by mu
}

// A link is one connection to the remote server. Its exported methods answer the questions of that
// server.
type link struct {
	proxy  *remote
	client *client.Client
	ctx    context.Context // ends with the connection
	end    context.CancelFunc
	lists  *client.Subscription // to list changes; nil if the remote server has none

	running map[*running]struct{} // calls that were sent; guarded by remote.mu
	unsure  bool                  // a call ended without a response, and the remote server may still run it; guarded by remote.mu
	calls   sync.WaitGroup        // the same calls; none is added once the link is no longer current
}

// Start connects and reads the lists.
func (r *remote) Start(ctx context.Context) error {
	r.base, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if r.target == nil {
		return nil
	}
	_, err := r.connect(ctx)
	switch {
	case err == nil:
		return nil
	case r.optional:
		r.warn(ctx, "the remote server cannot be reached; its tools appear when it is connected", "error", err)
		// Ends when it is connected, or with Close.
		r.spawn(func() {
			for err != nil && pause(r.base) {
				_, err = r.connect(r.base)
			}
		})
		return nil
	}
	r.cancel()
	return fmt.Errorf("proxy: %s: %w", r.title(), err)
}

// Close disconnects and ends the calls that wait for answers of their callers.
func (r *remote) Close() error {
	if r.cancel == nil {
		return nil
	}
	r.mu.Lock()
	r.cancel()
	l := r.link.Swap(nil)
	clear(r.watched)
	r.mu.Unlock()
	r.connecting.Lock() // attempts to connect have ended
	r.retryAt = time.Time{}
	r.connecting.Unlock()
	var err error
	if l != nil {
		err = l.close()
	}
	r.tasks.Wait()
	return err
}

// close disconnects, and waits until the calls have ended.
func (l *link) close() error {
	l.end()
	err := l.client.Close()
	l.calls.Wait()
	return err
}

// spawn runs f on a goroutine that Close waits for; after Close, here.
func (r *remote) spawn(f func()) {
	r.mu.Lock()
	open := r.base.Err() == nil
	if open {
		r.tasks.Go(f)
	}
	r.mu.Unlock()
	if !open {
		f()
	}
}

// pause waits before the next attempt. It returns false if ctx ends before.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(retry):
		return true
	case <-ctx.Done():
		return false
	}
}

// current returns the connection, or nil if there is none or it has ended.
func (r *remote) current() *link {
	l := r.link.Load()
	if l == nil {
		return nil
	}
	select {
	case <-l.client.Done():
		return nil
	default:
		return l
	}
}

// connect returns the connection, or makes one. The attempt does not end with ctx, since other callers
// wait for it as well.
func (r *remote) connect(ctx context.Context) (*link, error) {
	if l := r.current(); l != nil {
		return l, nil
	}
	select {
	case made := <-r.flight.DoChan("connect", func() (any, error) { return r.connectNow() }):
		return made.Val.(*link), made.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connectNow returns the connection, or makes one, unless the last attempt has just failed.
func (r *remote) connectNow() (l *link, err error) {
	r.connecting.Lock()
	defer r.connecting.Unlock()
	if l := r.current(); l != nil {
		return l, nil
	}
	if r.target == nil {
		return nil, errors.New("no remote server is connected yet")
	}
	if time.Now().Before(r.retryAt) {
		return nil, r.lastErr
	}
	defer func() {
		if v := recover(); v != nil { // of a function that the program gave to client.Connect, for example
			r.logger.Error("proxy: connecting panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = errors.New("proxy: connecting panicked")
		}
		if err != nil {
			r.retryAt, r.lastErr = time.Now().Add(retry), err
		}
	}()
	ctx, cancel := context.WithTimeout(r.base, connectTime)
	defer cancel()
	return r.dial(ctx, r.target, r.opts)
}

// dial makes a connection, in place of the one that there may be. The caller holds connecting.
func (r *remote) dial(ctx context.Context, target any, opts []client.DialOption) (_ *link, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.base, cancel)()
	l := &link{proxy: r, running: map[*running]struct{}{}}
	l.ctx, l.end = context.WithCancel(r.base)
	sampling := &protocol.SamplingCapability{Tools: protocol.Object{}}
	own := []client.DialOption{client.Handlers(l), client.Capabilities(protocol.ClientCapabilities{Sampling: sampling})}
	l.client, err = client.Dial(ctx, target, slices.Concat(r.config.dial, opts, own)...)
	if err != nil {
		l.end()
		return nil, err
	}
	if err := r.take(ctx, l); err != nil {
		_ = l.close()
		return nil, err
	}
	// Ends with the connection.
	r.spawn(func() { r.follow(l) })
	return l, nil
}

// take reads the lists of a new connection, and makes it the current one. Clients are notified of
// the lists after that, so that their next calls reach the new server.
func (r *remote) take(ctx context.Context, l *link) error {
	c := l.client
	r.said.Store(c.Server().Name)
	if !c.Version().Modern() && c.Capabilities().Logging != nil && l.logs() {
		// Sessions have one log level. The proxy filters messages for each call.
		_ = c.SetLogLevel(ctx, protocol.LevelDebug)
	}
	if err := l.listen(ctx); err != nil {
		r.warn(ctx, "no list-changed notifications from the remote server", "error", err)
	}
	items, err := r.read(ctx, l)
	if err != nil {
		return err
	}
	old := r.link.Load()
	if !r.replace(old, l) {
		return r.base.Err()
	}
	if err := r.publish(l, items); err != nil {
		r.replace(l, old)
		return err
	}
	if old != nil {
		r.retire(old)
	}
	return nil
}

// replace makes l the current link in place of old. It returns false after Close.
func (r *remote) replace(old, l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.base.Err() == nil && r.link.CompareAndSwap(old, l)
}

// retire disconnects a link that is no longer current, once its calls have ended.
func (r *remote) retire(l *link) {
	// Ends when the calls have ended, after the drain time at the latest, or with Close.
	r.spawn(func() {
		limit := time.AfterFunc(r.drain, func() {
			r.warn(l.ctx, "calls on the previous server took too long and are cancelled", "after", r.drain)
			l.end()
		})
		l.calls.Wait()
		limit.Stop()
		_ = l.close()
	})
}

// listen subscribes to list changes, before the lists are read, so that none is missed.
func (l *link) listen(ctx context.Context) error {
	caps := l.client.Capabilities()
	filter := caps.ListChanges()
	if !filter.ToolsListChanged && !filter.PromptsListChanged && !filter.ResourcesListChanged {
		return nil
	}
	lists, err := l.client.Listen(ctx, filter)
	if err == nil {
		l.lists = lists
	}
	return err
}

// follow reads the lists again after each change.
func (r *remote) follow(l *link) {
	for l.lists != nil {
		_, err := l.lists.Next(l.ctx)
		if err != nil {
			r.logger.Debug("proxy: no list-changed notifications at the moment", "server", r.title(), "error", err)
			_ = l.lists.Close()
			if l.client.Shared() || !pause(l.ctx) {
				return
			}
			if l.listen(l.ctx) != nil {
				continue // Next fails again
			}
		}
		if err := r.refresh(l); err != nil && l.ctx.Err() == nil {
			r.logger.Error("proxy: the changed lists of the remote server were not adopted", "server", r.title(), "error", err)
		}
	}
}

// refresh adopts the changed lists of the remote server.
func (r *remote) refresh(l *link) error {
	items, err := r.read(l.ctx, l)
	if err != nil {
		return err
	}
	r.connecting.Lock()
	defer r.connecting.Unlock()
	if r.link.Load() != l {
		return nil
	}
	return r.publish(l, items)
}

// publish makes items those of the proxy. The caller holds connecting.
func (r *remote) publish(l *link, items []mcpkit.Item) error {
	if err := r.items.Replace(items...); err != nil {
		return err
	}
	if info := l.client.Server(); info.Name != "" {
		r.server.Introduce(info, l.client.Instructions())
	}
	return nil
}

// title returns the name of the remote server.
func (r *remote) title() string {
	said, _ := r.said.Load().(string)
	return cmp.Or(r.name, said, "remote")
}

// warn logs a message about the remote server.
func (r *remote) warn(ctx context.Context, message string, args ...any) {
	r.logger.WarnContext(ctx, "proxy: "+message, append([]any{"server", r.title()}, args...)...)
}
