package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A mount is one server as part of another.
type mount struct {
	parent, child *Server
	prefix        string
	guards
	site    string            // who mounted it, for errors: `mounted as "billing" (main.go:12)`
	entries map[*entry]*entry // those of the parent by those of the child; guarded by parent.registering
}

// Mount makes the tools, prompts, resources, own methods (see [Handle]) and extensions of other part
// of s, now and in future: what is added to other or removed from it is added and removed here, too,
// and subscribed clients of s are notified. Tools and prompts get the prefix: "billing" makes
// "billing_refund" of "refund", and "" leaves the names unchanged. Resources keep their URIs, since
// results and links contain them.
//
// A call, a completion or a subscription passes the middleware of s, then that of [Around], then
// that of other, and the limits and tags of other apply. [Call.Name] is the name in s everywhere;
// [Call.OwnName] is that in the server that registered it. The other options of s apply: its logger,
// its limits, which errors callers see. Other methods pass only the middleware of s.
//
// What exists in s or in an earlier mount stays: a tool, prompt, resource or method of other with the
// same name or URI is left out, and the log names both places. So is a URI for which an earlier server
// has a template. Scopes need [Authenticated] or [TrustLocal] on s, or Mount returns an error, as it
// does if another mounted server has the same extension with methods: give the extension to s instead.
// An extension with a [Runner], such as tasks, is given to both: that of s runs what clients of s call.
//
// Starting s starts other, and closing s closes it. other may also be served by itself and be
// mounted in several servers, but not within itself.
func (s *Server) Mount(prefix string, other *Server, opts ...MountOption) error {
	return s.mount(&mount{parent: s, child: other, prefix: prefix, site: mountSite(prefix)}, opts)
}

// MustMount is like [Server.Mount], but panics with the error.
func (s *Server) MustMount(prefix string, other *Server, opts ...MountOption) {
	if err := s.mount(&mount{parent: s, child: other, prefix: prefix, site: mountSite(prefix)}, opts); err != nil {
		panic(err)
	}
}

func mountSite(prefix string) string { return calledFrom(fmt.Sprintf("mounted as %q", prefix)) }

// mounting is held by Mount, so that two servers are not mounted in each other at the same time.
var mounting sync.Mutex

func (s *Server) mount(m *mount, opts []MountOption) error {
	mounting.Lock()
	defer mounting.Unlock()
	if err := m.check(opts); err != nil {
		return err
	}
	err := s.change(func(own *catalog) error {
		merged, child := s.catalog.Load(), m.child.catalog.Load()
		for _, name := range slices.Sorted(maps.Keys(child.methods)) {
			if known := merged.methods[name]; known != nil && own.methods[name] == nil {
				return m.fault("the method %q is registered already%s", name, known.by)
			}
		}
		own.mounts = append(slices.Clip(own.mounts), m)
		return nil
	})
	if err != nil {
		return err
	}
	s.life.add(m.child)
	return m.child.change(func(own *catalog) error {
		own.parents = append(slices.Clip(own.parents), m)
		return nil
	})
}

func (m *mount) fault(format string, args ...any) error {
	return &reflectx.Error{Site: "mcpkit: Mount: " + m.site, Msg: fmt.Sprintf(format, args...)}
}

func (m *mount) check(opts []MountOption) error {
	if m.child == nil {
		return m.fault("the server to mount is nil")
	}
	if m.prefix != "" {
		if err := naming.Check(m.prefix); err != nil {
			return m.fault("prefix: %v", err)
		}
	}
	if m.child.contains(m.parent) {
		return m.fault("a server cannot be mounted within itself")
	}
	for _, e := range m.child.catalog.Load().extensions {
		if e.Runner != nil && !m.parent.catalog.Load().extendedBy(e.ID) {
			return m.fault("it has the extension %q, which runs tools after their requests: give it to the outer server, too", e.ID)
		}
	}
	for _, o := range opts {
		o.mount(m)
	}
	if faults := m.parent.checkScopes(m.child.catalog.Load().entries()); faults != nil {
		return m.fault("%v", faults)
	}
	return nil
}

