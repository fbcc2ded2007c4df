// Package catalog selects what a server offers, by toolsets, tags, hints and names: when it starts, for
// each request, or as a model asks for it. It also reads texts for clients from a file and the
// environment.
//
// The tag toolset says which sets a tool, prompt or resource is part of.
package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
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
	longest := 0
	s := selection(func(name string) string {
		value := call.Header("X-Mcp-" + name)
		longest = max(longest, len(value))
		return value
	})
	if longest > maxText {
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
	return selection(func(name string) string { return getenv(prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))) })
}

func selection(get func(name string) string) Selection {
	list := func(name string) []string { return listItem.FindAllString(get(name), -1) }
	readOnly, err := strconv.ParseBool(cmp.Or(get("Readonly"), "false"))
	return Selection{list("Toolsets"), list("Tags"), readOnly || err != nil, list("Tools"), list("Exclude-Tools")}
}

// listItem matches what is between commas, without the white space around it.
var listItem = regexp.MustCompile(`[^,\s]([^,]*[^,\s])?`)

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

// maxCallers limits how many callers are remembered. Those that were idle longest are forgotten.
const maxCallers = 10_000

// Dynamic shows what is in a toolset only to callers that have enabled the set, which models do with
// three tools of their own: list_toolsets, get_toolset_tools and enable_toolset. What is in no set is
// always shown. A caller is a principal, or an address without one, and keeps its sets for ttl after it
// enabled the last one; all on stdio are one caller, which keeps them. The sets are those of this
// process.
func Dynamic(ttl time.Duration) mcpkit.Option {
	t := &toolsets{ttl: ttl, enabled: limits.NewMap[string, []string](maxCallers)}
	return mcpkit.Options(mcpkit.With(t), mcpkit.Visible(t.see))
}

// toolsets is the service of the three tools.
type toolsets struct {
	_ struct {
		ListToolsets    mcpkit.Tool `hints:"readonly" desc:"Lists the toolsets of this server. Enable one to use its tools."`
		GetToolsetTools mcpkit.Tool `hints:"readonly" desc:"Lists the tools of a toolset." params:"toolset"`
		EnableToolset   mcpkit.Tool `hints:"additive,idempotent" desc:"Makes the tools of a toolset available." params:"toolset"`
	}
	ttl      time.Duration
	enabling sync.Mutex                    // held while a caller enables one more
	enabled  *limits.Map[string, []string] // by caller, sorted
}

// A toolset is a set of tools, prompts and resources.
type toolset struct {
	Name    string `json:"name"`
	Items   int    `json:"items"`
	Enabled bool   `json:"enabled"`
}

// A described is a tool, prompt or resource of a toolset.
type described struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

func callerOf(call *mcpkit.Call) string {
	return cmp.Or(call.Principal().Key(), "address "+call.Address())
}

// allKey is the key of calls that see what is not enabled.
type allKey struct{}

func (t *toolsets) see(_ context.Context, call *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
	enabled, _ := t.enabled.Get(callerOf(call), time.Now())
	return func(e mcpkit.Entry) bool {
		return e.Toolsets() == nil || overlap(enabled, e.Toolsets()) || call.Get(allKey{}) != nil
	}, fmt.Sprintf("%q", enabled)
}

// sets returns the items of all toolsets that the caller may enable, by name.
func (t *toolsets) sets(call *mcpkit.Call) map[string][]mcpkit.Entry {
	call.Set(allKey{}, true)
	sets := map[string][]mcpkit.Entry{}
	for e := range call.Entries() {
		for _, name := range e.Toolsets() {
			sets[name] = append(sets[name], e)
		}
	}
	return sets
}

func (t *toolsets) ListToolsets(call *mcpkit.Call) (list []toolset) {
	enabled, _ := t.enabled.Get(callerOf(call), time.Now())
	sets := t.sets(call)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		list = append(list, toolset{name, len(sets[name]), slices.Contains(enabled, name)})
	}
	return list
}

func (t *toolsets) GetToolsetTools(call *mcpkit.Call, name string) ([]described, error) {
	var list []described
	entries, err := t.find(call, name)
	for _, e := range entries {
		about := described{Kind: e.Kind(), Name: e.Name()}
		err = cmp.Or(err, json.Unmarshal(e.Definition(), &struct{ Description *string }{&about.Description}))
		list = append(list, about)
	}
	return list, err
}

func (t *toolsets) EnableToolset(call *mcpkit.Call, name string) (string, error) {
	if _, err := t.find(call, name); err != nil {
		return "", err
	}
	caller, now, ttl := callerOf(call), time.Now(), t.ttl
	if caller == "address " { // the process
		ttl = limits.Forever
	}
	t.enabling.Lock()
	enabled, _ := t.enabled.Get(caller, now)
	enabled = slices.Compact(slices.Sorted(slices.Values(append(slices.Clip(enabled), name))))
	t.enabled.Put(caller, enabled, now.Add(ttl))
	t.enabling.Unlock()
	call.ListsChanged()
	return "enabled; list the tools again", nil
}

