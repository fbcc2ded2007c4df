package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Tool returns one tool of the server's list.
func (c *Client) Tool(ctx context.Context, name string, opts ...CallOption) (*protocol.Tool, error) {
	for t, err := range c.Tools(ctx, opts...) {
		if err != nil {
			return nil, err
		}
		if t.Name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("client: the server has no tool %q", name)
}

// CallTool calls a tool. Args must encode as a JSON object; nil means no arguments. If the tool
// reports an error, CallTool returns the result and a [*ToolError]. If the tool was listed and its
// structured content violates the output schema, CallTool returns the result and an [*OutputError].
func (c *Client) CallTool(ctx context.Context, name string, args any, opts ...CallOption) (*protocol.CallToolResult, error) {
	arguments, err := encodeArguments(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", title(protocol.MethodToolsCall, name), err)
	}
	cc := c.callConfig(opts)
	params := &protocol.CallToolParams{Name: name, Arguments: arguments}
	raw, err := c.doAs(ctx, &request{method: protocol.MethodToolsCall, name: name, params: params, arguments: arguments, asks: true}, &cc)
	if err != nil {
		return nil, err
	}
	return c.toolResult(ctx, name, raw, &cc)
}

// encodeArguments encodes the arguments of a tool; nil for none.
func encodeArguments(args any) (json.RawMessage, error) {
	if args == nil {
		return nil, nil
	}
	raw, err := jsonx.Marshal(args)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the arguments: %w", err)
	case string(raw) == "null":
		return nil, nil
	case jsonx.Kind(raw) != '{':
		return nil, fmt.Errorf("the arguments must be a JSON object; %T does not encode as one", args)
	}
	return raw, nil
}

// toolResult decodes the result of a tool and checks its output. The name may be "".
func (c *Client) toolResult(ctx context.Context, name string, raw []byte, cc *callConfig) (*protocol.CallToolResult, error) {
	result := new(protocol.CallToolResult)
	if err := decodeResult(protocol.MethodToolsCall, name, raw, result); err != nil {
		return nil, err
	}
	if result.Content == nil && result.Extra["task"] != nil {
		// Of 2025-11-25. Decoded as a result, it would be an empty success.
		return nil, fmt.Errorf("client: %w", &InvalidResponseError{protocol.MethodToolsCall, name, "it is a task, which was not requested"})
	}
	if result.IsError {
		return result, &ToolError{Tool: name, Result: result}
	}
	if cc.uncheckedOutput {
		return result, nil
	}
	return result, c.checkOutput(ctx, name, result)
}

// Call calls a tool and decodes its structured content or, if there is none, its text. In must
// encode as a JSON object; nil means no arguments.
//
// If Out is string, Call returns the text. If Out is [*protocol.CallToolResult], it returns the
// whole result. All other types decode from JSON. Call unwraps {"result": ...}, in which servers
// wrap outputs that are not objects. If the tool reports an error, the error is a [*ToolError].
func Call[Out any](ctx context.Context, c *Client, name string, in any, opts ...CallOption) (Out, error) {
	var out Out
	v := reflect.ValueOf(&out).Elem()
	r, err := c.CallTool(ctx, name, in, opts...)
	if err != nil {
		return out, err
	}
	if err := c.output(name, r, v); err != nil {
		return out, err
	}
	return out, nil
}

// output decodes the output of a tool into out.
func (c *Client) output(name string, r *protocol.CallToolResult, out reflect.Value) error {
	if out.Type() == reflect.TypeFor[*protocol.CallToolResult]() {
		out.Set(reflect.ValueOf(r))
		return nil
	}
	value := r.StructuredContent
	if value != nil {
		value = c.unwrap(name, value, out.Type())
	} else {
		text := resultText(r)
		if out.Kind() == reflect.String {
			out.SetString(text)
			return nil
		}
		if value = []byte(strings.TrimSpace(text)); !jsonx.Valid(value) {
			return fmt.Errorf("%s: the tool returned neither structured content nor JSON to decode into %s, but %.100q", title(protocol.MethodToolsCall, name), out.Type(), text)
		}
	}
	if out.Kind() == reflect.String && jsonx.Kind(value) != '"' {
		out.SetString(resultText(r))
		return nil
	}
	if err := jsonx.Unmarshal(value, out.Addr().Interface()); err != nil {
		return fmt.Errorf("%s: the output does not decode: %w", title(protocol.MethodToolsCall, name), err)
	}
	return nil
}

