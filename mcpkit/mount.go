package mcpkit

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/toolname"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/family"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A mount is one server as part of another.
type mount struct {
	parent, child *Server
	prefix        string
	around        []Middleware
	site          string // who mounted it, for errors: `mounted as "billing" (main.go:12)`
}

// Mount makes the tools, prompts, resources, own methods (see [Handle]) and extensions of other part
// of s, now and in future: what is added to other or removed from it is added and removed here, too,
// and subscribed clients of s are notified. Tools and prompts get the prefix: "billing" makes
// "billing_refund" of "refund", and "" leaves the names unchanged. Resources keep their URIs, since
// results and links contain them.
//
// A call passes the middleware of s, then that of [Around], then that of other, and the limits and
// tags of other apply. Middleware and methods of other see the names of other. Lists, completions
// and subscriptions also pass the middleware of other, and what it refuses is left out. initialize,
// server/discover, ping and logging/setLevel pass only the middleware of s. The options of s decide
// which errors callers see.
//
// If a name, URI or method exists already, nothing is mounted, and the error names both places.
// Later, other refuses to register what would collide in s. Scopes need [Authenticated] or
// [TrustLocal] on s.
//
// Starting s starts other, and closing s closes it. other may also be served by itself and be
// mounted in several servers, but not within itself.
func (s *Server) Mount(prefix string, other *Server, opts ...MountOption) error {
	return s.mount(&mount{parent: s, child: other, prefix: prefix, site: mountSite(prefix)}, opts)
}

func (s *Server) mount(m *mount, opts []MountOption) error {
	other := m.child
	if err := m.check(opts); err != nil {
		return err
	}
	unlock := family.LockBoth(s.family, other.family)
	if other.contains(s) {
		unlock(false)
		return m.fault("a server cannot be mounted within itself")
	}
	var p plan
	err := p.apply(s, func(c *catalog) error { return m.mirror(c, &catalog{}, other.catalog.Load()) })
	if err == nil {
		other.followers.add(m)
		s.mounts.add(m)
		p.store()
	}
	unlock(err == nil)
	if err != nil {
		return err
	}
	s.life.add(other)
	p.announce()
	return nil
}

// MustMount is like [Server.Mount], but panics with the error.
func (s *Server) MustMount(prefix string, other *Server, opts ...MountOption) {
	if err := s.mount(&mount{parent: s, child: other, prefix: prefix, site: mountSite(prefix)}, opts); err != nil {
		panic(err)
	}
}

func mountSite(prefix string) string { return calledFrom(fmt.Sprintf("mounted as %q", prefix)) }

func (m *mount) fault(format string, args ...any) error {
	return &reflectx.Error{Site: "mcpkit: Mount: " + m.site, Msg: fmt.Sprintf(format, args...)}
}

func (m *mount) check(opts []MountOption) error {
	if m.parent == nil {
		return m.fault("the server to mount it in is nil")
	}
	if m.child == nil {
		return m.fault("the server to mount is nil")
	}
	if m.prefix != "" {
		if err := toolname.Check(m.prefix); err != nil {
			return m.fault("prefix: %v", err)
		}
	}
	for _, o := range opts {
		m.around = append(m.around, o.wrap()...)
	}
	return checkMiddleware("Around", m.around)
}

// contains reports whether other is s or is mounted in it, directly or indirectly.
func (s *Server) contains(other *Server) bool {
	return s == other || slices.ContainsFunc(s.mounts.all(), func(m *mount) bool { return m.child.contains(other) })
}

// mirror replaces the entries of the mount in c, the catalog of the parent, by the entries of next.
// Lists that are equal in both catalogs of the child stay unchanged.
func (m *mount) mirror(c *catalog, old, next *catalog) error {
	d := mirrored(nil, m, &c.tools, old.tools, next.tools, m.tool)
	d = mirrored(d, m, &c.prompts, old.prompts, next.prompts, m.prompt)
	d = mirrored(d, m, &c.resources, old.resources, next.resources, m.resource)
	d = mirrored(d, m, &c.templates, old.templates, next.templates, m.resource)
	if err := checkMirrored(d); err != nil {
		return err
	}
	if faults := m.parent.checkScopes(d); faults != nil {
		return faults
	}
	if err := c.add(d); err != nil {
		return err
	}
	return m.mirrorMethods(c, old, next)
}

