package mcpkit

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// An Extension is what an extension of the protocol adds to a Server; see [Extend]. The zero value
// of each field but ID adds nothing. An extension never gets the Server itself: what changes while
// the server runs are its Topics and its Items.
type Extension struct {
	// ID identifies the extension: a reversed domain, a slash and a name, such as
	// "com.example/ratings".
	ID string

	// Settings are what the server declares in its capabilities, under ID. They encode to a JSON
	// object; nil means {}.
	Settings any

	// Since is the first protocol version that has the extension; "" means all versions. For
	// requests of earlier versions the server has neither the capability nor the methods.
	Since protocol.Version

	// Methods are the requests that clients may send.
	Methods []*Method

	// Topics are members that the extension adds to the filter of subscriptions/listen.
	Topics []*Topic

	// Items is a server with the extension's tools, prompts and resources, which is mounted in each
	// server that has the extension. An [ItemSet] replaces them all at once.
	Items *Server

	// Intercept wraps each call of a tool, inside of the middleware of [Server.Use]. It may answer
	// in place of the tool, also with a result type of its own (see [Result]). Ask
	// [Call.Extension] before it does that: a client that did not declare the extension would not
	// understand the result.
	Intercept Middleware

	// Tags are the keys of tags that the extension defines for tools. Tool reads them when a tool is
	// registered, and Intercept with [Call.ToolTag]. A tag that no extension of the server defines is a
	// fault.
	Tags []string

	// Tool checks a tool, and changes its definition for clients of a version. It is called for the
	// newest version when the tool is registered, and for another one when a client first asks for it.
	// Its error is a fault of the tool, with the tool's place. Tool is not called for tools of mounted
	// servers.
	//
	// When [New] calls Check, Tool has been called for the tools of all services.
	Tool func(t *ToolEntry, v protocol.Version) error

	// Events says that the extension serves the events of the server: see [Method.Event].
	Events bool

	// Check finds faults when the server is made: [New] returns its error.
	Check func() error

	// Runner runs tools outside of requests. It belongs to one server: where that is mounted, the outer
	// server needs the extension, too.
	Runner *Runner

	// Declare changes the capabilities that the server declares to clients of a version.
	Declare func(caps *protocol.ServerCapabilities, v protocol.Version)

	// Service is started and closed with the server, if it has the methods
	// Start(context.Context) error and Close() error. See [Server.Start].
	Service any

	settings protocol.Object // Settings, encoded by check
}

// Extend adds an extension to the server. A server may have an extension only once.
func Extend(e Extension) Option { return ExtendEach(func() Extension { return e }) }

// ExtendEach is like [Extend] for an extension that has state for each server: f is called for each
// server that gets the option.
func ExtendEach(f func() Extension) Option {
	return option(func(c *config) error {
		c.extensions = append(c.extensions, f())
		return nil
	})
}

// Extension returns the settings with which the client declared an extension: on this request
// (2026-07-28) or at the start of its session. ok is false if it did not declare it.
func (c *Call) Extension(id string) (settings protocol.Object, ok bool) {
	settings = c.ClientCapabilities().Extensions[id]
	return settings, settings != nil
}

// undeclared returns the error for a client that needs to declare the extension first.
func (c *Call) undeclared(id, what string) *jsonrpc.Error {
	return protocol.MissingClientCapability(
		protocol.ClientCapabilities{Extensions: map[string]protocol.Object{id: {}}},
		"%s needs a client that declares the extension %q", what, id)
}

// declare adds what a server with the extension declares to clients of a version.
func (e *Extension) declare(caps *protocol.ServerCapabilities, v protocol.Version) {
	if e.Declare != nil {
		e.Declare(caps, v)
	}
	if v < e.Since {
		return
	}
	if caps.Extensions == nil {
		caps.Extensions = map[string]protocol.Object{}
	}
	caps.Extensions[e.ID] = e.settings
}

// extend adds an extension to a server that is being made.
func (s *Server) extend(e *Extension) error {
	if e.Runner != nil {
		if !e.Runner.server.CompareAndSwap(nil, s) {
			return errors.New("its Runner belongs to another server; make one extension for each server")
		}
	}
	if err := e.check(); err != nil {
		return err
	}
	rows := make([]*methodRow, len(e.Methods))
	for i, m := range e.Methods {
		var err error
		if rows[i], err = m.rowOf(s, e); err != nil {
			return err
		}
	}
	err := s.change(func(c *catalog) error {
		if err := c.extend(e); err != nil {
			return err
		}
		return c.addMethods(rows...)
	})
	if err == nil && e.Items != nil {
		err = s.mount(&mount{parent: s, child: e.Items, site: fmt.Sprintf("of the extension %q", e.ID)}, nil)
	}
	if err != nil {
		return err
	}
	if e.Service != nil {
		s.life.add(e.Service)
	}
	return nil
}

