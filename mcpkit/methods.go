package mcpkit

import (
	"context"
	"fmt"
	"maps"

	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A methodRow is one method of a server's table: which requests it is for, and what answers them.
// Rows never change.
type methodRow struct {
	method      string
	from, until protocol.Version    // the versions that have the method, both included; "": all
	needs       func(*catalog) bool // what a server has that offers the method; nil: every server offers it
	// prepare finds what the request is about, before the middleware runs; nil: nothing.
	prepare func(*Call) error
	// nameParam is the params member that the Mcp-Name header mirrors (2026-07-28); "" for none.
	nameParam string
	asks      bool    // the result may be input_required
	open      bool    // requests stay open until the client ends them
	load      *load   // like that of an entry; nil for the protocol's own methods
	handle    Handler // withParams, if the method has params; nil: the entry that prepare finds answers
	by        string  // who added it, for errors: ", by the extension \"com.example/ratings\""; may be empty
}

func hasTools(c *catalog) bool { return c.config.offersAll || len(c.list(annotation.Tool).sorted) > 0 }
func hasPrompts(c *catalog) bool {
	return c.config.offersAll || len(c.list(annotation.Prompt).sorted) > 0
}
func hasResources(c *catalog) bool {
	return c.config.offersAll || len(c.list(annotation.Resource).sorted)+len(c.list(annotation.Template).sorted) > 0
}
func hasEvents(c *catalog) bool  { return len(c.list(annotation.Event).sorted) > 0 }
func hasUpdates(c *catalog) bool { return hasResources(c) && !c.config.fixed }
func hasLogs(c *catalog) bool {
	return c.config.offersAll || c.has(func(e *entry) bool { return e.logs })
}
func hasCompletions(c *catalog) bool {
	return c.config.offersAll || c.has(func(e *entry) bool { return e.complete != nil })
}

// coreMethods is the table of a server to which no methods were added. Servers share it.
var coreMethods = func() map[string]*methodRow {
	table := []methodRow{
		{method: protocol.MethodInitialize, until: protocol.LatestLegacy, handle: withParams(initialize)},
		{method: protocol.MethodPing, until: protocol.LatestLegacy, handle: ping},
		{method: protocol.MethodDiscover, from: protocol.V20260728, handle: discover},
		{method: protocol.MethodToolsList, needs: hasTools, handle: listed("tools", annotation.Tool)},
		{method: protocol.MethodToolsCall, needs: hasTools, prepare: findNamed(annotation.Tool), nameParam: "name", asks: true},
		{method: protocol.MethodPromptsList, needs: hasPrompts, handle: listed("prompts", annotation.Prompt)},
		{method: protocol.MethodPromptsGet, needs: hasPrompts, prepare: findNamed(annotation.Prompt), nameParam: "name", asks: true},
		{method: protocol.MethodResourcesList, needs: hasResources, handle: listed("resources", annotation.Resource)},
		{method: protocol.MethodResourcesTemplatesList, needs: hasResources, handle: listed("resourceTemplates", annotation.Template)},
		{method: protocol.MethodResourcesRead, needs: hasResources, prepare: findResource, nameParam: "uri", asks: true},
		{method: protocol.MethodResourcesSubscribe, until: protocol.LatestLegacy, needs: hasUpdates, prepare: findResource, nameParam: "uri", handle: subscribe},
		{method: protocol.MethodResourcesUnsubscribe, until: protocol.LatestLegacy, needs: hasUpdates, prepare: nameOf, nameParam: "uri", handle: unsubscribe},
		{method: protocol.MethodSubscriptionsListen, from: protocol.V20260728, prepare: findListened, handle: listen},
		{method: protocol.MethodCompletionComplete, needs: hasCompletions, prepare: findCompleted, handle: complete},
		{method: protocol.MethodLoggingSetLevel, until: protocol.LatestLegacy, needs: hasLogs, handle: withParams(setLogLevel)},
	}
	methods := make(map[string]*methodRow, len(table))
	for i := range table {
		methods[table[i].method] = &table[i]
	}
	return methods
}()

// withParams returns the handler of a method whose params are a P.
func withParams[P any](h func(context.Context, *Call, *P) (Result, error)) Handler {
	return func(ctx context.Context, call *Call) (Result, error) {
		p := new(P)
		if err := decodeParams(call.req, p); err != nil {
			return nil, err
		}
		return h(ctx, call, p)
	}
}

// addMethods adds rows to the table. The error names a method that the table has already.
func (c *catalog) addMethods(rows ...*methodRow) error {
	methods := maps.Clone(c.methods) // it may be shared
	for _, row := range rows {
		if coreMethods[row.method] != nil {
			return fmt.Errorf("the method %q is part of the protocol", row.method)
		}
		if known := methods[row.method]; known != nil {
			return fmt.Errorf("the method %q is registered already%s", row.method, known.by)
		}
		methods[row.method] = row
	}
	c.methods = methods
	return nil
}

// offered reports whether a server with the catalog answers requests of the method in the version.
func (row *methodRow) offered(c *catalog, v protocol.Version) bool {
	return v >= row.from && (row.until == "" || v <= row.until) && (row.needs == nil || row.needs(c))
}

// capabilities returns the capabilities of a server with the catalog for clients of a version.
func (c *catalog) capabilities(v protocol.Version) protocol.ServerCapabilities {
	caps := protocol.ServerCapabilities{Experimental: c.config.experimental}
	if hasTools(c) {
		caps.Tools = &protocol.ListCapability{ListChanged: !c.config.fixed}
	}
	if hasPrompts(c) {
		caps.Prompts = &protocol.ListCapability{ListChanged: !c.config.fixed}
	}
	if hasResources(c) {
		caps.Resources = &protocol.ResourcesCapability{ListChanged: !c.config.fixed, Subscribe: !c.config.fixed}
	}
	if hasLogs(c) {
		caps.Logging = protocol.Object{}
	}
	if hasCompletions(c) && v >= protocol.V20250326 {
		caps.Completions = protocol.Object{}
	}
	for _, e := range c.extensions {
		e.declare(&caps, v)
	}
	return caps
}

// Handle adds a method of the program to a Server, for clients of all versions. The params are
// decoded into Req, and Resp becomes the result, an object. Errors become protocol errors.
//
// If Req is a struct, its tags are enforced as in tool arguments, and unknown members other than
// _meta are refused. Any other Req, or one with a method UnmarshalJSON, gets all params. The error
// has all faults of Req's tags. The name should have a prefix, such as "example.com/reindex": names
// without a dot before the slash belong to the protocol.
func Handle[Req, Resp any](s *Server, method string, fn func(ctx context.Context, req Req) (Resp, error)) error {
	row, err := NewMethod(method, fn).rowOf(s, nil)
	if err == nil {
		err = s.change(func(own *catalog) error { return own.addMethods(row) })
	}
	return prefixed("mcpkit: Handle: ", err)
}
