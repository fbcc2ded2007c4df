package mcpkit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A completer returns the values of a parameter that begin with prefix.
type completer = func(ctx context.Context, prefix string) ([]string, error)

// ofCompletion are the parameters of methods that complete.
var ofCompletion = func() map[reflect.Type]func(*Call) any {
	table := maps.Clone(ofCall)
	table[reflect.TypeFor[string]()] = func(c *Call) any { return c.params.(*protocol.CompleteParams).Argument.Value }
	table[reflect.TypeFor[map[string]string]()] = func(c *Call) any {
		if others := c.params.(*protocol.CompleteParams).Context; others != nil {
			return others.Arguments
		}
		return map[string]string(nil)
	}
	return table
}()

// completers returns what completes the parameters of a prompt or resource: for each the method that
// the block or a field names, or the list of its values. It is nil if no parameter can be completed.
func (s *Server) completers(e *entry, def *spec, fields []reflectx.Field) (Handler, error) {
	found := map[string]completer{}
	var faults reflectx.Errors
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
		switch method := cmp.Or(def.Complete[f.Name], f.Complete); {
		case method != "":
			c, err := s.completer(e, def, f.Name, method)
			faults.Add(def.Site, err)
			found[f.Name] = c
		case len(f.Enum) > 0:
			found[f.Name] = listCompleter(f.Enum)
		}
	}
	for param := range def.Complete {
		if !slices.Contains(names, param) {
			faults.Addf(def.Site, "complete names %q, which is not a parameter%s", param, naming.Hint(param, names))
		}
	}
	if faults != nil || len(found) == 0 {
		return nil, faults.Err()
	}
	return func(ctx context.Context, call *Call) (Result, error) {
		argument := call.params.(*protocol.CompleteParams).Argument
		c := found[argument.Name]
		if c == nil {
			return completion(nil), nil
		}
		values, err := c(ctx, argument.Value)
		return completion(values), err
	}, nil
}

// completer returns what completes a parameter: the method with the name.
func (s *Server) completer(e *entry, def *spec, param, method string) (completer, error) {
	m, ok := def.methods[method]
	if !ok {
		hint := naming.Hint(method, slices.Sorted(maps.Keys(def.methods)))
		return nil, fmt.Errorf("parameter %q is completed by method %q, which does not exist%s", param, method, hint)
	}
	f, err := reflectx.Compile(m.Func, reflectx.FuncOptions{Inject: s.injectors(e, ofCompletion)})
	if err != nil || len(f.Input().Fields()) > 0 || !slices.Equal(f.Outputs(), []reflect.Type{reflect.TypeFor[[]string]()}) {
		return nil, fmt.Errorf("completion method %s: it is %s; write func(ctx context.Context, prefix string) ([]string, error), "+
			"with others map[string]string and what tools get from the call as further parameters", method, m.Func.Type())
	}
	none := reflect.Zero(f.Input().Type())
	return func(ctx context.Context, _ string) ([]string, error) {
		values, err := f.Call(ctx, none)
		if err != nil {
			return nil, err
		}
		return values[0].Interface().([]string), nil
	}, nil
}

// completion returns the result with the values.
func completion(values []string) *protocol.CompleteResult {
	c := protocol.Completion{Values: values}
	if total := int64(len(values)); total > protocol.MaxCompletionValues {
		c.Values, c.Total, c.HasMore = values[:protocol.MaxCompletionValues], &total, new(true)
	}
	return &protocol.CompleteResult{Completion: c}
}

func listCompleter(values []string) completer {
	return func(_ context.Context, prefix string) ([]string, error) {
		var hits []string
		for _, v := range values {
			if len(v) >= len(prefix) && strings.EqualFold(v[:len(prefix)], prefix) {
				hits = append(hits, v)
			}
		}
		return hits, nil
	}
}

// complete answers completion/complete.
func complete(ctx context.Context, call *Call) (Result, error) {
	h := call.entry.complete
	if h == nil {
		h = func(context.Context, *Call) (Result, error) { return completion(nil), nil }
	}
	h = call.entry.through(h)
	return limited(h)(ctx, call)
}

// findCompleted reads the params of completion/complete and finds what is completed.
func findCompleted(call *Call) error {
	p := new(protocol.CompleteParams)
	if err := decodeParams(call.req, p); err != nil {
		return err
	}
	what, name, kinds := "prompt", p.Ref.Name, []annotation.Kind{annotation.Prompt}
	switch p.Ref.Type {
	case protocol.RefPrompt:
	case protocol.RefResource:
		what, name, kinds = "resource", p.Ref.URI, []annotation.Kind{annotation.Template, annotation.Resource}
	default:
		return invalidParams("unknown reference type %s; known are ref/prompt and ref/resource", jsonx.AppendString(nil, p.Ref.Type))
	}
	for _, k := range kinds {
		e, err := call.choose(call.catalog.list(k), name)
		if err != nil {
			return err
		}
		if e != nil {
			call.entry, call.name, call.params = e, e.key, p
			return nil
		}
	}
	return invalidParams("unknown %s %q", what, name)
}