// check checks the extension by itself, and encodes its settings.
func (e *Extension) check() error {
	domain, name, _ := strings.Cut(e.ID, "/")
	if !strings.Contains(domain, ".") || name == "" || strings.Contains(name, "/") {
		return errors.New(`the ID is a reversed domain, a slash and a name; write for example "com.example/ratings"`)
	}
	if e.Settings == nil {
		e.settings = protocol.Object{}
	} else if raw, err := jsonx.Marshal(e.Settings); err != nil || jsonx.Unmarshal(raw, &e.settings) != nil {
		return fmt.Errorf("the settings, a %T, do not encode to a JSON object", e.Settings)
	}
	if e.Check != nil {
		return e.Check()
	}
	return nil
}

// extend adds an extension to the catalog.
func (c *catalog) extend(e *Extension) error {
	members := []string{"", "toolsListChanged", "promptsListChanged", "resourcesListChanged", "eventsListChanged", "resourceSubscriptions"}
	if c.extendedBy(e.ID) {
		return errors.New("the server has it already")
	}
	for _, known := range c.extensions {
		for _, t := range known.Topics {
			members = append(members, t.member)
		}
	}
	for _, t := range e.Topics {
		if slices.Contains(members, t.member) {
			return fmt.Errorf("the member %q of a topic is empty or means something already", t.member)
		}
		members = append(members, t.member)
	}
	c.extensions = append(slices.Clip(c.extensions), e)
	return nil
}

// extendedBy reports whether the catalog has the extension with the ID.
func (c *catalog) extendedBy(id string) bool {
	return slices.ContainsFunc(c.extensions, func(e *Extension) bool { return e.ID == id })
}

// A ToolEntry is a tool for [Extension.Tool]. Only its Definition may be changed.
type ToolEntry struct {
	// Definition is a copy for one version. The maps and slices in it, other than Meta, must not be
	// changed.
	Definition protocol.Tool
	// Tags are the values of the tags that extensions define, by key.
	Tags map[string]string
	// Scopes are what a caller needs to see and call the tool.
	Scopes []string
	// Hidden reports whether the tool is left out of lists.
	Hidden bool
	// Site is where the tool was registered, for errors: "Notes.Search (notes.go:12)".
	Site string
}

// ToolTag returns the value of a tag that an [Extension] defines, of the tool that is called. ok is
// false if the tool does not have the tag.
func (c *Call) ToolTag(key string) (value string, ok bool) {
	value, ok = c.about().Extended[key]
	return value, ok
}

// extended returns the definition of a tool for a version, as the extensions change it.
func (s *Server) extended(of *entry, v protocol.Version) (protocol.Tool, error) {
	e := ToolEntry{*of.tool, of.Extended, of.Scopes, of.Hidden, of.site}
	e.Definition.Meta = protocol.Meta{}
	maps.Copy(e.Definition.Meta, of.tool.Meta)
	for i := range s.config.extensions {
		if f := s.config.extensions[i].Tool; f != nil {
			if err := f(&e, v); err != nil {
				return e.Definition, err
			}
		}
	}
	return e.Definition, nil
}

// AnyTags accepts tags of tools that no extension of the server defines, unless they are like one
// that is known: a check of services, such as mcpkit vet, does not know the extensions.
func AnyTags() Option {
	return option(func(c *config) error { c.tags.Any = true; return nil })
}

// readTags collects the tags of the extensions.
func (c *config) readTags() error {
	for _, e := range c.extensions {
		for _, key := range e.Tags {
			if key == "" || strings.ContainsAny(key, " :\"`") || annotation.IsKey(key) || slices.Contains(c.tags.Keys, key) {
				return fmt.Errorf("mcpkit: extension %q: the tag %q means something already, or has characters that no tag has", e.ID, key)
			}
			c.tags.Keys = append(c.tags.Keys, key)
		}
	}
	return nil
}

// A Method is a request of an [Extension]. Make one with [NewMethod].
type Method struct {
	row        methodRow // without what handler returns
	negotiated bool
	handler    func(s *Server) (Handler, error)
}

