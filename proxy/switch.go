package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
)

// A Switch is a target for [New] whose remote server changes while the proxy serves, such as a
// program that is built again. Callers stay connected, and are notified of the lists that differ.
// A Switch belongs to one proxy. The zero value has no remote server yet: calls fail until
// [Switch.Connect] has connected to one. It is safe for concurrent use.
type Switch struct {
	// Drain is how long calls in flight may take to finish on the previous server. Then it is
	// disconnected, and they fail. Zero means 30 seconds. Set it before New.
	Drain time.Duration

	remote atomic.Pointer[remote] // set by New
}

const defaultDrain = 30 * time.Second

// errNoServer is the error of calls before the first Connect.
var errNoServer = errors.New("no remote server is connected yet")

// Connect connects to another remote server, reads its lists, and directs the calls that follow to
// it. target is as for [New], and opts follow those of [Dial]. Calls in flight finish on the
// previous server, as do calls that wait for the answer to a question. If the connection breaks
// later, the next call connects to the same target again.
//
// After an error, everything stays as it was. The proxy must have started.
func (s *Switch) Connect(ctx context.Context, target any, opts ...client.DialOption) error {
	r := s.remote.Load()
	if r == nil || r.base == nil {
		return errors.New("proxy: Switch.Connect: the proxy has not started")
	}
	r.connecting.Lock()
	defer r.connecting.Unlock()
	next := destination{target: target, opts: opts}
	if _, err := r.dial(ctx, next); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	r.to = next
	r.backoff, r.retryAt = 0, time.Time{}
	return nil
}

// Connected reports whether there is a connection to a remote server.
func (s *Switch) Connected() bool {
	r := s.remote.Load()
	return r != nil && r.link.Load() != nil
}

// drain returns how long calls may take to finish on a previous server.
func (r *remote) drain() time.Duration {
	if s, ok := r.target.(*Switch); ok && s.Drain > 0 {
		return s.Drain
	}
	return defaultDrain
}

// retire disconnects a link that was replaced, once its calls have finished.
func (r *remote) retire(l *link) {
	r.mu.Lock()
	l.retired = true
	r.mu.Unlock()
	idle := make(chan struct{})
	// Each ends when the calls have finished, after the drain time at the latest, or with Close.
	r.spawn(func() { l.calls.Wait(); close(idle) })
	waiting := r.spawn(func() {
		select {
		case <-idle:
		case <-time.After(r.drain()):
			r.warn("proxy: calls on the previous server took too long and are cancelled", "after", r.drain())
		case <-r.base.Done():
		}
		l.end()
		_ = l.client.Close()
	})
	if !waiting {
		l.end()
		_ = l.client.Close()
	}
}

// finished removes a call.
func (r *remote) finished(run *running) {
	r.mu.Lock()
	delete(r.running, run)
	r.mu.Unlock()
	run.link.calls.Done()
}
