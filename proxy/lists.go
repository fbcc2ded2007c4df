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

const (
	// maxItems limits the items of one list.
	maxItems = 10_000
	// maxTemplates limits the templates of the remote server, since each URI is compared with all.
	maxTemplates = 100
)

// lists are the lists of a server, in the order of listed.
type lists [len(listed)][]json.RawMessage

var listed = [...]struct {
	method, member string
	key            string // the member that names an item
}{
	{protocol.MethodToolsList, "tools", "name"},
	{protocol.MethodPromptsList, "prompts", "name"},
	{protocol.MethodResourcesList, "resources", "uri"},
	{protocol.MethodResourcesTemplatesList, "resourceTemplates", "uriTemplate"},
}

// readLists reads all lists of a server. One that cannot be read is empty. The error means that none
// can be read.
func readLists(ctx context.Context, c *client.Client, warn func(message string, args ...any)) (all lists, err error) {
	caps := c.Capabilities()
	has := [...]bool{caps.Tools != nil, caps.Prompts != nil, caps.Resources != nil, caps.Resources != nil}
	var faults []error
	read := 0
	for i, l := range listed {
		if !has[i] {
			continue
		}
		all[i], err = readList(ctx, c, l.method, l.member, warn)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		if err != nil {
			faults = append(faults, err)
			warn("proxy: a list of the remote server cannot be read", "method", l.method, "error", err)
			continue
		}
		read++
	}
	if read == 0 && faults != nil {
		return all, errors.Join(faults...)
	}
	return all, nil
}

// readList reads one list without decoding its items.
func readList(ctx context.Context, c *client.Client, method, member string, warn func(string, ...any)) (items []json.RawMessage, err error) {
	for item, err := range c.Items(ctx, method, member, nil, client.Fresh()) {
		rpc, _ := errors.AsType[*jsonrpc.Error](err)
		switch {
		case rpc != nil && rpc.Code == jsonrpc.CodeMethodNotFound && method == protocol.MethodResourcesTemplatesList:
			return nil, nil // many servers have resources but no templates
		case err != nil:
			return nil, err
		case jsonx.Kind(item) != '{':
			return nil, fmt.Errorf("%s: an item is not an object", method)
		case len(items) == maxItems:
			return nil, fmt.Errorf("%s: the list has more than %d items", method, maxItems)
		case len(items) == maxTemplates && method == protocol.MethodResourcesTemplatesList:
			warn("proxy: templates of the remote server are left out; it has too many", "most", maxTemplates)
			return items, nil
		}
		items = append(items, item)
	}
	if method == protocol.MethodToolsList {
		return usable(ctx, c, items, warn)
	}
	return items, nil
}

// usable returns the tools that may be called. It lists them through the client, which needs their
// headers and hints.
func usable(ctx context.Context, c *client.Client, tools []json.RawMessage, warn func(string, ...any)) ([]json.RawMessage, error) {
	names := map[string]bool{}
	for t, err := range c.Tools(ctx, client.Fresh()) {
		if err != nil {
			return nil, err
		}
		if err := c.Callable(t); err != nil {
			warn("proxy: a tool of the remote server is left out", "tool", t.Name, "reason", err)
			continue
		}
		names[t.Name] = true
	}
	return slices.DeleteFunc(tools, func(raw json.RawMessage) bool { return !names[jsonx.String(jsonx.Member(raw, "name"))] }), nil
}

// items returns the items of definitions. Those that are not valid, or come twice, are left out.
func (all lists) items(from *mcpkit.Upstream, warn func(message string, args ...any)) (items []mcpkit.Item) {
	for i, l := range listed {
		seen := map[string]bool{}
		for _, definition := range all[i] {
			it, err := from.Item(l.method, definition)
			key := jsonx.String(jsonx.Member(definition, l.key))
			if err == nil && seen[key] {
				err = fmt.Errorf("%s: %q comes twice", from.Site, key)
			}
			if err != nil {
				warn("proxy: an entry of the remote server is left out", "reason", err)
				continue
			}
			seen[key] = true
			items = append(items, it)
		}
	}
	return items
}
