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
	at      int // the index of field
	exclude bool
	when    func(seen *presence, v reflect.Value) bool
	says    string                      // `because "kind" is "file"`
	publish func(kw *jsonschema.Schema) // adds the rule to the keywords of the object
}

// memberRules compiles the presence rules of f once all members of o are known.
func (c *compiler) memberRules(o *object, f *field) {
	for _, r := range f.rules {
		var m memberRule
		var ok bool
		if strings.HasSuffix(r.tag, "_if") || strings.HasSuffix(r.tag, "_unless") {
			m, ok = c.conditional(o, f, r)
		} else {
			m, ok = c.alongside(o, f, r)
		}
		if !ok {
			continue
		}
		if f.Required {
			c.errorf("the field is required, so rule %q says nothing or contradicts it; drop one of the two", r.text)
			continue
		}
		m.field, m.at, m.exclude = f, slices.Index(o.fields, f), strings.HasPrefix(r.tag, "excluded")
		o.rules = append(o.rules, m)
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
func (c *compiler) alongside(o *object, f *field, r rule) (memberRule, bool) {
	names := strings.Fields(r.param)
	if len(names) == 0 {
		c.errorf("rule %q names no field; write %s=Field", r.text, r.tag)
		return memberRule{}, false
	}
	at := make([]int, 0, len(names))
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		i, ok := c.sibling(o, f, r, name)
		if !ok {
			return memberRule{}, false
		}
		at = append(at, i)
		quoted = append(quoted, quoteJSON(o.fields[i].Name))
	}
	without := strings.Contains(r.tag, "_without")
	all := strings.HasSuffix(r.tag, "_all")
	when := func(seen *presence, _ reflect.Value) bool {
		for _, i := range at {
			if holds := seen.has(i) != without; holds != all {
				return holds
			}
		}
		return all
	}
	says, verb, state := joinWords(quoted, "or"), " is ", "there"
	if all && len(quoted) > 1 {
		says, verb = joinWords(quoted, "and"), " are "
	}
	if without {
		state = "missing"
	}
	says += verb + state
	condition := func() *jsonschema.Schema {
		var each []*jsonschema.Schema
		for _, i := range at {
			has := &jsonschema.Schema{Required: []string{o.fields[i].Name}}
			if without {
				has = &jsonschema.Schema{Not: has}
			}
			each = append(each, has)
		}
		switch {
		case len(each) == 1:
			return each[0]
		case all:
			return &jsonschema.Schema{AllOf: each}
		}
		return &jsonschema.Schema{AnyOf: each}
	}
	m := memberRule{when: when, says: "when " + says}
	m.publish = func(kw *jsonschema.Schema) {
		if r.tag == "required_with" || r.tag == "required_with_all" && len(at) == 1 {
			if kw.DependentRequired == nil {
				kw.DependentRequired = map[string][]string{}
			}
			for _, i := range at {
				other := o.fields[i].Name
				list := kw.DependentRequired[other]
				kw.DependentRequired[other] = append(list[:len(list):len(list)], f.Name)
			}
			return
		}
		kw.AllOf = append(kw.AllOf, &jsonschema.Schema{If: condition(), Then: m.then(f, strings.HasPrefix(r.tag, "excluded"))})
	}
	return m, true
}

// then returns the schema that applies if the condition of a rule holds.
func (memberRule) then(f *field, exclude bool) *jsonschema.Schema {
	has := &jsonschema.Schema{Required: []string{f.Name}}
	if exclude {
		return &jsonschema.Schema{Not: has}
	}
	return has
}

// An equality is one condition of required_if: the value of the member at index at.
type equality struct {
	at    int
	value any // as a schema value
	ok    func(v reflect.Value) bool
}

// conditional compiles required_if, required_unless, excluded_if and excluded_unless.
func (c *compiler) conditional(o *object, f *field, r rule) (memberRule, bool) {
	words := splitWords(r.param)
	if len(words) == 0 || len(words)%2 != 0 {
		c.errorf("rule %q needs pairs; write %s=Field value", r.text, r.tag)
		return memberRule{}, false
	}
	var eqs []equality
	var says []string
	for i := 0; i < len(words); i += 2 {
		at, ok := c.sibling(o, f, r, words[i])
		if !ok {
			return memberRule{}, false
		}
		eq, ok := c.equality(o, at, r, words[i+1])
		if !ok {
			return memberRule{}, false
		}
		eqs = append(eqs, eq)
		says = append(says, quoteJSON(o.fields[at].Name)+" is "+jsonText(eq.value))
	}
	holds := func(e equality, seen *presence, v reflect.Value) bool {
		other := o.fields[e.at]
		return (seen.has(e.at) || other.Default != nil) && e.ok(other.of(v))
	}
	unless := strings.HasSuffix(r.tag, "_unless")
	// required_unless needs any of the pairs, the others need all.
	any := r.tag == "required_unless"
	when := func(seen *presence, v reflect.Value) bool {
		for _, e := range eqs {
			if h := holds(e, seen, v); h == any {
				return any != unless
			}
		}
		return any == unless
	}
	word := "and"
	if any {
		word = "or"
	}
	m := memberRule{when: when, says: "when " + joinWords(says, word)}
	if unless {
		m.says = "unless " + joinWords(says, word)
	}
	m.publish = func(kw *jsonschema.Schema) {
		condition := &jsonschema.Schema{}
		for _, e := range eqs {
			one := o.equals(e)
			switch {
			case len(eqs) == 1:
				condition = one
			case any:
				condition.AnyOf = append(condition.AnyOf, one)
			default:
				condition.AllOf = append(condition.AllOf, one)
			}
		}
		then := m.then(f, strings.HasPrefix(r.tag, "excluded"))
		if unless {
			kw.AllOf = append(kw.AllOf, &jsonschema.Schema{If: condition, Else: then})
			return
		}
		kw.AllOf = append(kw.AllOf, &jsonschema.Schema{If: condition, Then: then})
	}
	return m, true
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
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return false
			}
			v = v.Elem()
		}
		return equal(context.Background(), v)
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
		if seen.has(r.at) != r.exclude || !r.when(&seen, v) {
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
