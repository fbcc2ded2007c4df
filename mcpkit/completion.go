package mcpkit

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/service"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// completers returns what completes the parameters: for each the method that the block or a field
// names, or the list of its values. It is nil if no parameter can be completed.
func (def *spec) completers(fields []reflectx.Field) (Handler, error) {
	found := map[string]service.Completer{}
	var faults reflectx.Errors
	isTool := def.Kind == annotation.Tool
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
		method := cmp.Or(def.Complete[f.Name], f.Complete)
		if method == "" {
			if len(f.Enum) > 0 && !isTool {
				found[f.Name] = listCompleter(f.Enum)
			}
			continue
		}
		c, err := def.completer(f.Name, method)
		switch {
		case isTool && f.Complete != "":
			faults.Addf(def.site, "field %q has the tag complete; %s", f.Name, annotation.NoCompletionForTools)
		case err != nil:
			faults.Add(def.site, err)
		default:
			found[f.Name] = c
		}
	}
	for param := range def.Complete {
		if !slices.Contains(names, param) {
			faults.Addf(def.site, "complete names %q, which is not a parameter%s", param, naming.Hint(param, names))
		}
	}
	if faults != nil || len(found) == 0 {
		return nil, faults.Err()
	}
	return func(ctx context.Context, call *Call) (Result, error) {
		p := call.params.(*protocol.CompleteParams)
		c := found[p.Argument.Name]
		if c == nil {
			return completion(nil), nil
		}
		others := map[string]string{}
		if p.Context != nil && p.Context.Arguments != nil {
			others = p.Context.Arguments
		}
		values, err := c(ctx, p.Argument.Value, others)
		return completion(values), err
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

func listCompleter(values []string) service.Completer {
	return func(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
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
	if err := decodeParams(call.limit, call.req, p); err != nil {
		return err
	}
	what, name, kinds := "prompt", p.Ref.Name, []entryKind{promptEntry}
	switch p.Ref.Type {
	case protocol.RefPrompt:
	case protocol.RefResource:
		what, name, kinds = "resource", p.Ref.URI, []entryKind{templateEntry, resourceEntry}
	default:
		return invalidParams("unknown reference type %s; known are ref/prompt and ref/resource", jsonx.AppendString(nil, p.Ref.Type))
	}
	for _, k := range kinds {
		if e := call.catalog.lists[k].get(name); e != nil && call.sees(e) {
			call.entry, call.name, call.params = e, e.key, p
			return nil
		}
	}
	return invalidParams("unknown %s %q", what, name)
}
