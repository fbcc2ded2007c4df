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
	if _, err := r.dial(ctx, target, opts); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	r.target, r.opts, r.retryAt = target, opts, time.Time{}
	return nil
}
