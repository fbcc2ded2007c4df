package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Describe changes what tools, prompts and resources say of themselves: own ones, built ones, and those
// of mounted and remote servers alike. What they do stays. f is called for each when it is registered or
// mounted, and again by [Server.Refresh]. Several functions are called in order. f must not call the
// server.
func Describe(f func(*Def)) Option {
	return option(func(c *config) error { c.describe = append(c.describe, f); return nil })
}

// Refresh calls the functions of [Describe] again for all that the server has, for example after texts
// were read again. Subscribed clients are notified of the lists that differ. If there is a fault in what
// is registered on the server itself, nothing changes.
func (s *Server) Refresh() error {
	if s.config.describe == nil {
		return nil
	}
	return s.change(func(own *catalog) error {
		var plain []*entry
		for _, e := range own.entries() {
			plain = append(plain, e.plain)
		}
		own.lists = [len(own.lists)]list{}
		if err := s.enter(own, nil, plain); err != nil {
			return err
		}
		for _, m := range own.mounts {
			m.entries = nil
		}
		return nil
	})
}

// A Def is what clients see of a tool, prompt, resource or resource template.
type Def struct {
	// Entry is what was registered, with its own name.
	Entry Entry `json:"-"`
	// Name is what calls of a tool or prompt name. That of a resource is for people.
	Name        string          `json:"name"`
	Title       string          `json:"title,omitzero"`
	Description string          `json:"description,omitzero"`
	Icons       []protocol.Icon `json:"icons,omitzero"`
	// Annotations are the hints of a tool, or the audience and priority of a resource.
	Annotations struct {
		protocol.ToolAnnotations
		protocol.Annotations
	} `json:"annotations,omitzero"`
	Meta protocol.Meta `json:"_meta,omitzero"` // may be nil
	// Hidden leaves the item out of lists.
	Hidden bool `json:"-"`
	// Aliases are further names that calls of a tool or prompt may use.
	Aliases []string `json:"-"`
	// Args are the arguments of a tool or prompt.
	Args []*Arg `json:"-"`

	faults []error
}

// An Arg is an argument of a tool or prompt.
type Arg struct {
	Name        string
	Description string
	// Default is the JSON of the value of an absent argument of a tool; nil: there is none.
	Default json.RawMessage
	// Hidden leaves the argument out of the definition. What a client sends for it is ignored.
	Hidden bool
	// Value gives the value of a hidden argument, which encodes to JSON, or to a JSON string for a
	// prompt. A nil Value, and a nil value: the argument is absent. In the run of a task, call has no header.
	Value func(ctx context.Context, call *Call) (any, error)

	text  json.RawMessage // of the definition: the schema, or the argument of the prompt
	added bool
}

// Arg returns the argument with the name. It is a fault if there is none.
func (d *Def) Arg(name string) *Arg {
	var names []string
	for _, a := range d.Args {
		if a.Name == name {
			return a
		}
		names = append(names, a.Name)
	}
	d.faults = append(d.faults, fmt.Errorf("Describe: there is no argument %q%s", name, naming.Hint(name, names)))
	return new(Arg)
}

// Add adds an optional argument with a JSON Schema to a tool. The method does not get it: middleware of
// [Server.Use] reads it in [Call.Arguments], and what is behind that in [Call.Added]. The server needs the
// option [RawSchemas].
func (d *Def) Add(name, schema string) {
	if d.Entry.of.Kind != annotation.Tool {
		d.faults = append(d.faults, fmt.Errorf("Describe: Add(%q): it is no tool", name))
	}
	d.addArg(name, json.RawMessage(schema)).added = true
}

func (d *Def) addArg(name string, text json.RawMessage) *Arg {
	a := &Arg{Name: name, Description: jsonx.String(jsonx.Member(text, "description")), text: text}
	a.Default = jsonx.Member(text, "default")
	d.Args = append(d.Args, a)
	return a
}

// Added returns an argument that [Def.Add] has added; nil if it is absent.
func (c *Call) Added(name string) json.RawMessage { return jsonx.Member(c.added(), name) }

// added returns all that was added.
func (c *Call) added() json.RawMessage {
	added, _ := c.Get(addedKey{}).(json.RawMessage)
	return added
}

type addedKey struct{}

