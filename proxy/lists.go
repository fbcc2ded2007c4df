package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// maxItems limits the items of one list.
const maxItems = 10_000

// definitions reads all lists of a server. A list that cannot be read stays as it was, and
// definitions calls failed with its method. For tools that cannot be called, it calls omitted. It
// returns an error only if no list can be read.
func definitions(ctx context.Context, c *client.Client, before mcpkit.Definitions, failed, omitted func(name string, err error)) (mcpkit.Definitions, error) {
	caps := c.Capabilities()
	d := mcpkit.Definitions{Completes: caps.Completions != nil || !c.Version().Modern() && c.Version() < protocol.V20250326}
	var faults []error
	read := 0
	for _, l := range []struct {
		has            bool
		method, member string
		to             *[]json.RawMessage
		before         []json.RawMessage
	}{
		{caps.Tools != nil, protocol.MethodToolsList, "tools", &d.Tools, before.Tools},
		{caps.Prompts != nil, protocol.MethodPromptsList, "prompts", &d.Prompts, before.Prompts},
		{caps.Resources != nil, protocol.MethodResourcesList, "resources", &d.Resources, before.Resources},
		{caps.Resources != nil, protocol.MethodResourcesTemplatesList, "resourceTemplates", &d.Templates, before.Templates},
	} {
		if !l.has {
			continue
		}
		all, err := list(ctx, c, l.method, l.member)
		if l.method == protocol.MethodToolsList && err == nil {
			all, err = usable(ctx, c, all, omitted)
		}
		if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok && rpc.Code == jsonrpc.CodeMethodNotFound && l.method == protocol.MethodResourcesTemplatesList {
			err = nil // many servers have resources but no templates
		}
		if ctx.Err() != nil {
			return d, ctx.Err()
		}
		if err != nil {
			faults = append(faults, err)
			failed(l.method, err)
			*l.to = l.before
			continue
		}
		*l.to = all
		read++
	}
	if read == 0 && faults != nil {
		return d, errors.Join(faults...)
	}
	return d, nil
}

// usable returns the tools that may be called. It lists them through the client, which needs their
// headers and hints.
func usable(ctx context.Context, c *client.Client, tools []json.RawMessage, omitted func(name string, err error)) ([]json.RawMessage, error) {
	names := map[string]bool{}
	for t, err := range c.Tools(ctx, client.Fresh()) {
		if err != nil {
			return nil, err
		}
		if err := c.Callable(t); err != nil {
			omitted(t.Name, err)
			continue
		}
		names[t.Name] = true
	}
	return slices.DeleteFunc(tools, func(raw json.RawMessage) bool { return !names[jsonx.String(jsonx.Member(raw, "name"))] }), nil
}

// list reads one list without decoding its entries.
func list(ctx context.Context, c *client.Client, method, member string) (items []json.RawMessage, err error) {
	for item, err := range c.Items(ctx, method, member, nil, client.Fresh()) {
		switch {
		case err != nil:
			return nil, err
		case jsonx.Kind(item) != '{':
			return nil, fmt.Errorf("%s: an item is not an object", method)
		case len(items) == maxItems:
			return nil, fmt.Errorf("%s: the list has more than %d items", method, maxItems)
		}
		items = append(items, item)
	}
	return items, nil
}
