package duplex

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// A QuietError is the cause of the end of a call's context whose response was begun, and gave nothing more for so long that others could
// not be made to wait for it any longer.
type QuietError struct{ Timeout time.Duration }

// Error says for how long.
func (e *QuietError) Error() string {
	return fmt.Sprintf("given up, since the rest of the result did not come within %v", e.Timeout)
}

// Unwrap returns context.DeadlineExceeded: it was not the peer who ended the call.
func (e *QuietError) Unwrap() error { return context.DeadlineExceeded }

// streams reports whether resp is written part by part.
func streams(resp *jsonrpc.Response) bool {
	return resp != nil && resp.Stream != nil && resp.Error == nil
}

// stream sends the response of c part by part: until it is written, the call is in flight and can be cancelled.
func (c *call) stream(resp *jsonrpc.Response) {
	if c.handshake != nil {
		close(c.handshake)
	}
	defer c.entry.End()
	if !c.entry.Wanted() {
		return
	}
	out := *resp
	out.ID = c.req.ID
	ctx := c.entry.Context()
	quiet := func(timeout time.Duration) { c.entry.Cancel(&QuietError{timeout}) }
	// The peer may use the ID again as soon as it has the whole line.
	err := c.l.out.stream(ctx, &out, quiet, func() { c.entry.End() })
	if err != nil && !gone(err) && c.entry.Wanted() && c.l.base.Err() == nil {
		c.l.opts.Logger.Error("duplex: a response was not sent", "method", c.req.Method, "error", err)
	}
}