// described returns the entry as the functions of Describe change it, or the entry itself if there are none.
func (s *Server) described(plain *entry) (e *entry, err error) {
	if s.config.describe == nil {
		plain.plain = plain
		return plain, nil
	}
	e = new(*plain)
	e.plain = plain
	defer recoverAs(&err) // locks are held
	text, err := e.definition.latest()
	if err != nil {
		return e, err
	}
	d := &Def{Entry: Entry{plain}, Hidden: e.Hidden, Aliases: slices.Clip(e.Aliases)}
	if err := jsonx.Unmarshal(text, d); err != nil {
		return e, err
	}
	for name, schema := range jsonx.Members(jsonx.Member(jsonx.Member(text, "inputSchema"), "properties")) {
		d.addArg(jsonx.String(name), schema)
	}
	for argument := range jsonx.Elements(jsonx.Member(text, "arguments")) {
		d.addArg(jsonx.String(jsonx.Member(argument, "name")), argument)
	}
	was, _ := d.encode(text) // it was decoded
	for _, f := range s.config.describe {
		f(d)
	}
	is, err := d.encode(text)
	if err := errors.Join(append(d.faults, err)...); err != nil {
		return e, err
	}
	about := *e.Annotation
	about.Hidden, about.Aliases = d.Hidden, d.Aliases
	e.Annotation, e.definition = &about, e.definition.edited(was, is)
	if e.Kind == annotation.Tool || e.Kind == annotation.Prompt {
		e.key, err = d.Name, naming.Check(d.Name)
	}
	return e, errors.Join(err, e.redefine(), s.rewrite(e, d, jsonx.Member(text, "inputSchema")))
}

// encode returns the members of a definition that a Def has, as it is now.
func (d *Def) encode(definition []byte) ([]byte, error) {
	properties, arguments := []byte("{}"), []byte("[")
	var gone []string // from what is required
	for _, a := range d.Args {
		if a.Hidden || a.Default != nil {
			gone = append(gone, a.Name)
		}
		if a.Default != nil && !jsonx.Valid(a.Default) {
			return nil, fmt.Errorf("Describe: the default of %q is not valid JSON", a.Name)
		}
		if a.Hidden {
			continue
		}
		var description []byte
		if a.Description != "" {
			description = jsonx.AppendString(nil, a.Description)
		}
		text := jsonx.With(jsonx.With(a.text, "description", description), "default", a.Default)
		properties = jsonx.With(properties, a.Name, text)
		arguments = append(jsonx.AppendComma(arguments), text...)
	}
	b, err := jsonx.Marshal(d)
	switch schema := jsonx.Member(definition, "inputSchema"); {
	case err != nil:
	case schema != nil:
		required := []byte("[")
		for name := range jsonx.Elements(jsonx.Member(schema, "required")) {
			if !slices.Contains(gone, jsonx.String(name)) {
				required = append(jsonx.AppendComma(required), name...)
			}
		}
		if required = append(required, ']'); len(required) == 2 {
			required = nil
		}
		b = jsonx.With(b, "inputSchema", jsonx.With(jsonx.With(schema, "properties", properties), "required", required))
	case d.Entry.of.Kind == annotation.Prompt && len(arguments) > 1:
		b = jsonx.With(b, "arguments", append(arguments, ']'))
	}
	return b, err
}

// edited returns the definition with the members that differ between two objects as in the second one.
func (d *definition) edited(was, is []byte) *definition {
	return &definition{ofTool: d.ofTool, make: func(v protocol.Version) ([]byte, error) {
		text, err := d.make(v)
		if err != nil {
			return nil, err
		}
		for _, name := range [...]string{"name", "title", "description", "icons", "annotations", "_meta", "arguments", "inputSchema"} {
			if now := jsonx.Member(is, name); !bytes.Equal(now, jsonx.Member(was, name)) {
				text = jsonx.With(text, name, now)
			}
		}
		return text, nil
	}}
}

// redefine makes the tool of the entry that of its definition.
func (e *entry) redefine() (err error) {
	if e.tool == nil {
		return nil
	}
	text, err := e.definition.latest()
	if err != nil {
		return err
	}
	var def protocol.Tool
	if err := jsonx.Unmarshal(text, &def); err != nil {
		return err
	}
	return e.setTool(def)
}

