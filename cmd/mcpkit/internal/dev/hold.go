package dev

import (
	"context"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// firstWait is how long requests other than calls wait for the first program. Clients give up on a
// server that does not respond to initialize, often after a minute.
const firstWait = 20 * time.Second

// ServeRPC implements [transport.Handler]. While the program is being built, calls wait for it. They
// wait here and not in middleware, since the tool that is called may be new.
func (s *Server) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if !req.IsNotification() {
		s.hold(ctx, req)
	}
	return s.srv.ServeRPC(ctx, req, peer)
}

// hold waits until the program is built, or until the request has waited long enough.
func (s *Server) hold(ctx context.Context, req *jsonrpc.Request) {
	settled, _, once := s.state.now()
	limit := s.opts.Wait
	switch {
	case isCall(req.Method) && !continues(req.Params):
	case once || req.Method == protocol.MethodPing:
		return // lists are those of the previous program
	default:
		limit = min(limit, firstWait)
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-settled:
	case <-t.C:
	case <-ctx.Done():
	}
}

// isCall reports whether the program runs code of its author for the method.
func isCall(method string) bool {
	switch method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead, protocol.MethodCompletionComplete:
		return true
	}
	return false
}

// refuse is middleware that answers calls while there is no program that works.
func (s *Server) refuse(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		if !isCall(call.Method()) || continues(call.Params()) {
			return next(ctx, call)
		}
		_, fault, once := s.state.now()
		switch {
		case fault != "":
			return nil, mcpkit.Errorf("%s", Shorten(fault, maxFault))
		case !once:
			return nil, errBuilding
		}
		return next(ctx, call)
	}
}
