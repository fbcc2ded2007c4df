package reflectx

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/nearest"
)

// A Union lists the types that values of an interface type may have. In JSON, a member of the
// object, the discriminator, names the case. Create one with [NewUnion].
type Union struct {
	// Interface is the interface type.
	Interface reflect.Type
	// Discriminator is the name of the member: "kind".
	Discriminator string
	// Cases are the types, in the order in which schemas list them.
	Cases []UnionCase
}

// A UnionCase is one type of a [Union].
type UnionCase struct {
	// Name is the value of the discriminator. "" means the name of the type in snake case.
	Name string
	// Type is a struct or a pointer to one. Decoding creates values of exactly this type; encoding
	// accepts both the struct and pointers to it.
	Type reflect.Type
}

// NewUnion checks a union and sets missing names of its cases. Fields without a JSON form are only
// found where the union is used. The error is an [Errors] with every mistake; each begins with
// site.
func NewUnion(site string, iface reflect.Type, discriminator string, cases []UnionCase) (*Union, error) {
	var errs Errors
	errorf := func(format string, args ...any) {
		errs = append(errs, &Error{Site: site, Msg: fmt.Sprintf(format, args...)})
	}
	if iface.Kind() != reflect.Interface || iface.NumMethod() == 0 {
		errorf("%s is not an interface with methods; a union is of an interface that its cases implement", iface)
	}
	if discriminator == "" || strings.ContainsAny(discriminator, ",\"\\") {
		errorf("the discriminator is %q; write the name of a member, such as \"kind\"", discriminator)
	}
	if len(cases) == 0 {
		errorf("there are no cases; write a value of each type, such as Circle{}")
	}
	u := &Union{Interface: iface, Discriminator: discriminator, Cases: slices.Clone(cases)}
	names, types := map[string]reflect.Type{}, map[reflect.Type]bool{}
	for i := range u.Cases {
		one := &u.Cases[i]
		if one.Type == nil {
			errorf("case %d is nil; write a value of its type, such as Circle{}", i+1)
			continue
		}
		st := indirectType(one.Type)
		switch {
		case st.Kind() != reflect.Struct || st.Name() == "":
			errorf("case %d is a %s; write a struct with a name, or a pointer to one", i+1, one.Type)
			continue
		case ownJSON(st, forInput) != "" || ownJSON(st, forOutput) != "":
			errorf("case %d, %s, reads or writes its JSON itself, so that the discriminator cannot be part of it; write a plain struct", i+1, st)
			continue
		case iface.Kind() == reflect.Interface && !one.Type.Implements(iface):
			errorf("case %d, %s, does not implement %s", i+1, one.Type, iface)
			continue
		}
		if one.Name == "" {
			one.Name = SnakeCase(baseName(st.Name()))
		}
		if other := names[one.Name]; other != nil {
			errorf("%s and %s are both the case %q; give one another name", other, one.Type, one.Name)
		} else if types[st] {
			errorf("%s is a case twice", st)
		}
		names[one.Name], types[st] = one.Type, true
	}
	if errs != nil {
		return nil, errs
	}
	return u, nil
}

// names returns the names of the cases.
func (u *Union) names() []string {
	names := make([]string, len(u.Cases))
	for i, one := range u.Cases {
		names[i] = one.Name
	}
	return names
}

// A union is a Union whose cases are compiled. All places with the interface type share it.
type union struct {
	*Union
	cases []*node // of the structs
	specs []*spec // of the cases; nil once compiled
}

// objects returns the objects that a value of n may be.
func (n *node) objects() []*object {
	switch {
	case n.obj != nil:
		return []*object{n.obj}
	case n.union != nil:
		all := make([]*object, len(n.union.cases))
		for i, one := range n.union.cases {
			all[i] = one.obj
		}
		return all
	}
	return nil
}

// unionOf compiles the cases of the interface type t.
func (c *compiler) unionOf(t reflect.Type) *union {
	if u := c.unions[t]; u != nil {
		for _, one := range u.Cases { // cases that are being compiled are recursive
			if o := c.objects[objectKey{t: indirectType(one.Type), discriminator: u.Discriminator, name: one.Name}]; o != nil {
				o.recursive = o.recursive || o.compiling
			}
		}
		return u
	}
	u := &union{Union: c.o.Unions[t]}
	if c.unions == nil {
		c.unions = map[reflect.Type]*union{}
	}
	c.unions[t] = u
	for _, one := range u.Cases {
		st := indirectType(one.Type)
		n := c.newSpec()
		n.t, n.shape, n.kw, n.read, n.readValue = st, shapeStruct, c.schema(), readStruct, readStruct
		n.kw.Type, n.kw.Description = "object", c.typeComment(st)
		n.obj = c.objectOf(objectKey{t: st, discriminator: u.Discriminator, name: one.Name})
		u.cases, u.specs = append(u.cases, n.node), append(u.specs, n)
	}
	return u
}

