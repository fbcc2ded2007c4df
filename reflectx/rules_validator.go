package reflectx

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// ask lets the validator see the whole struct, for the rules that compare fields, those of the user
// and those about structs, and for all rules where the program gave the validator. What it says of
// rules that are compiled is ignored, and so is what it says of values that are wrong by
// themselves: their zero value stands in for them.
func (d *decoder) ask(v reflect.Value) {
	bad := badPointers(d.violations)
	defer func() {
		if len(bad) > 0 {
			_ = recover() // a rule that does not expect what stands in for a wrong value; enough is said without it
		}
	}()
	err := d.in.validate.StructCtx(d.ctx, v.Addr().Interface())
	var found validator.ValidationErrors
	if !errors.As(err, &found) {
		return
	}
	for _, e := range found {
		d.judge(e, v, bad)
	}
}

// structRuleNote stands in the description of an object that has a rule of
// RegisterStructValidation, whose words nobody knows.
const structRuleNote = "The members must also fit one another."

// hasStructRule reports whether a rule is registered for the struct type t. The validator does not
// tell, so that one of its unexported fields is looked at; a test notices when it changes.
func (c *compiler) hasStructRule(t reflect.Type) bool {
	if c.o.Validate == nil {
		return false
	}
	rules := reflect.ValueOf(c.o.Validate).Elem().FieldByName("structLevelFuncs")
	return rules.IsValid() && rules.Type() == reflect.TypeFor[map[reflect.Type]validator.StructLevelFuncCtx]() && rules.MapIndex(reflect.ValueOf(t)).IsValid()
}

// badPointers are the pointers of the values that are wrong, or missing.
func badPointers(violations []Violation) []string {
	var bad []string
	for _, v := range violations {
		if v.Want != "" { // what is unknown stands for no value
			bad = append(bad, v.Pointer)
		}
	}
	return bad
}

// touches reports whether one of the bad values is at the pointer, above it or below.
func touches(bad []string, pointer string) bool {
	return slices.ContainsFunc(bad, func(b string) bool {
		return b == pointer || strings.HasPrefix(b, pointer+"/") || strings.HasPrefix(pointer, b+"/")
	})
}

// judge keeps of what the validator found in v what no compiled rule has decided already.
func (d *decoder) judge(e validator.FieldError, v reflect.Value, bad []string) {
	at := d.in.locate(e.StructNamespace(), v)
	f := at.field
	tag, text := e.Tag(), ruleText(e.Tag(), e.Param())
	compiled := f != nil && isBuiltin(tag) && !isCross(tag)
	if f != nil {
		own := ownRules(f)
		switch {
		case !own.has(tag): // a rule about the struct around it, which needs all of the struct
			if touches(bad, at.pointer[:strings.LastIndexByte(at.pointer, '/')]) {
				return
			}
			compiled = false
		case d.missing[at.pointer]:
			return
		case tag == "required":
			if text = d.rest(own, e); text == "" {
				return
			}
			compiled = isBuiltin(parseRule(text).tag)
		case compiled && (!d.in.own || slices.Contains(presenceTags, tag)):
			return
		}
	}
	if touches(bad, at.pointer) || isCross(tag) && at.siblingIsBad(bad, e.Param()) {
		return
	}
	if len(d.violations) >= violationLimit {
		d.more++
		return
	}
	want := "a value"
	if at.node != nil && at.node.want != "" {
		want = at.node.want
	}
	switch says := fieldRules[tag]; {
	case says != "" && f != nil:
		says = fmt.Sprintf(says, at.sibling(e.Param()))
		want += " that must" + strings.TrimSuffix(strings.TrimPrefix(says, "Must"), ".")
	case !compiled:
		want += " that satisfies " + text
	}
	d.violations = append(d.violations, Violation{Pointer: at.pointer, Got: gotOf(f, e.Value()), Want: want})
}

// siblingIsBad reports whether the field that a rule compares with is wrong. A path that begins at
// the root is not followed: if anything is wrong, it counts as wrong.
func (at *location) siblingIsBad(bad []string, param string) bool {
	name, _, _ := strings.Cut(param, ".")
	sf, ok := at.field.owner.FieldByName(name)
	if !ok {
		return len(bad) > 0
	}
	above := at.pointer[:strings.LastIndexByte(at.pointer, '/')+1]
	return touches(bad, above+string(appendPointer([]byte(nil), memberName(sf))))
}

// sibling names the field that a rule compares with, and its value.
func (at *location) sibling(param string) string {
	sf, ok := at.field.owner.FieldByName(param)
	if !ok {
		return param
	}
	name := memberName(sf)
	value := fieldAt(at.parent, param)
	if !value.IsValid() || !value.CanInterface() {
		return name
	}
	return name + ", which is " + gotOf(&field{Field: Field{Secret: sf.Tag.Get("secret") == "true"}}, value.Interface())
}

// gotOf shows a decoded value.
func gotOf(f *field, value any) string {
	if f != nil && f.Secret {
		return "***"
	}
	b, err := jsonx.Marshal(value)
	if err != nil {
		return "a value"
	}
	return shorten(b)
}

func ruleText(tag, param string) string {
	if param == "" {
		return tag
	}
	return tag + "=" + param
}

// tagRules are the rules of one validate tag, as far as [decoder.judge] asks for them.
type tagRules []rule

func ownRules(f *field) tagRules {
	var out tagRules
	for text := range strings.SplitSeq(f.validate, ",") {
		out = append(out, parseRule(text))
	}
	return out
}

func (t tagRules) has(tag string) bool {
	for _, r := range t {
		if r.tag == tag || r.text == tag || strings.Contains(r.text, "|") {
			return true
		}
	}
	return false
}