// unwrap returns the value in {"result": value} if the server wrapped the output: on versions that
// require objects, servers wrap all other values. The output schema tells whether it is wrapped; if
// the schema is unknown, the type of out decides.
func (c *Client) unwrap(name string, value []byte, out reflect.Type) []byte {
	inner := onlyResult(value)
	if inner == nil {
		return value
	}
	if t, ok := c.tools.get(name); ok && t.output != nil {
		if t.wrapped {
			return inner
		}
		return value
	}
	for out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	switch out.Kind() {
	case reflect.Map, reflect.Interface:
		return value
	case reflect.Struct:
		if jsonx.Unmarshal(value, reflect.New(out).Interface()) == nil {
			return value
		}
	}
	return inner
}

// onlyResult returns the member result of obj, or nil if obj has other members.
func onlyResult(obj []byte) (value []byte) {
	for name, member := range jsonx.Members(obj) {
		if value != nil || !jsonx.IsString(name, "result") {
			return nil
		}
		value = member
	}
	return value
}

// A knownTool is what the client stores about a listed tool.
type knownTool struct {
	headers    []protocol.HeaderParam
	fault      error  // why it cannot be called over HTTP
	output     []byte // its output schema
	schema     *outputSchema
	wrapped    bool // the output schema is that of {"result": ...}
	repeatable bool // it has the hint readonly or idempotent
}

// A toolIndex holds the listed tools by name. The zero value is empty.
type toolIndex struct {
	mu     sync.Mutex
	byName map[string]*knownTool // guarded by mu
}

func (x *toolIndex) get(name string) (*knownTool, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t, ok := x.byName[name]
	return t, ok
}

// learn stores the tools of a page and returns those that can be called.
func (x *toolIndex) learn(c *Client, tools []protocol.Tool) []protocol.Tool {
	strict := c.conn.mirrors() && c.modern()
	kept := tools[:0:0]
	known := make(map[string]*knownTool, len(tools))
	for _, t := range tools {
		k := newKnownTool(&t, c.cfg.checkPatterns)
		known[t.Name] = k
		if k.fault != nil && strict {
			c.log.Warn("client: a tool was left out", "tool", clip(t.Name), "reason", k.fault)
			continue
		}
		kept = append(kept, t)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byName == nil || len(x.byName)+len(known) > maxItems {
		x.byName = map[string]*knownTool{}
	}
	maps.Copy(x.byName, known)
	return kept
}

func newKnownTool(t *protocol.Tool, patterns bool) *knownTool {
	k := &knownTool{output: t.OutputSchema, schema: newOutputSchema(t.OutputSchema, patterns), repeatable: t.Annotations.Repeatable()}
	k.headers, k.fault = protocol.HeaderParams(t.InputSchema)
	if t.OutputSchema != nil {
		properties := jsonx.Member(t.OutputSchema, "properties")
		k.wrapped = jsonx.IsString(jsonx.Member(t.OutputSchema, "type"), "object") && onlyResult(properties) != nil
	}
	return k
}

// repeatable reports whether r calls a tool that can be called twice without harm.
func (x *toolIndex) repeatable(r *request) bool {
	if r.method != protocol.MethodToolsCall {
		return false
	}
	t, ok := x.get(r.name)
	return ok && t.repeatable
}

// refreshTools lists the tools anew.
func (c *Client) refreshTools(ctx context.Context) error {
	for _, err := range c.Tools(ctx, Fresh()) {
		if err != nil {
			return err
		}
	}
	return nil
}

// mirror returns the Mcp-Param-* headers for a call; none if the tool was not listed.
func (x *toolIndex) mirror(name string, arguments []byte) (map[string]string, error) {
	t, ok := x.get(name)
	switch {
	case !ok:
		return nil, nil
	case t.fault != nil:
		return nil, fmt.Errorf("the tool cannot be called over HTTP: %w", t.fault)
	case len(t.headers) == 0:
		return nil, nil
	}
	found := make(map[string]string, len(t.headers))
	for _, h := range t.headers {
		value := h.Of(arguments)
		if text, ok := protocol.ParamHeader(value); ok && !(h.Integer && jsonx.Kind(value) != '0') {
			found[h.Header] = text
		}
	}
	return found, nil
}
