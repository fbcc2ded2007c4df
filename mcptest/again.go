package mcptest

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A lastRound is the last request that repeated a call with the answers to its questions; nil if
// there is none.
type lastRound = atomic.Pointer[jsonrpc.Request]

// noteRound keeps the request if it has answers.
func noteRound(last *lastRound, req *jsonrpc.Request) {
	if jsonx.Member(req.Params, "requestState") != nil || jsonx.Member(req.Params, "inputResponses") != nil {
		last.Store(&jsonrpc.Request{Method: req.Method, Params: slices.Clone(req.Params)})
	}
}

// Again repeats the last round of a call that asked the user: it sends the same answers and the
// same state once more, as clients may, and returns the new result. A tool that orders something
// should give the same result, and must not order twice:
//
//	first := s.Answer("Pay?", true).Call("order", seat).OK()
//	first.Again().OK().Text("order 1")
//
// It ends the test if the call asked nothing. In legacy versions a call has only one round, so
// Again returns r.
func (r *Result) Again() *Result {
	r.t.Helper()
	if r.server.Client().Version().Legacy() {
		return r
	}
	if r.last == nil {
		r.t.Fatalf("%s\nwant: a question, so that Again can repeat the round with its answer\n got: %s", r.what, r.outcome())
	}
	var params map[string]json.RawMessage
	_ = jsonx.Unmarshal(r.last.Params, &params) // an object
	delete(params, "_meta")                     // the client adds its own
	return r.server.do(r.what+" again", nil, func(again *Result, opts []client.CallOption) {
		results := map[string]any{
			protocol.MethodToolsCall:     new(protocol.CallToolResult),
			protocol.MethodPromptsGet:    new(protocol.GetPromptResult),
			protocol.MethodResourcesRead: new(protocol.ReadResourceResult),
		}
		res := results[r.last.Method]
		again.take(res, r.server.Client().Request(r.t.Context(), r.last.Method, params, res, opts...))
	})
}
