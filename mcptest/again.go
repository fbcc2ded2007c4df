package mcptest

import (
	"encoding/json"
	"slices"
	"strings"
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
	params := map[string]any{}
	for key, value := range jsonx.Members(r.last.Params) {
		if name := jsonx.String(key); name != "_meta" { // the client adds its own
			params[name] = json.RawMessage(slices.Clone(value))
		}
	}
	return r.server.do(r.what+" again", nil, func(again *Result, opts []client.CallOption) {
		again.err = again.request(r.last.Method, params, opts)
	})
}

// request sends a request that Again repeats, and reads its result.
func (r *Result) request(method string, params map[string]any, opts []client.CallOption) error {
	switch method {
	case protocol.MethodPromptsGet:
		return request(r, method, params, opts, r.ofPrompt)
	case protocol.MethodResourcesRead:
		return request(r, method, params, opts, r.ofResource)
	}
	return request(r, method, params, opts, r.ofTool)
}

func request[T any](r *Result, method string, params map[string]any, opts []client.CallOption, take func(*T)) error {
	res := new(T)
	err := r.server.Client().Request(r.t.Context(), method, params, res, opts...)
	if err == nil {
		take(res)
	}
	return err
}

// ofTool takes the result of a tool.
func (r *Result) ofTool(res *protocol.CallToolResult) {
	version := r.server.Client().Version()
	r.text, r.structured, r.isError = contentText(res.Content), unwrap(res.StructuredContent, version), res.IsError
	if version < protocol.V20250618 {
		r.jsonText = lastJSON(res.Content)
	}
}

// ofResource takes the contents of a resource.
func (r *Result) ofResource(res *protocol.ReadResourceResult) {
	var parts []string
	for _, c := range res.Contents {
		if c.Text != nil {
			parts = append(parts, *c.Text)
		} else {
			parts = append(parts, string(c.Blob))
		}
	}
	r.text = strings.Join(parts, "\n")
}

// ofPrompt takes the messages of a prompt.
func (r *Result) ofPrompt(res *protocol.GetPromptResult) {
	var lines []string
	for _, m := range res.Messages {
		lines = append(lines, string(m.Role)+": "+contentText([]protocol.Content{m.Content}))
	}
	r.text = strings.Join(lines, "\n")
}
