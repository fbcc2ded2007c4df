package reflectx

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// ask passes the whole struct to the validator, for rules that compare fields, custom rules and
// rules for structs, or for all rules if the program supplied the validator. It ignores the
// validator's errors for rules that are compiled, and for values that are already wrong and were
// replaced by their zero value.
func (d *decoder) ask(v reflect.Value) {
	bad := badPointers(d.violations)
	defer func() {
		if len(bad) > 0 {
			_ = recover() // a rule that panics at the zero value of a wrong value; the other violations suffice
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

// structRuleNote is in the description of an object that has a rule of RegisterStructValidation,
// whose meaning is unknown.
const structRuleNote = "The members must also fit one another."

// hasStructRule reports whether a rule is registered for the struct type t. The validator does not
// export this, so hasStructRule reads an unexported field; a test fails if that changes.
func (c *compiler) hasStructRule(t reflect.Type) bool {
	if c.o.Validate == nil {
		return false
	}
	rules := reflect.ValueOf(c.o.Validate).Elem().FieldByName("structLevelFuncs")
	return rules.IsValid() && rules.Type() == reflect.TypeFor[map[reflect.Type]validator.StructLevelFuncCtx]() && rules.MapIndex(reflect.ValueOf(t)).IsValid()
}

// badPointers returns the pointers of wrong or missing values.
func badPointers(violations []Violation) []string {
	var bad []string
	for _, v := range violations {
		if v.Want != "" { // an unknown member has no value in the struct
			bad = append(bad, v.Pointer)
		}
	}
	return bad
}

// touches reports whether one of the bad values is at the pointer, above it or below it.
func touches(bad []string, pointer string) bool {
	return slices.ContainsFunc(bad, func(b string) bool {
		return b == pointer || strings.HasPrefix(b, pointer+"/") || strings.HasPrefix(pointer, b+"/")
	})
}

// judge records an error of the validator for v, unless a compiled rule has already decided it.
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

// siblingIsBad reports whether the field that a rule compares with is wrong. It does not follow a
// path from the root; such a field counts as wrong if anything is wrong.
func (at *location) siblingIsBad(bad []string, param string) bool {
	name, _, _ := strings.Cut(param, ".")
	sf, ok := at.field.owner.FieldByName(name)
	if !ok {
		return len(bad) > 0
	}
	above := at.pointer[:strings.LastIndexByte(at.pointer, '/')+1]
	return touches(bad, above+string(appendPointer([]byte(nil), memberName(sf))))
}

// sibling returns the name and the value of the field that a rule compares with.
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

// gotOf formats a decoded value for a violation.
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

// tagRules are the rules of one validate tag that [decoder.judge] needs.
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

// rest checks the rules after a `required` that only the validator can check. The validator stops
// there at a zero value, which is a valid value here. rest returns the first rule that fails, or
// "".
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

// isValueRule reports whether the rule is about the value itself, and not about its presence or
// other fields.
func isValueRule(tag string) bool {
	switch tag {
	case "", "required", "omitempty", "omitnil", "omitzero", "structonly", "nostructlevel", "dive", "keys", "endkeys", "isdefault":
		return false
	}
	return !slices.Contains(presenceTags, tag) && !isCross(tag)
}

// needsDive records a rule that only the validator knows and would not reach: it looks into arrays,
// slices and maps only after dive.
func (c *compiler) needsDive(root *node) {
	c.walk(root, map[*object]bool{}, func(f *field) {
		levels := 0
		for n := f.node; n.elem != nil; n = n.elem {
			levels++
		}
		for _, r := range ownRules(f) {
			if r.tag == "dive" {
				levels--
			}
		}
		if levels <= 0 {
			return
		}
		text := ""
		c.walk(f.node, map[*object]bool{}, func(inner *field) { text = cmp.Or(text, c.asksFor(inner)) })
		if text != "" {
			c.errorf("the elements have the rule %q, which is asked only where the validate tag says dive; write validate:\"dive\"", text)
		}
	})
}

// asksFor returns a rule of f that only the validator knows, or "".
func (c *compiler) asksFor(f *field) string {
	for _, r := range ownRules(f) {
		if r.tag != "" && (isCross(r.tag) || !isBuiltin(r.tag) && !strings.Contains(r.text, "|")) || c.o.Validate != nil && isValueRule(r.tag) {
			return r.text
		}
	}
	return ""
}

// satisfies checks one rule for one value. A rule that panics without its struct fails.
func (d *decoder) satisfies(value any, r rule) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return d.in.validate.VarCtx(d.ctx, value, r.text) == nil
}

// A location is the place that a validator's namespace refers to.
type location struct {
	pointer string
	node    *node         // nil if it is not a value
	field   *field        // nil for the root
	parent  reflect.Value // the struct around it; invalid if there is none
}

// locate follows a validator's namespace, "Input.Addr.Items[0].Name". The value v of the input
// determines the cases of the unions on the way.
func (in *Input) locate(namespace string, v reflect.Value) *location {
	path := namespace
	if name := in.root.t.Name(); name != "" {
		path = strings.TrimPrefix(path, name+".")
	}
	at := &location{node: in.root}
	t := in.root.t // follows embedded structs
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

// fieldAt returns the field of the struct that v is or points to, or an invalid value.
func fieldAt(v reflect.Value, field string) reflect.Value {
	if v = dereference(v); v.Kind() == reflect.Struct {
		if sf, ok := v.Type().FieldByName(field); ok {
			if fv, err := v.FieldByIndexErr(sf.Index); err == nil {
				return fv
			}
		}
	}
	return reflect.Value{}
}

// dereference follows pointers. It returns an invalid value for a nil pointer.
func dereference(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// elemAt returns the element of v that the validator calls key, or an invalid value.
func elemAt(v reflect.Value, key string) reflect.Value {
	switch v = dereference(v); v.Kind() {
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

// at returns the member with the index.
func (o *object) at(index []int) *field {
	for _, f := range o.fields {
		if reflect.DeepEqual(f.Index, index) {
			return f
		}
	}
	return nil
}