// rest asks the rules that follow a `required` and are the validator's to ask: it stops there at a
// zero value, which is a value like any other here. It returns the rule that is not satisfied, ""
// where all are.
func (d *decoder) rest(own tagRules, e validator.FieldError) string {
	for _, r := range own {
		if r.tag == "dive" {
			break
		}
		if (!isBuiltin(r.tag) || d.in.own && isValueRule(r.tag)) && !d.satisfies(e.Value(), r) {
			return r.text
		}
	}
	return ""
}

// isValueRule reports whether the rule is about a value by itself: neither about whether it is
// there nor about others.
func isValueRule(tag string) bool {
	switch tag {
	case "", "required", "omitempty", "omitnil", "omitzero", "structonly", "nostructlevel", "dive", "keys", "endkeys", "isdefault":
		return false
	}
	return !slices.Contains(presenceTags, tag) && !isCross(tag)
}

// needsDive complains where the validator would not come to a rule that it alone knows: it looks
// into arrays, slices and maps only where the tag says so.
func (c *compiler) needsDive(n *node, done map[*object]bool) {
	c.walk(n, done, func(f *field) {
		levels, n := 0, f.node
		for ; n.elem != nil; n = n.elem {
			levels++
		}
		if len(n.objects()) == 0 || levels == 0 {
			return
		}
		for _, r := range ownRules(f) {
			if r.tag == "dive" {
				levels--
			}
		}
		if text := n.asks(c.o.Validate != nil, map[*object]bool{}); text != "" && levels > 0 {
			c.errorf("the elements have the rule %q, which is asked only where the validate tag says dive; write validate:\"dive\"", text)
		}
	})
}

// asks returns a rule within o that the validator alone knows, "" where there is none.
func (o *object) asks(own bool, done map[*object]bool) string {
	if done[o] {
		return ""
	}
	done[o] = true
	for _, f := range o.fields {
		for _, r := range ownRules(f) {
			if r.tag != "" && (isCross(r.tag) || !isBuiltin(r.tag) && !strings.Contains(r.text, "|")) || own && isValueRule(r.tag) {
				return r.text
			}
		}
		n := f.node
		for n.elem != nil {
			n = n.elem
		}
		if text := n.asks(own, done); text != "" {
			return text
		}
	}
	return ""
}

func (n *node) asks(own bool, done map[*object]bool) string {
	for _, o := range n.objects() {
		if text := o.asks(own, done); text != "" {
			return text
		}
	}
	return ""
}

// satisfies asks one rule about one value. A rule that panics without its struct is not satisfied.
func (d *decoder) satisfies(value any, r rule) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return d.in.validate.VarCtx(d.ctx, value, r.text) == nil
}

// A location is what a validator's namespace leads to.
type location struct {
	pointer string
	node    *node         // nil for what is no value
	field   *field        // nil for the root
	parent  reflect.Value // the struct around it; invalid where it is not there
}

// locate follows a validator's namespace, "Input.Addr.Items[0].Name". The value v of the input says
// which cases the unions on the way are.
func (in *Input) locate(namespace string, v reflect.Value) *location {
	path := namespace
	if name := in.root.t.Name(); name != "" {
		path = strings.TrimPrefix(path, name+".")
	}
	at := &location{node: in.root}
	t := in.root.t // where embedded structs lead
	var index []int
	for path != "" {
		part := path
		if i := strings.IndexAny(path, ".["); i >= 0 {
			part = path[:i]
		}
		path = path[len(part):]
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if u := at.node.union; u != nil {
			one, inner, ok := u.caseOf(v)
			if !ok {
				return at
			}
			at.node, t, v = one, one.t, inner
		}
		if t.Kind() != reflect.Struct || at.node.obj == nil {
			return at
		}
		sf, ok := t.FieldByName(part)
		if !ok {
			return at
		}
		index, t, at.parent = append(index, sf.Index...), sf.Type, v
		v = fieldAt(v, part)
		if m := at.node.obj.at(index); m != nil {
			at.field, at.node, index = m, m.node, nil
			at.push(m.Name)
			t = m.node.t
		}
		for strings.HasPrefix(path, "[") && at.node.elem != nil {
			key, after, found := strings.Cut(path[1:], "]")
			if !found {
				return at
			}
			at.push(key)
			at.node, path = at.node.elem, after
			t, v = at.node.t, elemAt(v, key)
		}
		path = strings.TrimPrefix(path, ".")
	}
	return at
}

func (at *location) push(name string) {
	at.pointer = string(appendPointer(append([]byte(at.pointer), '/'), name))
}

// fieldAt returns the field of the struct that v is or points to, an invalid value where there is
// none.
func fieldAt(v reflect.Value, field string) reflect.Value {
	for v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	sf, ok := v.Type().FieldByName(field)
	if !ok {
		return reflect.Value{}
	}
	fv, err := v.FieldByIndexErr(sf.Index)
	if err != nil {
		return reflect.Value{}
	}
	return fv
}

// elemAt returns the element of v that the validator calls key, an invalid value where there is
// none.
func elemAt(v reflect.Value, key string) reflect.Value {
	for v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return v
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		if i, err := strconv.Atoi(key); err == nil && i < v.Len() {
			return v.Index(i)
		}
	case reflect.Map:
		for k, elem := range v.Seq2() {
			if fmt.Sprint(k) == key {
				return elem
			}
		}
	}
	return reflect.Value{}
}

// at returns the member whose field has the index.
func (o *object) at(index []int) *field {
	for _, f := range o.fields {
		if reflect.DeepEqual(f.Index, index) {
			return f
		}
	}
	return nil
}
