package mcpkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/service"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// An Item is a tool, prompt or resource that is built in code, by [NewTool], [NewPrompt] or
// [NewResource], or that another server has, made by [Upstream.Item].
type Item interface {
	entry(*Server) (*entry, error)
}

// Add registers items. If one of them has a fault, none is registered, and the error has all faults
// of all items. Subscribed clients are notified once.
func (s *Server) Add(items ...Item) error { return s.put(nil, items, nil) }

// An ItemSet is items of a server that are replaced together, such as those of a file that is read
// again. A server may have several. It is safe for concurrent use.
type ItemSet struct{ server *Server }

// NewItemSet returns an empty set of items of the server.
func (s *Server) NewItemSet() *ItemSet { return &ItemSet{s} }

// Replace makes items those of the set, in place of those that it had, and notifies subscribed clients
// of the lists that differ. Everything else that was registered stays. If an item has a fault, nothing
// changes.
func (set *ItemSet) Replace(items ...Item) error { return set.server.put(nil, items, set) }

// put registers items, in place of those of the set; nil for none. If there are faults, it changes nothing
// and returns them together with those of the items.
func (s *Server) put(faults reflectx.Errors, items []Item, set *ItemSet) error {
	var entries []*entry
	for _, it := range items {
		e, err := it.entry(s)
		if err != nil {
			faults.Add("", err)
			continue
		}
		e.set = set
		entries = append(entries, e)
	}
	faults.Add("", s.checkScopes(entries).Err())
	return s.change(func(own *catalog) error {
		own.remove(func(e *entry) bool { return set != nil && e.set == set })
		return s.enter(own, faults, entries)
	})
}

// A Builder describes a tool, prompt or resource. Make one with [NewTool], [NewPrompt] or
// [NewResource], and register it with [Server.Add], also with several servers.
//
// Its methods set the tags that a method of a service has in an annotation block, so values have the
// same form (see docs/reference/tags.md). Mistakes, and tags that mean nothing for such an item, are
// errors of Add. A Builder must not be changed while it is added.
type Builder struct {
	kind          annotation.Kind
	name          string
	site          string
	fn            reflect.Value
	tags          map[string]string
	meta          map[string]any
	input, output json.RawMessage
	size          *int64
}

// NewTool describes a tool that calls fn: a function with the signature of a tool method. With
// [Builder.Input], one parameter may take all arguments.
func NewTool(name string, fn any) *Builder { return newBuilder(annotation.Tool, name, fn) }

// NewPrompt describes a prompt that calls fn, a function with the signature of a prompt method.
func NewPrompt(name string, fn any) *Builder { return newBuilder(annotation.Prompt, name, fn) }

// NewResource describes a resource, or a resource template if uri has variables, that calls fn: a
// function with the signature of a resource method. People and models see the name.
func NewResource(uri, name string, fn any) *Builder {
	return newBuilder(annotation.Resource, name, fn).Tag("uri", uri)
}

// NewEvent describes an event, for clients of package ext/events, that calls fn: a function with the
// signature of an event method.
func NewEvent(name string, fn any) *Builder { return newBuilder(annotation.Event, name, fn) }

func newBuilder(k annotation.Kind, name string, fn any) *Builder {
	site := calledFrom(fmt.Sprintf("mcpkit: %s %q", k, name))
	return &Builder{
		kind: k, name: name, site: site, fn: reflect.ValueOf(fn), tags: map[string]string{}, meta: map[string]any{},
	}
}

// calledFrom returns what with the place in the program that called an exported function, which has
// called the function that calls calledFrom.
func calledFrom(what string) string {
	if _, file, line, ok := runtime.Caller(3); ok {
		what += fmt.Sprintf(" (%s:%d)", filepath.Base(file), line)
	}
	return what
}

// Tag sets any tag of the annotation block, also one that an [Extension] of the server defines, such
// as Tag("app", "ui://notes/board"). The last value counts.
func (b *Builder) Tag(key, value string) *Builder { b.tags[key] = value; return b }

// Title sets the name that people see.
func (b *Builder) Title(title string) *Builder { return b.Tag("title", title) }

// Desc sets the description: what a tool does, what a prompt is for, what a resource contains.
func (b *Builder) Desc(text string) *Builder { return b.Tag("desc", text) }

// Icon sets icons: https: or data: URIs.
func (b *Builder) Icon(uris ...string) *Builder { return b.Tag("icon", strings.Join(uris, " ")) }

// Hints says how a tool affects its environment.
func (b *Builder) Hints(hints ...string) *Builder { return b.Tag("hints", strings.Join(hints, ",")) }

// Scopes sets the scopes that a caller needs.
func (b *Builder) Scopes(scopes ...string) *Builder {
	return b.Tag("scopes", strings.Join(scopes, " "))
}

