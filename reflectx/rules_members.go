package reflectx

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// A memberRule says when a member must, or must not, be present. It checks the members of the JSON;
// the validator would check for zero values.
type memberRule struct {
	field   *field
	at      int    // the index of field
	tag     string // required_if and so on
	exclude bool
	terms   []term
	any     bool   // one term is enough; otherwise all must hold
	unless  bool   // the rule applies if the terms do not hold
	says    string // `when "kind" is "file"`
}

// A term is one condition of a memberRule, about the member at index at.
type term struct {
	at     int
	value  bool // the condition is about the value of the member, not about its presence
	holds  func(seen *presence, v reflect.Value) bool
	schema func() *jsonschema.Schema // known when all members are compiled
}

// applies reports whether the rule applies to the object v with the members seen.
func (m *memberRule) applies(seen *presence, v reflect.Value) bool {
	decides := func(t term) bool { return t.holds(seen, v) == m.any }
	met := slices.ContainsFunc(m.terms, decides) == m.any
	return met != m.unless
}

// publish adds the rule to the keywords of the object o.
func (m *memberRule) publish(o *object, kw *jsonschema.Schema) {
	if m.tag == "required_with" || m.tag == "required_with_all" && len(m.terms) == 1 {
		if kw.DependentRequired == nil {
			kw.DependentRequired = map[string][]string{}
		}
		for _, t := range m.terms {
			other := o.fields[t.at].Name
			kw.DependentRequired[other] = append(slices.Clip(kw.DependentRequired[other]), m.field.Name)
		}
		return
	}
	terms := make([]*jsonschema.Schema, len(m.terms))
	for i, t := range m.terms {
		terms[i] = t.schema()
	}
	rule := &jsonschema.Schema{If: terms[0]}
	switch {
	case len(terms) > 1 && m.any:
		rule.If = &jsonschema.Schema{AnyOf: terms}
	case len(terms) > 1:
		rule.If = &jsonschema.Schema{AllOf: terms}
	}
	then := &jsonschema.Schema{Required: []string{m.field.Name}}
	if m.exclude {
		then = &jsonschema.Schema{Not: then}
	}
	if m.unless {
		rule.Else = then
	} else {
		rule.Then = then
	}
	kw.AllOf = append(kw.AllOf, rule)
}

// memberRules compiles the presence rules of f once all members of o are known.
func (c *compiler) memberRules(o *object, f *field) {
	for _, r := range f.rules {
		m := memberRule{field: f, at: slices.Index(o.fields, f), tag: r.tag, exclude: strings.HasPrefix(r.tag, "excluded")}
		compile := c.alongside
		if strings.HasSuffix(r.tag, "_if") || strings.HasSuffix(r.tag, "_unless") {
			compile = c.conditional
		}
		switch ok := compile(o, &m, r); {
		case ok && f.Required:
			c.errorf("the field is required, so rule %q says nothing or contradicts it; drop one of the two", r.text)
		case ok:
			o.rules = append(o.rules, m)
		}
	}
}

// sibling returns the index of the member of o for the Go field called name, as seen from f.
func (c *compiler) sibling(o *object, f *field, r rule, name string) (int, bool) {
	found := -1
	for i, other := range o.fields {
		if other.GoName != name {
			continue
		}
		if other.owner == f.owner {
			return i, true
		}
		found = i
	}
	if found < 0 {
		known := make([]string, 0, len(o.fields))
		for _, other := range o.fields {
			known = append(known, other.GoName)
		}
		c.errorf("rule %q names the field %q, which %s has not%s", r.text, name, typeText(o.t), hintOr(name, known, "write the name of the Go field"))
	}
	return found, found >= 0
}

// alongside compiles required_with, excluded_without and the like.
func (c *compiler) alongside(o *object, m *memberRule, r rule) bool {
	names := strings.Fields(r.param)
	if len(names) == 0 {
		c.errorf("rule %q names no field; write %s=Field", r.text, r.tag)
		return false
	}
	without := strings.Contains(r.tag, "_without")
	var quoted []string
	for _, name := range names {
		i, ok := c.sibling(o, m.field, r, name)
		if !ok {
			return false
		}
		name := o.fields[i].Name
		quoted = append(quoted, quoteJSON(name))
		m.terms = append(m.terms, term{
			at:    i,
			holds: func(seen *presence, _ reflect.Value) bool { return seen.has(i) != without },
			schema: func() *jsonschema.Schema {
				has := &jsonschema.Schema{Required: []string{name}}
				if without {
					return &jsonschema.Schema{Not: has}
				}
				return has
			},
		})
	}
	m.any = !strings.HasSuffix(r.tag, "_all")
	state := "there"
	if without {
		state = "missing"
	}
	m.says = "when " + joinWords(quoted, "or") + " is " + state
	if !m.any && len(quoted) > 1 {
		m.says = "when " + joinWords(quoted, "and") + " are " + state
	}
	return true
}

