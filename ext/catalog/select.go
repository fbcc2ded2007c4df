// Package catalog selects what a server offers, by toolsets, tags, hints and names: when it starts, for
// each request, or as a model asks for it. It also reads texts for clients from a file and the
// environment.
//
// The tag toolset says which sets a tool, prompt or resource is part of.
package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A Selection is a part of a catalog. The zero value is all of it: a list that is nil selects all.
type Selection struct {
	// The toolsets to show. What is in no toolset is always shown.
	Toolsets []string `yaml:"toolsets"`
	// Labels of the tag tags, one of which a tool must have.
	Tags []string `yaml:"tags"`
	// Show only tools with the hint readonly.
	ReadOnly bool `yaml:"readOnly"`
	// Patterns such as list_* for the names of tools, one of which must fit; see path.Match.
	Tools []string `yaml:"tools"`
	// Patterns for the names of tools that are not shown.
	Except []string `yaml:"except"`
}

// shows reports whether an entry is part of the selection.
func (s *Selection) shows(e mcpkit.Entry) bool {
	if sets := e.Toolsets(); s.Toolsets != nil && sets != nil && !overlap(s.Toolsets, sets) {
		return false
	}
	if e.Kind() != "tool" {
		return true
	}
	hints := e.Hints()
	return (s.Tags == nil || overlap(s.Tags, e.Tags())) &&
		(!s.ReadOnly || hints != nil && hints.ReadOnlyHint != nil && *hints.ReadOnlyHint) &&
		(s.Tools == nil || fits(s.Tools, e.Name())) && !fits(s.Except, e.Name())
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

func fits(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// Select shows all callers only the selection. The server does not start if a toolset or a tag does not
// exist, or if a pattern fits no tool. Patterns are for the names that clients see: options that rename
// tools, such as [Overrides], come before Select.
func Select(s Selection) mcpkit.Option {
	all := &parts{toolsets: map[string]bool{}, tags: map[string]bool{}, tools: map[string]bool{}, selected: s}
	return mcpkit.Options(mcpkit.Describe(all.note), mcpkit.Lifecycle(all), Narrow(func(*mcpkit.Call) Selection { return s }))
}

// Narrow shows each caller only the selection that of returns for its request, such as [Headers] or
// [Path]. What does not exist selects nothing.
func Narrow(of func(*mcpkit.Call) Selection) mcpkit.MountOption {
	return mcpkit.Visible(func(_ context.Context, call *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
		s := of(call)
		return s.shows, fmt.Sprintf("%#v", s)
	})
}

// Headers is the selection of the header fields X-MCP-Toolsets, X-MCP-Tags, X-MCP-Tools and
// X-MCP-Exclude-Tools, lists with commas, and X-MCP-Readonly, true or false. A field of more than
// 4 KiB selects nothing, since all tools are compared with all that callers name.
func Headers(call *mcpkit.Call) Selection {
	long := false
	s := selection(func(name string) string {
		value := call.Header("X-Mcp-" + name)
		if len(value) > maxText {
			value, long = "", true
		}
		return value
	}, "Toolsets", "Tags", "Readonly", "Tools", "Exclude-Tools")
	if long {
		return nothing
	}
	return s
}

// maxText limits what a caller selects with.
const maxText = 4 << 10

// nothing is the selection of no tool and no toolset.
var nothing = Selection{Toolsets: []string{}, Tools: []string{}}

// FromEnv returns the selection of environment variables: MCPKIT_TOOLSETS and so on for the prefix
// "MCPKIT_", with TAGS, READONLY, TOOLS and EXCLUDE_TOOLS. getenv is os.Getenv.
func FromEnv(prefix string, getenv func(string) string) Selection {
	return selection(func(name string) string { return getenv(prefix + name) }, "TOOLSETS", "TAGS", "READONLY", "TOOLS", "EXCLUDE_TOOLS")
}

func selection(get func(name string) string, toolsets, tags, readOnly, tools, except string) Selection {
	list := func(name string) []string {
		var names []string
		for part := range strings.SplitSeq(get(name), ",") {
			if part = strings.TrimSpace(part); part != "" {
				names = append(names, part)
			}
		}
		return names
	}
	off, err := strconv.ParseBool(cmp.Or(get(readOnly), "false"))
	return Selection{list(toolsets), list(tags), off || err != nil, list(tools), list(except)}
}

// Path returns the selection of the URL's path below a prefix: "/mcp/issues,users/readonly" below "/mcp"
// is two toolsets, and only tools with the hint readonly. Each part may be absent.
func Path(below string) func(*mcpkit.Call) Selection {
	return func(call *mcpkit.Call) (s Selection) {
		if len(call.Path()) > maxText {
			return nothing
		}
		for part := range strings.SplitSeq(strings.TrimPrefix(call.Path(), below), "/") {
			if part == "readonly" {
				s.ReadOnly = true
			} else if part != "" {
				s.Toolsets = strings.Split(part, ",")
			}
		}
		return s
	}
}

// The parts of a catalog are what a selection may name.
type parts struct {
	selected Selection

	mu                    sync.Mutex
	toolsets, tags, tools map[string]bool
}

// note notes what an item is part of, until the server has started.
func (p *parts) note(d *mcpkit.Def) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tools == nil {
		return
	}
	for _, name := range d.Entry.Toolsets() {
		p.toolsets[name] = true
	}
	for _, name := range d.Entry.Tags() {
		p.tags[name] = true
	}
	if d.Entry.Kind() == "tool" {
		p.tools[d.Name] = true
	}
}

// Start returns an error if the selection names what does not exist.
func (p *parts) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var faults []error
	check := func(what string, names []string, known map[string]bool) {
		all := slices.Sorted(maps.Keys(known))
		for _, name := range names {
			if !known[name] && (what != "tool" || !slices.ContainsFunc(all, func(k string) bool { return fits([]string{name}, k) })) {
				faults = append(faults, fmt.Errorf("catalog: Select: there is no %s %q%s", what, name, naming.Hint(name, all)))
			}
		}
	}
	check("toolset", p.selected.Toolsets, p.toolsets)
	check("tag", p.selected.Tags, p.tags)
	check("tool", slices.Concat(p.selected.Tools, p.selected.Except), p.tools)
	p.toolsets, p.tags, p.tools = nil, nil, nil // remote servers may go on changing theirs
	return errors.Join(faults...)
}
