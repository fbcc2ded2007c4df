package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Limits of one list.
const (
	maxPages = 1000
	maxItems = 10_000
)

// definitions reads all lists of a server. A list that cannot be read stays as it was, and
// definitions calls failed for it. It returns an error only if no list can be read.
func definitions(ctx context.Context, c *client.Client, before mcpkit.Definitions, failed func(method string, err error)) (mcpkit.Definitions, error) {
	caps := c.Capabilities()
	d := mcpkit.Definitions{Completes: caps.Completions != nil || !c.Version().Modern() && c.Version() < protocol.V20250326}
	var faults []error
	read := 0
	for _, l := range []struct {
		has     bool
		method  string
		to      *[]json.RawMessage
		before  []json.RawMessage
		request func() ([]json.RawMessage, error)
	}{
		{caps.Tools != nil, protocol.MethodToolsList, &d.Tools, before.Tools, func() ([]json.RawMessage, error) { return tools(ctx, c) }},
		{caps.Prompts != nil, protocol.MethodPromptsList, &d.Prompts, before.Prompts, func() ([]json.RawMessage, error) {
			return list(ctx, c, protocol.MethodPromptsList, "prompts")
		}},
		{caps.Resources != nil, protocol.MethodResourcesList, &d.Resources, before.Resources, func() ([]json.RawMessage, error) {
			return list(ctx, c, protocol.MethodResourcesList, "resources")
		}},
		{caps.Resources != nil, protocol.MethodResourcesTemplatesList, &d.Templates, before.Templates, func() ([]json.RawMessage, error) {
			all, err := list(ctx, c, protocol.MethodResourcesTemplatesList, "resourceTemplates")
			if rpc, ok := asRPC(err); ok && rpc.Code == -32601 {
				err = nil // many servers have resources but no templates
			}
			return all, err
		}},
	} {
		if !l.has {
			continue
		}
		all, err := l.request()
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

// tools reads the tools through the client, which needs their headers and hints, and omits tools
// that must not be called.
func tools(ctx context.Context, c *client.Client) ([]json.RawMessage, error) {
	usable := map[string]bool{}
	for t, err := range c.Tools(ctx, client.Fresh()) {
		if err != nil {
			return nil, err
		}
		usable[t.Name] = true
	}
	all, err := list(ctx, c, protocol.MethodToolsList, "tools")
	kept := all[:0]
	for _, raw := range all {
		if usable[jsonx.String(jsonx.Member(raw, "name"))] {
			kept = append(kept, raw)
		}
	}
	return kept, err
}

// list reads one list without decoding its entries.
func list(ctx context.Context, c *client.Client, method, member string) (items []json.RawMessage, err error) {
	var cursor *string
	for range maxPages {
		var raw json.RawMessage
		if err := c.Request(ctx, method, &protocol.ListParams{Cursor: cursor}, &raw); err != nil {
			return nil, err
		}
		for item := range jsonx.Elements(jsonx.Member(raw, member)) {
			if jsonx.Kind(item) != '{' {
				return nil, fmt.Errorf("%s: an item is not an object", method)
			}
			if items = append(items, item); len(items) > maxItems {
				return nil, fmt.Errorf("%s: the list has more than %d items", method, maxItems)
			}
		}
		next := jsonx.Member(raw, "nextCursor")
		if jsonx.Kind(next) != '"' {
			return items, nil
		}
		text := jsonx.String(next)
		cursor = &text
	}
	return nil, fmt.Errorf("%s: the list has more than %d pages", method, maxPages)
}