// An equality is one condition of required_if: the value of the member at index at.
type equality struct {
	at    int
	value any // as a schema value
	ok    func(v reflect.Value) bool
}

// conditional compiles required_if, required_unless, excluded_if and excluded_unless.
func (c *compiler) conditional(o *object, m *memberRule, r rule) bool {
	words := splitWords(r.param)
	if len(words) == 0 || len(words)%2 != 0 {
		c.errorf("rule %q needs pairs; write %s=Field value", r.text, r.tag)
		return false
	}
	var says []string
	for i := 0; i < len(words); i += 2 {
		at, ok := c.sibling(o, m.field, r, words[i])
		if !ok {
			return false
		}
		e, ok := c.equality(o, at, r, words[i+1])
		if !ok {
			return false
		}
		other := o.fields[at]
		m.terms = append(m.terms, term{
			at:    at,
			value: true,
			holds: func(seen *presence, v reflect.Value) bool {
				return (seen.has(at) || other.Default != nil) && e.ok(other.of(v))
			},
			schema: func() *jsonschema.Schema { return o.equals(e) },
		})
		says = append(says, quoteJSON(other.Name)+" is "+jsonText(e.value))
	}
	// required_unless needs any of the pairs, the others need all.
	m.any, m.unless = r.tag == "required_unless", strings.HasSuffix(r.tag, "_unless")
	word, last := "when ", "and"
	if m.unless {
		word = "unless "
	}
	if m.any {
		last = "or"
	}
	m.says = word + joinWords(says, last)
	return true
}

// equals returns the schema of one condition. If the value is the member's default, the member may
// be absent.
func (o *object) equals(e equality) *jsonschema.Schema {
	f := o.fields[e.at]
	kw := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	kw.Properties.Set(f.Name, &jsonschema.Schema{Const: e.value})
	if string(f.Default) != jsonText(e.value) {
		kw.Required = []string{f.Name}
	}
	return kw
}

// equality compiles the comparison of a member with the text of a tag.
func (c *compiler) equality(o *object, at int, r rule, text string) (equality, bool) {
	n := o.fields[at].node
	e := equality{at: at}
	var err error
	switch n.shape {
	case shapeString:
		e.value = text
	case shapeInt:
		var x int64
		x, err = strconv.ParseInt(text, 0, 64)
		e.value = json.Number(strconv.FormatInt(x, 10))
	case shapeUint:
		var x uint64
		x, err = strconv.ParseUint(text, 0, 64)
		e.value = json.Number(strconv.FormatUint(x, 10))
	case shapeBool:
		e.value, err = strconv.ParseBool(text)
	default:
		c.errorf("rule %q compares with %s, which is not a string, integer or bool; compare with a field that is one", r.text, typeText(n.t))
		return e, false
	}
	if err != nil {
		c.errorf("rule %q: %q is not of type %s; write a value that the field can have", r.text, text, typeText(n.t))
		return e, false
	}
	equal := oneOf(n.shape, []any{e.value})
	e.ok = func(v reflect.Value) bool {
		v = dereference(v)
		return v.IsValid() && equal(context.Background(), v)
	}
	return e, true
}

// finish checks the rules about the presence of members.
func (d *decoder) finish(n *node, seen *presence, start, end int, v reflect.Value) {
	if len(n.obj.rules) > 0 {
		d.askMembers(n.obj, *seen, v)
	}
	d.check(n, start, end, v)
}

// askMembers takes a copy of seen, because the rules are closures that move it to the heap, and few
// objects have such rules.
func (d *decoder) askMembers(o *object, seen presence, v reflect.Value) {
	for i := range o.rules {
		r := &o.rules[i]
		if seen.has(r.at) != r.exclude || !r.applies(&seen, v) || d.hasWrong(o, r.terms) {
			continue
		}
		d.push(r.field.jsonName)
		if r.exclude {
			d.violate("a value", "none "+r.says, "")
		} else {
			d.violate("", r.field.node.want+" "+r.says, "")
		}
		d.pop()
	}
}

// hasWrong reports whether a value that one of the terms compares is wrong.
func (d *decoder) hasWrong(o *object, terms []term) bool {
	return len(d.violations) > 0 && slices.ContainsFunc(terms, func(t term) bool {
		d.push(o.fields[t.at].jsonName)
		defer d.pop()
		return t.value && touches(badPointers(d.violations), d.pointer())
	})
}