// Tags sets labels for middleware. They are not sent to clients.
func (b *Builder) Tags(labels ...string) *Builder { return b.Tag("tags", strings.Join(labels, " ")) }

// Hidden leaves the item out of lists. Clients that know it can use it.
func (b *Builder) Hidden() *Builder { return b.Tag("hidden", "true") }

// Timeout limits the time of a call; 0 means no limit.
func (b *Builder) Timeout(d time.Duration) *Builder { return b.Tag("timeout", d.String()) }

// Rate limits how many calls each caller may begin: "10/s", "100/m burst=20".
func (b *Builder) Rate(limit string) *Builder { return b.Tag("rate", limit) }

// Cache sets how long the results of a tool with the hint readonly are kept, or how long clients may
// keep the contents of a resource, and for whom: "60s", "10m,public".
func (b *Builder) Cache(policy string) *Builder { return b.Tag("cache", policy) }

// Params names the plain parameters of the function in order: "topic,style?".
func (b *Builder) Params(names string) *Builder { return b.Tag("params", names) }

// Rules restricts plain parameters: "style:oneof=short long; count:min=1,max=9".
func (b *Builder) Rules(rules string) *Builder { return b.Tag("rules", rules) }

// MIME sets the media type of the contents of a resource.
func (b *Builder) MIME(mediaType string) *Builder { return b.Tag("mime", mediaType) }

// Delivery sets how clients may learn of an event: some of "poll", "push" and "webhook".
func (b *Builder) Delivery(modes ...string) *Builder {
	return b.Tag("delivery", strings.Join(modes, ","))
}

// Size sets the size of the contents of a resource in bytes, which clients see in the list.
func (b *Builder) Size(bytes int64) *Builder { b.size = &bytes; return b }

// Meta adds a member to the _meta of the definition. Add fails if value does not encode as JSON.
func (b *Builder) Meta(key string, value any) *Builder { b.meta[key] = value; return b }

// Input sets the JSON Schema of the arguments of a tool, an object. The server validates the
// arguments by it. The function takes them as one parameter or reads them from its *Call; other
// parameters are injected. The parameter is a map[string]any, a json.RawMessage, or a struct, whose
// defaults are filled in and whose rules hold as well. Defaults in the schema are not filled in, and
// numbers in the map are float64, so large integers are exact in a json.RawMessage only. Server.Add
// returns an error if the server does not have the option [RawSchemas], if the schema is not valid or
// refers to anything outside itself, if a property has no field in the struct, or if the schema does
// not allow what a field takes.
func (b *Builder) Input(schema string) *Builder { b.input = json.RawMessage(schema); return b }

// Output sets the JSON Schema of the structured result of a tool, in place of the schema of the
// function's result type. A result that does not fit is an internal error. The server needs the
// option [RawSchemas].
func (b *Builder) Output(schema string) *Builder { b.output = json.RawMessage(schema); return b }

// entry returns the entry of the item for a server.
func (b *Builder) entry(s *Server) (*entry, error) {
	var faults reflectx.Errors
	a := annotation.Parse(&faults, b.site, b.kind, b.tags, s.config.tags)
	if a.Meta == nil && len(b.meta) > 0 {
		a.Meta = protocol.Meta{}
	}
	for _, key := range slices.Sorted(maps.Keys(b.meta)) {
		if err := a.Meta.Set(key, b.meta[key]); err != nil {
			faults.Addf(b.site, "Meta(%q): %v", key, err)
		}
	}
	if faults != nil {
		return nil, faults
	}
	a.About.Name = b.name
	m := service.Method{Method: reflectx.Method{Func: b.fn}, Annotation: a, Site: b.site}
	def := &spec{Method: m, input: b.input, output: b.output, size: b.size}
	return def.entry(s)
}

// RemoveTools removes tools by name and reports whether any existed. Running calls continue.
func (s *Server) RemoveTools(names ...string) (removed bool) { return s.remove(names, annotation.Tool) }

// RemovePrompts removes prompts by name and reports whether any existed.
func (s *Server) RemovePrompts(names ...string) (removed bool) {
	return s.remove(names, annotation.Prompt)
}

// RemoveResources removes resources by URI, and resource templates by template. It reports whether
// any existed.
func (s *Server) RemoveResources(uris ...string) (removed bool) {
	return s.remove(uris, annotation.Resource, annotation.Template)
}

// remove removes the entries of these kinds with one of the keys.
func (s *Server) remove(keys []string, kinds ...annotation.Kind) (removed bool) {
	_ = s.change(func(own *catalog) error {
		removed = own.remove(func(e *entry) bool { return slices.Contains(kinds, e.Kind) && slices.Contains(keys, e.key) })
		return nil
	})
	return removed
}
