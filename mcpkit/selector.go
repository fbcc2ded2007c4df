package mcpkit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/nearest"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A Selector selects calls by name for [Server.UseFor]. Make one with [OnTool], [OnTag] or
// [OnMethod].
type Selector struct {
	what  string // "tool", "tag", "method"
	names []string
	later bool
}

// OnTool selects calls of tools by the names that clients use: "billing_charge" for a mounted
// server.
func OnTool(names ...string) Selector { return Selector{what: "tool", names: names} }

// OnTag selects calls, completions and subscriptions of tools, prompts and resources with one of
// the labels in their tags tag, including those of mounted servers.
func OnTag(labels ...string) Selector { return Selector{what: "tag", names: labels} }

// OnMethod selects methods of the protocol, such as protocol.MethodToolsCall, and methods of the
// program (see [Handle]).
func OnMethod(methods ...string) Selector { return Selector{what: "method", names: methods} }

// Later allows names that do not exist when the server starts, for instance those of an optional
// proxy. Misspelt names are then not detected.
func (sel Selector) Later() Selector {
	sel.later = true
	return sel
}

// UseFor is like [Server.Use] for the calls that sel selects, including those of tools registered
// later. Its place in the chain is that of a call of Use.
//
// If a name does not exist when the server starts, Start fails with the nearest name, since
// something would be unguarded. See [Selector.Later] for names that come later.
//
// UseFor panics if a middleware is nil, if there is none, or if there is no name.
func (s *Server) UseFor(sel Selector, mw ...Middleware) {
	switch err := checkMiddleware("UseFor", mw); {
	case err != nil:
		panic(err.Error())
	case len(mw) == 0:
		panic("mcpkit: UseFor: there is no middleware to use")
	case len(sel.names) == 0 || slices.Contains(sel.names, ""):
		panic(fmt.Sprintf("mcpkit: UseFor: a name of a %s is missing; write for example mcpkit.OnTool(\"charge\")", cmp.Or(sel.what, "tool")))
	}
	s.life.expect(sel)
	s.Use(sel.around(mw))
}

// around returns middleware that puts mw around selected calls.
func (sel Selector) around(mw []Middleware) Middleware {
	return func(next Handler) Handler {
		inner := wrap("UseFor: ", next, mw)
		return func(ctx context.Context, call *Call) (Result, error) {
			if sel.selects(call) {
				return inner(ctx, call)
			}
			return next(ctx, call)
		}
	}
}

func (sel *Selector) selects(call *Call) bool {
	switch sel.what {
	case "tool":
		return call.row.method == protocol.MethodToolsCall && slices.Contains(sel.names, call.Target())
	case "tag":
		return slices.ContainsFunc(call.Tags(), func(tag string) bool { return slices.Contains(sel.names, tag) })
	}
	return slices.Contains(sel.names, call.row.method)
}

// checkSelectors returns an error with the names that do not exist.
func (s *Server) checkSelectors(selectors []Selector) error {
	var faults reflectx.Errors
	known := map[string][]string{}
	for _, sel := range selectors {
		if sel.later {
			continue
		}
		if known[sel.what] == nil {
			known[sel.what] = s.catalog.Load().known(sel.what)
		}
		for _, name := range sel.names {
			if !slices.Contains(known[sel.what], name) {
				faults = append(faults, &reflectx.Error{Msg: fmt.Sprintf(
					"mcpkit: UseFor: no %s %q%s; add Later() to the selector if it comes after the start",
					map[string]string{"tool": "tool is named", "tag": "tool, prompt or resource has the tag", "method": "method is named"}[sel.what],
					name, nearest.Hint(name, known[sel.what]))})
			}
		}
	}
	return joinFaults(faults)
}

// known returns the names that exist.
func (c *catalog) known(what string) (names []string) {
	switch what {
	case "tool":
		for _, t := range c.tools.all() {
			names = append(names, t.key)
		}
	case "tag":
		for _, it := range c.items() {
			names = append(names, it.base().tags...)
		}
	default:
		for name, row := range c.methods {
			if !row.notification {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	return names
}
