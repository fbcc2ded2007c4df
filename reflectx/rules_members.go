package reflectx

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A memberRule says when a member must, or must not, be there. It looks at which members the JSON has, where the
// validator looks for zero values.
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

// sibling returns the index of the member of o that is the Go field named name, seen from f.
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

// then is what follows from the condition of a rule.
func (memberRule) then(f *field, exclude bool) *jsonschema.Schema {
	has := &jsonschema.Schema{Required: []string{f.Name}}
	if exclude {
		return &jsonschema.Schema{Not: has}
	}
	return has
}

// An equality is one condition of required_if: the member at has the value.
type equality struct {
	at    int
	value any // as the schema holds it
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
	// required_unless asks for any of the pairs, the others for all of them.
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

// equals is the schema of one condition. A member whose default is the value may be absent.
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
	var compare func(v reflect.Value) bool
	var err error
	switch n.shape {
	case shapeString:
		e.value = text
		compare = func(v reflect.Value) bool { return v.String() == text }
	case shapeInt:
		var x int64
		x, err = strconv.ParseInt(text, 0, 64)
		e.value = jsonNumber(strconv.FormatInt(x, 10))
		compare = func(v reflect.Value) bool { return v.Int() == x }
	case shapeUint:
		var x uint64
		x, err = strconv.ParseUint(text, 0, 64)
		e.value = jsonNumber(strconv.FormatUint(x, 10))
		compare = func(v reflect.Value) bool { return v.Uint() == x }
	case shapeBool:
		var x bool
		x, err = strconv.ParseBool(text)
		e.value = x
		compare = func(v reflect.Value) bool { return v.Bool() == x }
	default:
		c.errorf("rule %q compares with %s, which is no string, integer or bool; compare with a field that is one", r.text, typeText(n.t))
		return e, false
	}
	if err != nil {
		c.errorf("rule %q: %q is no %s; write a value that the field can have", r.text, text, typeText(n.t))
		return e, false
	}
	e.ok = func(v reflect.Value) bool {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return false
			}
			v = v.Elem()
		}
		return compare(v)
	}
	return e, true
}

// finish asks the rules about which members of the object are there.
func (d *decoder) finish(n *node, seen *presence, start, end int, v reflect.Value) {
	if len(n.obj.rules) > 0 {
		d.askMembers(n.obj, *seen, v)
	}
	d.whole(n, start, end, v)
}

// askMembers takes a copy of what was seen: rules are closures, for which it moves to the heap, and few objects have any.
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

// ask lets the validator see the whole struct, for the rules that compare fields, those of the user and those about
// structs, and for all rules where the program gave the validator. What it says of rules that are compiled is ignored, and
// so is what it says of values that are wrong by themselves: their zero value stands in for them.
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

// structRuleNote stands in the description of an object that has a rule of RegisterStructValidation, whose words nobody knows.
const structRuleNote = "The members must also fit one another."

// hasStructRule reports whether a rule is registered for the struct type t. The validator does not tell, so that one of its
// unexported fields is looked at; a test notices when it changes.
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
	switch says := crossNotes[tag]; {
	case says != "" && f != nil:
		says = fmt.Sprintf(says, at.sibling(e.Param()))
		want += " that must" + strings.TrimSuffix(strings.TrimPrefix(says, "Must"), ".")
	case !compiled:
		want += " that satisfies " + text
	}
	d.violations = append(d.violations, Violation{Pointer: at.pointer, Got: gotOf(f, e.Value()), Want: want})
}

// siblingIsBad reports whether the field that a rule compares with is wrong. A path that begins at the root is not followed:
// if anything is wrong, it counts as wrong.
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

// rest asks the rules that follow a `required` and are the validator's to ask: it stops there at a zero value, which is
// a value like any other here. It returns the rule that is not satisfied, "" where all are.
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

// isValueRule reports whether the rule is about a value by itself: neither about whether it is there nor about others.
func isValueRule(tag string) bool {
	switch tag {
	case "", "required", "omitempty", "omitnil", "omitzero", "structonly", "nostructlevel", "dive", "keys", "endkeys", "isdefault":
		return false
	}
	return !slices.Contains(presenceTags, tag) && !isCross(tag)
}

// needsDive complains where the validator would not come to a rule that it alone knows: it looks into arrays, slices
// and maps only where the tag says so.
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

// locate follows a validator's namespace, "Input.Addr.Items[0].Name". The value v of the input says which cases the unions
// on the way are.
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

// fieldAt returns the field of the struct that v is or points to, an invalid value where there is none.
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

// elemAt returns the element of v that the validator calls key, an invalid value where there is none.
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