// mirrored removes the entries of the mount from r, and appends those to add in their place to d.
// Entries that stay are used again, with their encoded JSON.
func mirrored[T item](d draft, m *mount, r *registry[T], old, next registry[T], mirror func(T) T) draft {
	if old.view == next.view {
		return d
	}
	known := map[item]T{}
	for _, it := range r.added {
		if e := it.base(); e.from == m {
			known[e.inner] = it
		}
	}
	r.remove(func(e *entry) bool { return e.from == m })
	for _, inner := range next.all() {
		it, ok := known[inner]
		if !ok {
			it = mirror(inner)
		}
		d = append(d, it)
	}
	return d
}

// entry returns the parent's entry for one of the child.
func (m *mount) entry(inner item) entry {
	e := inner.base()
	outer := entry{
		key: e.key, site: fmt.Sprintf("%s, %s", e.site, m.site), scopes: e.scopes, tags: e.tags, hidden: e.hidden,
		logs: e.logs, overdue: new(overdueCount), secrets: e.secrets, wire: e.wire, from: m, inner: inner, stepUp: m.parent.config.stepUp,
	}
	outer.run = wrap("Around: ", func(ctx context.Context, call *Call) (Result, error) {
		return m.enter(ctx, call, inner, call.row)
	}, m.around)
	return outer
}

// name returns the parent's name for a name of the child.
func (m *mount) name(name string) string {
	if m.prefix == "" {
		return name
	}
	return m.prefix + "_" + name
}

func (m *mount) tool(inner *tool) *tool {
	t := &tool{entry: m.entry(inner), def: inner.def, members: inner.members, headers: inner.headers, raw: inner.raw}
	t.key = m.name(inner.key)
	t.def.Name = t.key
	if t.key != inner.key {
		t.setToolWire()
	}
	return t
}

func (m *mount) prompt(inner *prompt) *prompt {
	p := &prompt{entry: m.entry(inner), def: inner.def, complete: inner.complete, raw: inner.raw}
	p.key = m.name(inner.key)
	p.def.Name = p.key
	if p.key != inner.key {
		p.setPromptWire()
	}
	return p
}

func (m *mount) resource(inner *resource) *resource {
	r := *inner
	r.entry = m.entry(inner)
	return &r
}

// checkMirrored checks names after the prefix was added.
func checkMirrored(d draft) error {
	var faults reflectx.Errors
	for _, it := range d {
		if _, isResource := it.(*resource); isResource {
			continue
		}
		e := it.base()
		if err := toolname.Check(e.key); err != nil {
			faults = append(faults, &reflectx.Error{Site: e.site, Msg: err.Error()})
		}
	}
	return joinFaults(faults)
}

// mirrorMethods gives c the methods, topics and extensions that were added to the child. They cannot
// be removed.
func (m *mount) mirrorMethods(c *catalog, old, next *catalog) error {
	for _, d := range next.extensions[len(old.extensions):] {
		_ = c.declare(d) // a server that has the extension itself, or from another mount, has declared it
	}
	for _, t := range next.topics[len(old.topics):] {
		t.from = m
		if err := c.addTopic(t); err != nil {
			return m.fault("%v", err)
		}
	}
	if len(next.methods) == len(old.methods) {
		return nil
	}
	var rows []*methodRow
	for _, name := range slices.Sorted(maps.Keys(next.methods)) { // so that the error is always the same
		row, known := next.methods[name], c.methods[name]
		if row.source == nil || old.methods[name] != nil || known != nil && known.source == m {
			continue
		}
		outer := row.with(func(ctx context.Context, call *Call) (Result, error) { return m.enter(ctx, call, nil, row) })
		outer.source, outer.by, outer.overdue = m, ", by the server "+m.site, new(overdueCount)
		rows = append(rows, outer)
	}
	if err := c.addMethods(rows...); err != nil {
		return m.fault("%v", err)
	}
	return nil
}

// enter implements [gate]: it answers a call of the parent with the child, whose middleware runs
// around the row's handler.
func (m *mount) enter(ctx context.Context, outer *Call, target item, row *methodRow) (Result, error) {
	if err := m.child.awaitStart(ctx); err != nil {
		return nil, fmt.Errorf("mcpkit: %s did not start: %w", m.site, err)
	}
	inner := &Call{
		request: outer.request, server: m.child, catalog: m.child.catalog.Load(), row: row,
		name: outer.name, vars: outer.vars,
	}
	outer.limit.mu.Lock()
	inner.around, inner.inside = outer.inside, outer.inside
	outer.limit.mu.Unlock()
	if kept := outer.values.Load(); kept != nil {
		inner.values.Store(kept)
	}
	if target != nil {
		inner.entry, inner.target = target.base(), target
		if _, isResource := target.(*resource); !isResource && outer.name != "" {
			inner.name = inner.entry.key
		}
	}
	if row.method == protocol.MethodSubscriptionsListen {
		_ = findListened(inner) // finds no faults
	}
	inner.within(ctx)
	return m.child.run(inner)
}

