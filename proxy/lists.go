package proxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// maxTemplates limits the templates of the remote server, since each URI is compared with all.
const maxTemplates = 100

// A list is one of the lists of a server.
type list struct {
	method, member string
	key            string // the member that names an item
	has            bool   // the server declares it
}

func listsOf(caps protocol.ServerCapabilities) []list {
	return []list{
		{protocol.MethodToolsList, "tools", "name", caps.Tools != nil},
		{protocol.MethodPromptsList, "prompts", "name", caps.Prompts != nil},
		{protocol.MethodResourcesList, "resources", "uri", caps.Resources != nil},
		{protocol.MethodResourcesTemplatesList, "resourceTemplates", "uriTemplate", caps.Resources != nil},
	}
}

// read reads the lists of the remote server. One that cannot be read is left out. The error means
// that none can be read.
func (r *remote) read(ctx context.Context, l *link) (items []mcpkit.Item, err error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	caps := l.client.Capabilities()
	from := &mcpkit.Upstream{Site: "proxy of " + r.title(), Scopes: r.scopes, Call: r.answer, Subscribe: r.subscribe}
	if caps.Completions != nil || l.client.Version() < protocol.V20250326 {
		from.Complete = r.complete
	}
	var faults []error
	read := 0
	for _, of := range listsOf(caps) {
		if !of.has {
			continue
		}
		found, err := r.readList(ctx, l.client, from, of)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			faults = append(faults, err)
			r.warn(ctx, "a list of the remote server cannot be read", "method", of.method, "error", err)
			continue
		}
		read++
		items = append(items, found...)
	}
	if read == 0 {
		return nil, errors.Join(faults...)
	}
	return items, nil
}

// readList reads one list. Items that are not valid, come twice, or cannot be called, are left out.
func (r *remote) readList(ctx context.Context, c *client.Client, from *mcpkit.Upstream, of list) ([]mcpkit.Item, error) {
	var items []mcpkit.Item
	seen := map[string]bool{}
	templates := of.method == protocol.MethodResourcesTemplatesList
	for definition, err := range c.Items(ctx, of.method, of.member, nil, client.Fresh()) {
		rpc, _ := errors.AsType[*jsonrpc.Error](err)
		switch {
		case rpc != nil && rpc.Code == jsonrpc.CodeMethodNotFound && templates:
			return nil, nil // many servers have resources but no templates
		case err != nil:
			return nil, err
		case templates && len(items) == maxTemplates:
			r.warn(ctx, "templates of the remote server are left out; it has too many", "most", maxTemplates)
			return items, nil
		}
		it, err := from.Item(of.method, definition)
		key := jsonx.String(jsonx.Member(definition, of.key))
		if err == nil && seen[key] {
			err = fmt.Errorf("%s: %q comes twice", from.Site, key)
		}
		if err == nil && of.method == protocol.MethodToolsList {
			var t protocol.Tool
			if err = jsonx.Unmarshal(definition, &t); err == nil {
				err = c.Callable(&t)
			}
		}
		if err != nil {
			r.warn(ctx, "an entry of the remote server is left out", "reason", err)
			continue
		}
		seen[key] = true
		items = append(items, it)
	}
	return items, nil
}