// find returns the items of a toolset.
func (t *toolsets) find(call *mcpkit.Call, name string) ([]mcpkit.Entry, error) {
	sets := t.sets(call)
	if sets[name] == nil {
		return nil, mcpkit.Errorf("there is no toolset %q%s", name, naming.Hint(name, slices.Sorted(maps.Keys(sets))))
	}
	return sets[name], nil
}

// Overrides replaces what clients see of tools, prompts and resources by what a JSON file says, and
// environment variables in place of that. Text is the file; nil for none:
//
//	{"tools": {"search": {
//	  "name": "find_notes", "title": "Find notes", "description": "Finds notes.", "hidden": false,
//	  "arguments": {"limit": {"description": "How many.", "default": 5, "hidden": false}}
//	}}, "prompts": {}, "resources": {"note://{id}": {"description": "A note."}}}
//
// Each member may be absent. environ is os.Environ(); nil for none: MCPKIT_TOOL_SEARCH_DESCRIPTION is
// the description of the tool search, and MCPKIT_TOOL_SEARCH_ARG_LIMIT_DESCRIPTION that of its argument
// limit; NAME, TITLE and HIDDEN, true or false, are read as well. An empty variable is none. The server
// does not start if a tool, prompt, resource or argument that is named does not exist.
func Overrides(text []byte, environ []string) (mcpkit.Option, error) {
	o := &overrides{env: map[string]string{}}
	if text != nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&o.file); err != nil {
			return nil, fmt.Errorf("catalog: Overrides: %w", err)
		}
	}
	for part, items := range o.file {
		for name := range items {
			o.unused.Store(part+" "+name, true)
		}
	}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, envPrefix) {
			o.env[name] = value
			o.unused.Store(name, true)
		}
	}
	return mcpkit.Options(mcpkit.Describe(o.describe), mcpkit.Lifecycle(o)), nil
}

const envPrefix = "MCPKIT_TOOL_"

var notWords = regexp.MustCompile(`[^a-zA-Z0-9]`)

// overrides are what the file and the environment say.
type overrides struct {
	file   map[string]map[string]override // by "tools" and so on, and names
	env    map[string]string
	unused sync.Map // of names in file and env: what the server has not, as far as is known
}

type override struct {
	Name, Title, Description *string
	Hidden                   *bool
	Arguments                map[string]argument
}

type argument struct {
	Description *string
	Default     json.RawMessage
	Hidden      *bool
}

func (o *overrides) describe(d *mcpkit.Def) {
	kind, _, _ := strings.Cut(d.Entry.Kind(), " ") // a resource template is a resource
	name := d.Entry.Name()
	says := o.file[kind+"s"][name]
	o.unused.Delete(kind + "s " + name)
	d.Name = *cmp.Or(says.Name, &d.Name)
	d.Title = *cmp.Or(says.Title, &d.Title)
	d.Description = *cmp.Or(says.Description, &d.Description)
	d.Hidden = *cmp.Or(says.Hidden, &d.Hidden)
	for arg, says := range says.Arguments {
		a := d.Arg(arg)
		a.Description = *cmp.Or(says.Description, &a.Description)
		a.Hidden = *cmp.Or(says.Hidden, &a.Hidden)
		if says.Default != nil {
			a.Default = says.Default
		}
	}
	if kind == "tool" {
		o.fromEnv(d, envPrefix+variable(name))
	}
}

// fromEnv replaces what variables say whose names begin with of.
func (o *overrides) fromEnv(d *mcpkit.Def, of string) {
	hidden := strconv.FormatBool(d.Hidden)
	texts := map[string]*string{"_NAME": &d.Name, "_TITLE": &d.Title, "_DESCRIPTION": &d.Description, "_HIDDEN": &hidden}
	for _, a := range d.Args {
		texts["_ARG_"+variable(a.Name)+"_DESCRIPTION"] = &a.Description
	}
	for suffix, text := range texts {
		*text = cmp.Or(o.env[of+suffix], *text)
		o.unused.Delete(of + suffix)
	}
	d.Hidden = hidden == "true"
}

func variable(name string) string { return strings.ToUpper(notWords.ReplaceAllString(name, "_")) }

// Start returns an error if something was not found.
func (o *overrides) Start(context.Context) error {
	var faults []error
	o.unused.Range(func(name, _ any) bool {
		faults = append(faults, fmt.Errorf("catalog: Overrides: %q fits nothing that the server has", name))
		return true
	})
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}
