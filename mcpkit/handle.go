package mcpkit

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// Handle gives a Server a method of the program's own, which clients of every revision may call: the params are decoded
// into Req, and Resp is the result, an object. Errors become protocol errors. The name needs a prefix of its own, such as
// "example.com/reindex": names without a dot before the slash belong to the protocol.
func Handle[Req, Resp any](s *Server, method string, fn func(ctx context.Context, req Req) (Resp, error)) error {
	if methods[method] != nil {
		return fmt.Errorf("mcpkit: Handle(%q): the method is the protocol's own", method)
	}
	if method == "" || strings.HasPrefix(method, "rpc.") || strings.HasPrefix(method, "notifications/") {
		return fmt.Errorf("mcpkit: Handle(%q): not a name for a method; write for example \"example.com/reindex\"", method)
	}
	row := &methodRow{method: method, from: protocol.V20241105, until: protocol.V20260728,
		handle: func(ctx context.Context, call *Call) (Result, error) {
			var req Req
			if err := decodeParams(call.req, &req); err != nil {
				return nil, err
			}
			resp, err := fn(ctx, req)
			if err != nil {
				return nil, err
			}
			if result, ok := any(resp).(Result); ok {
				return result, nil
			}
			return NewObjectResult(resp)
		},
	}
	return s.change(func(c *catalog) error {
		if c.custom[method] != nil {
			return fmt.Errorf("mcpkit: Handle(%q): the method is registered already", method)
		}
		c.custom = maps.Clone(c.custom)
		if c.custom == nil {
			c.custom = map[string]*methodRow{}
		}
		c.custom[method] = row
		return nil
	})
}