// discriminatorField returns the member that names the case. It has no Go field.
func (c *compiler) discriminatorField(key objectKey) *field {
	n := c.newSpec()
	n.t, n.shape, n.kw, n.read, n.readValue = reflect.TypeFor[string](), shapeString, c.schema(), readDiscriminator, readDiscriminator
	n.kw.Type, n.kw.Const = "string", key.name
	f := &field{fieldSpec: &fieldSpec{spec: n}, node: n.node, owner: key.t, jsonName: []byte(key.discriminator)}
	f.Name, f.Type, f.Required = key.discriminator, n.t, true
	return f
}

// readDiscriminator skips the discriminator, which readUnion has read.
func readDiscriminator(d *decoder, _ *node, i int, _ reflect.Value) int { return jsonx.Skip(d.b, i) }

// readUnion reads an object into a new value of the case that the object names.
func readUnion(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '{' {
		return d.mend(n, i, v)
	}
	end := jsonx.Skip(d.b, i)
	u := n.union
	tag := jsonx.Member(d.b[i:end], u.Discriminator)
	at := -1
	if tag != nil && tag[0] == '"' {
		name := jsonx.String(tag)
		at = slices.IndexFunc(u.Cases, func(one UnionCase) bool { return one.Name == name })
	}
	if at < 0 {
		d.push([]byte(u.Discriminator))
		d.noCase(u, tag)
		d.pop()
		return end
	}
	one := reflect.New(u.cases[at].t)
	readStruct(d, u.cases[at], i, one.Elem())
	if u.Cases[at].Type.Kind() != reflect.Pointer {
		one = one.Elem()
	}
	v.Set(one)
	return end
}

// noCase records a wrong discriminator; tag is nil if it is missing.
func (d *decoder) noCase(u *union, tag []byte) {
	names := u.names()
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quoteJSON(name)
	}
	want, hint := joinWords(quoted, "or"), ""
	if len(quoted) > 1 {
		want = "one of " + want
	}
	if tag == nil {
		d.violate("", want, "")
		return
	}
	if tag[0] == '"' {
		if name := nearest.Of(jsonx.String(tag), names); name != "" {
			hint = "did you mean " + quoteJSON(name) + "?"
		}
	}
	d.violate(shorten(tag), want, hint)
}

// union writes the schema of a union: an object with the discriminator, for clients that do not
// support alternatives, and then the alternatives.
func (w *schemaWriter) union(s *memberWriter, u *union) {
	names := make([]any, len(u.Cases))
	for i, one := range u.Cases {
		names[i] = one.Name
	}
	tag := memberWriter{b: append(jsonx.AppendString(append(s.name("properties"), '{'), u.Discriminator), ":{"...)}
	tag.text("type", "string")
	tag.value("enum", names)
	s.b = append(tag.b, '}', '}')
	s.value("required", []string{u.Discriminator})
	s.b = append(s.name("anyOf"), '[')
	for i, one := range u.specs {
		if i > 0 {
			s.b = append(s.b, ',')
		}
		s.b = w.spec(s.b, one, false)
	}
	s.b = append(s.b, ']')
}

// fields returns the members of all cases. A member that is secret in one case is secret in all.
func (u *union) fields(above map[*object]bool) []Field {
	var all []Field
	for _, one := range u.cases {
		for _, f := range one.obj.list(above) {
			i := slices.IndexFunc(all, func(g Field) bool { return g.Name == f.Name })
			if i < 0 {
				all = append(all, f)
				continue
			}
			all[i].Secret = all[i].Secret || f.Secret
			all[i].Fields = append(slices.Clip(all[i].Fields), f.Fields...)
		}
	}
	return all
}

// ruleOfUnion records a rule that does not apply to unions.
func (c *compiler) ruleOfUnion(n *spec, r rule) {
	c.errorf("rule %q does not fit the union %s; write rules at the fields of its cases", r.text, n.t)
}

// caseOf returns the case of the value v of the union and its struct, or false if it has none.
func (u *union) caseOf(v reflect.Value) (*node, reflect.Value, bool) {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil, v, false
	}
	for _, n := range u.cases {
		if n.t == v.Type() {
			return n, v, true
		}
	}
	return nil, v, false
}