// rewrite makes the entry run with arguments that are made of those of the client. schema is that of its
// own arguments; nil for other kinds than tools.
func (s *Server) rewrite(e *entry, d *Def, schema []byte) (err error) {
	var args []*Arg
	all, added := []byte("{}"), []byte("{}")
	for _, a := range d.Args {
		all = jsonx.With(all, a.Name, a.text)
		if a.added {
			added = jsonx.With(added, a.Name, a.text)
		}
		if a.added || a.Hidden || !bytes.Equal(a.Default, jsonx.Member(a.text, "default")) {
			args = append(args, a)
		}
	}
	if args == nil {
		return nil
	}
	if schema != nil {
		e.shown = e.shown.With(jsonx.With(schema, "properties", all))
	}
	var check reflectx.RawSchema
	if len(added) > len("{}") {
		check, err = s.handSchema("input", jsonx.With([]byte(`{"type":"object"}`), "properties", added))
	}
	run, complete := e.run, e.complete
	e.run = func(ctx context.Context, call *Call) (Result, error) {
		if err := call.rewrite(ctx, args, check); err != nil {
			return nil, err
		}
		result, err := run(ctx, call)
		return result, concealed(args, err)
	}
	if complete != nil {
		e.complete = func(ctx context.Context, call *Call) (Result, error) {
			if ok, err := call.rewriteCompletion(ctx, args); !ok || err != nil {
				return completion(nil), err
			}
			return complete(ctx, call)
		}
	}
	return err
}

// concealed returns an error about arguments without what it says of hidden ones. If one of them is
// wrong, the caller does not see the error.
func concealed(args []*Arg, err error) error {
	wrong, ok := errors.AsType[*reflectx.ArgumentError](err)
	if !ok {
		return err
	}
	for i := range wrong.Violations {
		v := &wrong.Violations[i]
		name, _, _ := strings.Cut(strings.TrimPrefix(v.Pointer, "/"), "/")
		for _, a := range args {
			if a.Hidden && a.Name == name {
				return fmt.Errorf("a hidden argument is wrong: %v", err)
			}
			if a.Hidden && strings.Contains(v.Hint, a.Name) {
				v.Hint = ""
			}
		}
	}
	return err
}

// rewrite gives the call the arguments of the method.
func (c *Call) rewrite(ctx context.Context, args []*Arg, check reflectx.RawSchema) error {
	edited, added, err := c.rewritten(ctx, args, orEmpty(c.Arguments()))
	if err != nil {
		return err
	}
	if check != nil {
		if err := check.Validate(added); err != nil {
			return err
		}
		c.Set(addedKey{}, added)
	}
	return c.SetArguments(edited)
}

// rewriteCompletion gives a completion the other arguments of the method. ok is false if that which is
// completed is hidden.
func (c *Call) rewriteCompletion(ctx context.Context, args []*Arg) (ok bool, err error) {
	p := *c.params.(*protocol.CompleteParams)
	if slices.ContainsFunc(args, func(a *Arg) bool { return a.Hidden && a.Name == p.Argument.Name }) {
		return false, nil
	}
	edited, _, err := c.rewritten(ctx, args, orEmpty(jsonx.Member(c.req.Param("context"), "arguments")))
	if err != nil {
		return false, err
	}
	req := *c.req
	req.Params = jsonx.With(req.Params, "context", jsonx.With([]byte("{}"), "arguments", edited))
	p.Context = new(protocol.CompletionContext)
	c.req, c.params = &req, &p
	return true, jsonx.Unmarshal(edited, &p.Context.Arguments)
}

// rewritten returns the arguments of the method for those of a client, and all that were added.
func (c *Call) rewritten(ctx context.Context, args []*Arg, given json.RawMessage) (edited, added json.RawMessage, err error) {
	edited, added = given, c.added()
	for _, a := range args {
		value := jsonx.Member(edited, a.Name)
		if a.added && value == nil {
			value = jsonx.Member(added, a.Name) // the call runs again
		}
		switch {
		case a.Hidden && a.Value != nil:
			v, err := a.Value(ctx, c)
			if value = nil; err == nil && v != nil {
				value, err = jsonx.Marshal(v)
			}
			if err != nil {
				return nil, nil, err
			}
		case a.Hidden || value == nil:
			value = a.Default
		}
		if a.added {
			added = jsonx.With(added, a.Name, value)
			value = nil
		}
		edited = jsonx.With(edited, a.Name, value)
	}
	return edited, added, nil
}