// contains reports whether other is s or is mounted in it, directly or indirectly.
func (s *Server) contains(other *Server) bool {
	return s == other || slices.ContainsFunc(s.catalog.Load().mounts, func(m *mount) bool { return m.child.contains(other) })
}

// merge returns the catalog of what is registered on the server and of what is mounted. The caller
// holds registering.
func (s *Server) merge() *catalog {
	c := *s.own
	c.leftOut = map[string]bool{}
	c.templates = slices.Clip(c.list(annotation.Template).sorted)
	for _, m := range c.mounts {
		m.addTo(&c, m.child.catalog.Load())
	}
	return &c
}

// addTo adds what the child has to c, the catalog of the parent that is being made. Entries that the
// parent has known are used again, with their encoded JSON. Methods cannot be removed.
func (m *mount) addTo(c, child *catalog) {
	known := m.entries
	m.entries = map[*entry]*entry{}
	taken := func(old, e *entry) {
		c.leftOut[fmt.Sprintf("%s %q is registered by %s and by %s; the first one stays", e.Kind, e.key, old.site, e.site)] = true
	}
	var entries []*entry
	for _, inner := range child.entries() {
		if inner.Kind == annotation.Event {
			continue // its server emits it
		}
		e, err := known[inner], error(nil)
		if e == nil {
			e, err = m.entry(inner)
		}
		if err == nil {
			m.entries[inner] = e
		}
		if err == nil && e.key != inner.key {
			err = naming.Check(e.key)
		}
		if err != nil {
			c.leftOut[fmt.Sprintf("%s %q, %s: %v", e.Kind, e.key, e.site, err)] = true
			continue
		}
		if e.Kind == annotation.Resource {
			if old, _ := c.match(e.key); old != nil { // perhaps a template
				taken(old, e)
				continue
			}
		}
		entries = append(entries, e)
	}
	c.add(entries, taken)
	for _, inner := range child.templates { // one that is left out has another with the same key before it
		if e := m.entries[inner]; e != nil {
			c.templates = append(c.templates, e)
		}
	}
	for _, e := range child.extensions {
		_ = c.extend(e) // a server that has the extension itself, or from an earlier mount, has declared it
	}
	for name, row := range child.methods {
		if known := c.methods[name]; coreMethods[name] != nil || known != nil && known.by == row.by {
			continue // the server has the extension itself
		}
		outer := *row
		outer.handle, outer.by = m.within(row.handle), ", by the server "+m.site
		if err := c.addMethods(&outer); err != nil {
			c.leftOut[fmt.Sprintf("a method of the server %s: %v", m.site, err)] = true
		}
	}
}

// entry returns the parent's entry for one of the child.
func (m *mount) entry(inner *entry) (*entry, error) {
	e := *inner
	e.site += ", " + m.site
	e.from, e.inner = m, inner
	e.show(m.visible, inner)
	e.run = m.within(inner.answer)
	e.wrapAround(m.around)
	if m.prefix != "" && (e.Kind == annotation.Tool || e.Kind == annotation.Prompt) {
		e.key = m.prefix + "_" + inner.key
		e.definition = inner.definition.edited([]byte("{}"), jsonx.With([]byte("{}"), "name", jsonx.AppendString(nil, e.key)))
		about := *e.Annotation
		about.Aliases = nil
		for _, alias := range inner.Aliases {
			about.Aliases = append(about.Aliases, m.prefix+"_"+alias)
		}
		e.Annotation = &about
	}
	if e.tool != nil {
		t := *e.tool
		t.Name = e.key
		e.tool = &t
	}
	described, err := m.parent.described(&e)
	described.show(m.parent.config.visible, described)
	return described, err
}

