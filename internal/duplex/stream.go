package duplex

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A QuietError cancels a call whose streamed response produced nothing for Timeout, since other
// responses wait behind it.
type QuietError struct{ Timeout time.Duration }

// Error names the timeout.
func (e *QuietError) Error() string {
	return fmt.Sprintf("given up, since the rest of the result did not come within %v", e.Timeout)
}

// Unwrap returns context.DeadlineExceeded: the peer has not cancelled the call.
func (e *QuietError) Unwrap() error { return context.DeadlineExceeded }

// streams reports whether resp has a streamed result.
func streams(resp *jsonrpc.Response) bool {
	return resp != nil && resp.Stream != nil && resp.Error == nil
}

// stream sends the response of c part by part. The call is in flight, and can be cancelled, until
// it is written.
func (c *call) stream(resp *jsonrpc.Response) {
	if c.handshake != nil {
		close(c.handshake)
	}
	defer c.entry.End()
	if !c.entry.Wanted() {
		return
	}
	out := *resp
	out.ID = c.entry.Request.ID
	ctx := c.entry.Context()
	quiet := func(timeout time.Duration) { c.entry.Cancel(&QuietError{timeout}) }
	// The peer may reuse the ID once it has the whole line.
	err := c.l.out.stream(ctx, &out, quiet, func() { c.entry.End() })
	if err != nil && !gone(err) && c.entry.Wanted() && c.l.base.Err() == nil {
		c.l.opts.Logger.Error("duplex: a response was not sent", "method", c.entry.Request.Method, "error", err)
	}
}