// through runs h inside the middleware of the servers that the target of the call is mounted from,
// the outermost first.
func (c *Call) through(ctx context.Context, h Handler) (Result, error) {
	if c.entry == nil || c.entry.from == nil {
		return h(ctx, c)
	}
	return c.entry.from.enter(ctx, c, c.entry.inner, c.row.with(func(ctx context.Context, inner *Call) (Result, error) {
		return inner.through(ctx, h)
	}))
}

// showing returns the servers of a name, given by its digest, in which s is mounted, directly or
// indirectly, so that its tool has another name there.
func (s *Server) showing(tool string, server []byte, as string) []*Server {
	var found []*Server
	for _, f := range s.followers.all() {
		m, ok := f.(*mount)
		if !ok {
			continue
		}
		name := m.name(tool)
		if name == as && bytes.Equal(m.parent.state.Owner, server) {
			found = append(found, m.parent)
		}
		found = append(found, m.parent.showing(name, server, as)...)
	}
	return found
}

// guarded reports whether s, or a server that is mounted in it, has middleware.
func (s *Server) guarded() bool {
	return s.hasMiddleware.Load() || slices.ContainsFunc(s.mounts.all(), func(m *mount) bool { return m.child.guarded() })
}

// refusedGates asks the middleware of mounted servers whether the call may list their entries, and
// returns those that refuse.
func (c *Call) refusedGates(ctx context.Context) map[gate]bool {
	var refused map[gate]bool
	for _, m := range c.server.mounts.all() {
		if !m.child.guarded() {
			continue
		}
		if refused == nil {
			refused = map[gate]bool{}
		}
		m.askToList(ctx, c, refused)
	}
	if len(refused) == 0 {
		return nil
	}
	return refused
}

// askToList runs the middleware of the child, and of what is mounted in it, around an empty
// handler.
func (m *mount) askToList(ctx context.Context, c *Call, refused map[gate]bool) {
	reached := false
	_, err := m.enter(ctx, c, nil, c.row.with(func(ctx context.Context, inner *Call) (Result, error) {
		reached = true
		maps.Copy(refused, inner.refusedGates(ctx))
		return emptyResult, nil
	}))
	// Middleware that answers by itself also refuses.
	if err != nil || !reached {
		refused[m] = true
	}
}

// refusedBy reports whether the entry comes from one of the mounts, directly or indirectly.
func (e *entry) refusedBy(mounts map[gate]bool) bool {
	for e.from != nil {
		if mounts[e.from] {
			return true
		}
		e = e.inner.base()
	}
	return false
}

// listenThrough runs h, which holds the request open, inside the middleware of mounted servers. If
// one refuses, the listener is not notified of the resources and topics of that server.
func (c *Call) listenThrough(ctx context.Context, l *listener, h Handler) (Result, error) {
	return c.listenThroughAll(ctx, c.server.mounts.all(), l, h)
}

func (c *Call) listenThroughAll(ctx context.Context, mounts []*mount, l *listener, h Handler) (Result, error) {
	if len(mounts) == 0 {
		return h(ctx, c)
	}
	m := mounts[0]
	rest := func(ctx context.Context) (Result, error) { return c.listenThroughAll(ctx, mounts[1:], l, h) }
	if !m.child.guarded() {
		return rest(ctx)
	}
	reached := false
	result, err := m.enter(ctx, c, nil, c.row.with(func(ctx context.Context, inner *Call) (Result, error) {
		reached = true
		return inner.listenThrough(ctx, l, func(ctx context.Context, _ *Call) (Result, error) { return rest(ctx) })
	}))
	if reached {
		return result, err
	}
	l.filter.ResourceSubscriptions = slices.DeleteFunc(l.filter.ResourceSubscriptions, func(uri string) bool {
		match, _ := c.catalog.findResource(c.principal, uri)
		return match.resource != nil && match.resource.from == m
	})
	for _, t := range c.catalog.topics {
		if t.from == m {
			delete(l.topics, t.Topic)
		}
	}
	return rest(ctx)
}

// follow applies a change of the child to the parent.
func (m *mount) follow(p *plan, old, next *catalog) error {
	return p.apply(m.parent, func(c *catalog) error { return m.mirror(c, old, next) })
}

// updated notifies the clients of the parent that a resource of the child has changed.
func (m *mount) updated(uri string) bool {
	match, _ := m.parent.catalog.Load().findResource(nil, uri)
	return match.resource != nil && match.resource.from == m && m.parent.ResourceUpdated(uri)
}