// NewMethod returns a request with the name that fn answers. The params are decoded into Req, and
// Resp becomes the result, an object.
//
// If Req is a struct, its tags are enforced as in tool arguments, and unknown members other than
// _meta are refused. Any other Req, or one with a method UnmarshalJSON, gets all params. Errors
// become protocol errors. [CallFrom] returns the call: its principal, its _meta, what the client
// declared.
func NewMethod[Req, Resp any](name string, fn func(ctx context.Context, req Req) (Resp, error)) *Method {
	return &Method{row: methodRow{method: name}, handler: func(s *Server) (Handler, error) {
		t := reflect.TypeFor[Req]()
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		p := reflect.PointerTo(t)
		if t.Kind() != reflect.Struct || p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return withParams(func(ctx context.Context, _ *Call, req *Req) (Result, error) { return fn(ctx, *req) }), nil
		}
		return s.checked(name, reflect.ValueOf(fn))
	}}
}

// checked returns the handler of a method whose params have tags.
func (s *Server) checked(method string, fn reflect.Value) (Handler, error) {
	o := reflectx.FuncOptions{Site: fmt.Sprintf("mcpkit: Handle(%q)", method), Input: s.inputOptions()}
	o.Input.What = "params"
	f, err := reflectx.Compile(fn, o)
	return func(ctx context.Context, call *Call) (Result, error) {
		params := call.req.Params
		if call.meta != nil {
			params = jsonx.With(params, "_meta", nil)
		}
		args, err := f.Decode(ctx, params)
		if err != nil {
			return nil, err
		}
		results, err := f.Call(ctx, args)
		if err != nil {
			return nil, err
		}
		return results[0].Interface(), nil
	}, err
}

// NameParam says that the header Mcp-Name mirrors the params' member, a string, for requests of
// 2026-07-28 over HTTP. [Call.Name] returns its value.
func (m *Method) NameParam(member string) *Method {
	m.row.nameParam, m.row.prepare = member, nameOf
	return m
}

// Event says that requests of the method are about the event that their member name names, which the
// method gets with [Call.Event]. If they stay open until the client ends them, no limit of time or
// number applies.
func (m *Method) Event(staysOpen bool) *Method {
	m.row.open = staysOpen
	m.row.prepare = func(call *Call) (err error) {
		call.name = jsonx.String(call.req.Param("name"))
		call.entry, err = call.choose(call.catalog.list(annotation.Event), call.name)
		return err
	}
	return m
}

// Versions limits the method to versions, both included, in place of those of the extension. ""
// means no limit.
func (m *Method) Versions(from, until protocol.Version) *Method {
	m.row.from, m.row.until = from, until
	return m
}

// Negotiated refuses requests of clients that did not declare the extension, in versions that have
// the extension.
func (m *Method) Negotiated() *Method { m.negotiated = true; return m }

// rowOf returns the row for the table of s. e is the extension that the method belongs to, or nil.
func (m *Method) rowOf(s *Server, e *Extension) (*methodRow, error) {
	row := m.row
	if row.method == "" || strings.HasPrefix(row.method, "rpc.") || strings.HasPrefix(row.method, "notifications/") {
		return nil, fmt.Errorf("%q is not a name for a method; write for example \"example.com/reindex\"", row.method)
	}
	if domain, _, _ := strings.Cut(row.method, "/"); e == nil && !strings.Contains(domain, ".") {
		near := naming.Nearest(row.method, slices.Sorted(maps.Keys(coreMethods)))
		if near != "" && near != row.method {
			return nil, fmt.Errorf("the method %q is like %q of the protocol; give it a prefix, such as \"example.com/\"", row.method, near)
		}
	}
	h, err := m.handler(s)
	if err != nil {
		return nil, err
	}
	row.handle, row.load = h, new(load)
	if !row.open {
		row.handle = limited(h)
	}
	if e == nil {
		return &row, nil
	}
	row.by = fmt.Sprintf(", by the extension %q", e.ID)
	if row.from == "" && row.until == "" {
		row.from = e.Since
	}
	if answer := row.handle; m.negotiated {
		row.handle = func(ctx context.Context, call *Call) (Result, error) {
			if _, ok := call.Extension(e.ID); !ok && call.version >= e.Since {
				return nil, call.undeclared(e.ID, row.method)
			}
			return answer(ctx, call)
		}
	}
	return &row, nil
}

// Event returns the event that a request is about; ok is false if it is about another thing, or the
// caller may not know of the event. open checks the arguments of the request and calls the event's
// method, whose iterator it returns.
func (c *Call) Event() (e Entry, open func(ctx context.Context) (any, error), ok bool) {
	e = Entry{c.entry}
	return e, func(ctx context.Context) (any, error) { return e.of.answer(ctx, c) }, e.of != nil && e.of.Kind == annotation.Event
}