// within returns h inside the middleware of the child.
func (m *mount) within(h Handler) Handler {
	s := m.child
	return func(ctx context.Context, call *Call) (Result, error) {
		if err := s.awaitStart(ctx); err != nil {
			return nil, fmt.Errorf("mcpkit: %s did not start: %w", m.site, err)
		}
		return s.chain.get()(context.WithValue(ctx, withinKey{s}, h), call)
	}
}

// through returns h inside the middleware that calls of the entry pass: that of Around, and that of the
// servers that it is mounted from.
func (e *entry) through(h Handler) Handler {
	if e.from != nil {
		h = e.from.within(e.inner.through(h))
	}
	return e.inAround(h)
}

// An Upstream answers for tools, prompts and resources of another server, of which there are only
// the definitions: see [Upstream.Item] and [ItemSet]. Package proxy is made of it.
type Upstream struct {
	// Site says where the definitions come from, for errors: "proxy of weather".
	Site string
	// Scopes are what a caller needs to see and use them.
	Scopes []string
	// Call answers tools/call, prompts/get and resources/read. [Call.OwnName] is the name in the
	// definition.
	Call Handler
	// Complete answers completion/complete; nil if arguments and variables cannot be completed.
	Complete Handler
	// Subscribe is called for each subscription to a resource. Its error is that of the subscription.
	// What changes is told with [Server.ResourceUpdated], at each replica of a [Fleet] for its own clients.
	Subscribe func(ctx context.Context, uri string) error
}

// upstreamLists are the lists of a server, with the member that is the key of a definition.
var upstreamLists = map[string]struct {
	kind annotation.Kind
	key  string
}{
	protocol.MethodToolsList:              {annotation.Tool, "name"},
	protocol.MethodPromptsList:            {annotation.Prompt, "name"},
	protocol.MethodResourcesList:          {annotation.Resource, "uri"},
	protocol.MethodResourcesTemplatesList: {annotation.Template, "uriTemplate"},
}

// Item returns the item of a definition, a JSON object of the protocol. list is the method whose
// result it is part of: "tools/list", "prompts/list", "resources/list" or "resources/templates/list".
// Unknown members are kept. The error says what is wrong with the definition.
func (u *Upstream) Item(list string, definition json.RawMessage) (Item, error) {
	of, ok := upstreamLists[list]
	if !ok {
		return nil, fmt.Errorf("%s: %q lists no definitions", u.Site, list)
	}
	key := jsonx.String(jsonx.Member(definition, of.key))
	about := &annotation.Annotation{Kind: of.kind, URI: key, Scopes: u.Scopes}
	about.About.Name = key
	item := &upstreamItem{u, about, definition}
	if _, err := item.entry(nil); err != nil {
		return nil, fmt.Errorf("%s: %q: %w", u.Site, key, err)
	}
	return item, nil
}

// An upstreamItem is a tool, prompt or resource of another server.
type upstreamItem struct {
	*Upstream
	about      *annotation.Annotation
	definition json.RawMessage
}

func (it *upstreamItem) entry(*Server) (*entry, error) {
	e, err := newEntry(it.about, fmt.Sprintf("%s (%s)", it.Site, it.about.About.Name))
	if err != nil {
		return nil, err
	}
	e.subscribe, e.logs, e.definition = it.Subscribe, true, defined(it.definition)
	e.run = limited(it.Call)
	if e.Kind == annotation.Prompt || e.Kind == annotation.Template {
		e.complete = it.Complete
	}
	var t protocol.Tool
	known := [...]any{&t, &protocol.Prompt{}, &protocol.Resource{}, &protocol.ResourceTemplate{}}[e.Kind.Place()]
	if err := jsonx.Unmarshal(it.definition, known); err != nil || e.Kind != annotation.Tool {
		return e, err
	}
	e.shown = secret.OfSchema(t.InputSchema)
	e.definition.ofTool = true
	return e, e.setTool(t)
}
