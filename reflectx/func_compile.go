package reflectx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// Compile compiles fn, which may be bound to a receiver.
//
// The type of a parameter determines its source, in any order: context.Context; the types that
// o.Inject knows; and then either one input struct (or a pointer to one) or plain parameters, named
// by the params tag or o.Names. A struct that is encoded as one value, such as time.Time, is a
// plain parameter; so is, with a params tag, one that implements json.Unmarshaler. There may be any
// number of results; an error must be the last one.
//
// Compile returns all mistakes as Errors. Besides Errors, it returns a Func of which only Outputs
// can be called. If the results are wrong, Outputs is empty.
func Compile(fn reflect.Value, o FuncOptions) (*Func, error) {
	if !fn.IsValid() || fn.Kind() != reflect.Func || fn.IsNil() {
		return &Func{}, Errors{{Site: o.Site, Msg: "there is no function to call"}}
	}
	if pkgPath, file := funcFile(fn); pkgPath != "reflect" {
		onDisk.add(pkgPath, file) // reflect implements bound methods
	}
	c := planner{FuncOptions: o, f: &Func{fn: fn, calls: fn, site: o.Site}}
	if m := o.Method; m != nil {
		c.f.calls, c.f.receiver = m.Unbound, []reflect.Value{m.Receiver}
	}
	c.params(fn.Type())
	c.results(fn.Type())
	if len(c.errs) > 0 {
		return &Func{outputs: c.f.outputs}, c.errs
	}
	return c.f, nil
}

// A planner holds the state of compiling the parameters.
type planner struct {
	FuncOptions
	f    *Func
	errs Errors

	structs []int // indexes of the input structs
	plain   []int // indexes of the plain parameters
}

func (c *planner) errorf(format string, args ...any) {
	c.errs = append(c.errs, &Error{Site: c.Site, Msg: fmt.Sprintf(format, args...)})
}

// wrap adds the errors of NewInput or NewParams.
func (c *planner) wrap(err error) {
	if many, ok := errors.AsType[Errors](err); ok {
		c.errs = append(c.errs, many...)
		return
	}
	c.errorf("%s", err)
}

func (c *planner) params(t reflect.Type) {
	for i := range t.NumIn() {
		c.param(i, t.In(i), t.IsVariadic() && i == t.NumIn()-1)
	}
	if len(c.errs) > 0 {
		return
	}
	c.f.schema = c.Schema
	switch {
	case c.Schema != nil && c.HasParams:
		c.errorf("the params tag names %q, but the schema of the arguments is given; remove one of the two", c.Params)
	case len(c.structs) > 1:
		a, b := c.structs[0], c.structs[1]
		c.errorf("parameters %d (%s) and %d (%s) are both structs of arguments; there can be one, so put the fields of both into it; if one of them should not come from the arguments, %s",
			a+1, typeText(t.In(a)), b+1, typeText(t.In(b)), c.given(t.In(b)))
	case len(c.structs) == 1 && len(c.plain) > 0:
		a, b := c.structs[0], c.plain[0]
		c.errorf("parameter %d (%s) is a struct of arguments, parameter %d (%s) a plain argument; write the one or the other: put %s into the struct as a field",
			a+1, typeText(t.In(a)), b+1, typeText(t.In(b)), typeText(t.In(b)))
	case len(c.structs) == 1:
		c.structInput(t, c.structs[0])
	case len(c.plain) > 0:
		c.plainInput(t)
	case c.HasParams && strings.TrimSpace(c.Params) != "":
		c.errorf("the params tag names %q, but no parameter takes an argument; remove the tag", c.Params)
	case len(c.Tags) > 0:
		c.errorf("the rules are for %s, but no parameter takes an argument; remove them", quoteAll(slices.Sorted(maps.Keys(c.Tags))))
	case !c.HasParams && len(c.Names) > 0:
		c.errorf("no parameter takes the variables %s of the URI; add a parameter for each", quoteAll(c.Names))
	}
}

// param determines the source of a parameter.
func (c *planner) param(i int, t reflect.Type, variadic bool) {
	if variadic {
		c.errorf("parameter %d is variadic (...%s); take a slice, %s", i+1, t.Elem(), t)
		return
	}
	if t == contextType {
		c.f.injected = append(c.f.injected, injectedParam{index: i, typ: t})
		return
	}
	if c.Inject != nil {
		if inject, ok := c.Inject(t); ok && inject != nil {
			c.f.injected = append(c.f.injected, injectedParam{index: i, typ: t, inject: inject})
			return
		}
		// A value type would become an argument, which callers choose, even if it is, for example,
		// the caller's identity.
		if _, ok := c.Inject(reflect.PointerTo(t)); ok {
			c.errorf("parameter %d is a %s, which is given as a pointer; write *%[2]s", i+1, t)
			return
		}
	}
	if c.Refuse != nil {
		if instead := c.Refuse(t); instead != "" {
			c.errorf("parameter %d is a %s, which a method does not get; %s", i+1, t, instead)
			return
		}
	}
	if c.Schema != nil {
		c.wholeParam(i, t)
		return
	}
	switch what := unusable(t, map[reflect.Type]bool{}); {
	case t.Kind() == reflect.Interface && t.NumMethod() > 0:
		c.errorf("parameter %d is the interface %s, which neither an argument nor a provider can give; %s", i+1, t, c.given(t))
	case what != "":
		c.errorf("parameter %d (%s): %s cannot come from JSON; %s", i+1, typeText(t), what, c.given(t))
	case !isInputStruct(t), c.HasParams && reflect.PointerTo(indirectType(t)).Implements(unmarshalJSON):
		c.plain = append(c.plain, i)
	case isOpaque(t):
		c.errorf("parameter %d is a %s, a struct without exported fields, which neither an argument nor a provider can give; %s", i+1, typeText(t), c.given(t))
	default:
		c.structs = append(c.structs, i)
	}
}

// wholeParam plans a parameter of a function with a schema written by hand.
func (c *planner) wholeParam(i int, t reflect.Type) {
	switch {
	case !isWhole(t):
		c.errorf("parameter %d is a %s, but the schema of the arguments is given, so one parameter takes all of them; write map[string]any or json.RawMessage", i+1, typeText(t))
	case c.f.whole != nil:
		c.errorf("parameters %d and %d both take all arguments; keep one", c.f.whole.index+1, i+1)
	default:
		c.f.whole = &wholeParam{i, t}
	}
}

// isWhole reports whether a parameter of type t can take all arguments.
func isWhole(t reflect.Type) bool {
	return t == rawType || t.Kind() == reflect.Map && t.Key() == reflect.TypeFor[string]() && t.Elem() == reflect.TypeFor[any]()
}

// given returns the advice on how to provide a parameter of type t other than as an argument.
func (c *planner) given(t reflect.Type) string {
	provide := ""
	if c.Provide != "" {
		provide = c.Provide + ", or "
	}
	return provide + "take one of " + strings.Join(append([]string{"context.Context"}, c.Injectable...), ", ")
}

// structInput plans a function whose arguments are the fields of a struct.
func (c *planner) structInput(t reflect.Type, i int) {
	st, pointer := t.In(i), false
	if c.HasParams {
		c.errorf("the params tag names plain parameters, but the arguments are the fields of %s; remove the tag", st)
		return
	}
	if len(c.Tags) > 0 {
		c.errorf("the rules are for plain parameters, but the arguments are the fields of %s; write them in validate tags of the fields", st)
		return
	}
	if st.Kind() == reflect.Pointer {
		st, pointer = st.Elem(), true
	}
	in, err := NewInput(c.Site, st, c.Input)
	if err != nil {
		c.wrap(err)
		return
	}
	p := decodedParam{index: i, pick: func(v reflect.Value) reflect.Value { return v }}
	if pointer {
		p.pick = reflect.Value.Addr
	}
	c.f.input, c.f.decoded = in, []decodedParam{p}
}

// plainInput plans a function whose arguments are plain parameters.
func (c *planner) plainInput(t reflect.Type) {
	params, ok := c.names(t)
	if !ok {
		return
	}
	in, err := NewParams(c.Site, params, c.Input)
	if err != nil {
		c.wrap(err)
		return
	}
	c.f.input = in
	for n, i := range c.plain {
		c.f.decoded = append(c.f.decoded, decodedParam{index: i, pick: func(v reflect.Value) reflect.Value { return v.Field(n) }})
	}
}

// names matches the plain parameters with their names.
func (c *planner) names(t reflect.Type) ([]Param, bool) {
	names, from := c.Names, "the variables of the URI are"
	if c.HasParams {
		names, from = strings.Split(c.Params, ","), "the names are"
	}
	one := t.In(c.plain[0])
	switch {
	case names != nil && len(names) == len(c.plain):
	case names != nil:
		c.errorf("%s %s, but the parameters are %s; name each one, in order", from, cmp.Or(quoteAll(names), "none"), c.types(t))
		return nil, false
	case len(c.plain) == 1 && isWhole(one) && c.GiveSchema != "":
		c.errorf("parameter %d (%s) can take all arguments, but nothing says what they are; give their JSON Schema with %s, or name the parameter with the params tag",
			c.plain[0]+1, typeText(one), c.GiveSchema)
		return nil, false
	default:
		how := "write the tag `params:%q` with your names in the annotation block"
		if c.GiveNames != "" {
			how = "name them with " + c.GiveNames + "(%q)"
		}
		c.errorf("Go does not keep the names of the parameters %s; "+how+", or take one struct", c.types(t), exampleNames(len(c.plain)))
		return nil, false
	}
	before := len(c.errs)
	params := make([]Param, len(names))
	seen := map[string]bool{}
	for n, name := range names {
		pt := t.In(c.plain[n])
		cut, optional := strings.CutSuffix(strings.TrimSpace(name), "?")
		p := Param{Name: strings.TrimSpace(cut), Type: pt, Optional: optional && c.HasParams || pt.Kind() == reflect.Pointer}
		p.Desc, p.Tag = c.Descriptions[p.Name], c.Tags[p.Name]
		switch {
		case p.Name == "" || strings.ContainsAny(p.Name, "?\"'`{}[]() \t\r\n"):
			c.errorf("the params tag %q: %q is not a name; write names with commas between, and a '?' after an optional one: %q", c.Params, p.Name, "a,b?")
		case seen[p.Name]:
			c.errorf("the name %q is listed twice for the parameters; give each its own", p.Name)
		}
		seen[p.Name] = true
		params[n] = p
	}
	known := slices.Sorted(maps.Keys(seen))
	for _, name := range slices.Sorted(maps.Keys(c.Tags)) {
		if !seen[name] {
			c.errorf("the rules are for %q, which is not a parameter%s", name, hintOr(name, known, "the parameters are "+quoteAll(known)))
		}
	}
	return params, len(c.errs) == before
}

// types lists the types of the plain parameters.
func (c *planner) types(t reflect.Type) string {
	list := make([]string, len(c.plain))
	for n, i := range c.plain {
		list[n] = t.In(i).String()
	}
	return "(" + strings.Join(list, ", ") + ")"
}

func (c *planner) results(t reflect.Type) {
	n := t.NumOut()
	known := len(c.errs)
	defer func() {
		if len(c.errs) > known {
			c.f.outputs = nil
		}
	}()
	for i := range n {
		out := t.Out(i)
		switch last := i == n-1; {
		case out == errorType && last:
			c.f.fails = true
		case out == errorType && t.Out(n-1) == errorType:
			c.errorf("results %d and %d are both errors; return one, the last (errors.Join makes one of several)", i+1, n)
			return
		case out == errorType:
			c.errorf("result %d of %d is the error; it must be the last", i+1, n)
			return
		case last && (out.Kind() == reflect.Pointer || out.Kind() == reflect.Interface) && out.Implements(errorType):
			// A nil *E stored in an error is not a nil error.
			c.errorf("result %d is a %s; return it as an error", i+1, out)
			return
		default:
			c.f.outputs = append(c.f.outputs, out)
		}
	}
}

// unusable returns the part of t that has no JSON form, or "". It ignores the fields of structs: a
// tag can leave them out, and the check of the input covers them.
func unusable(t reflect.Type, seen map[reflect.Type]bool) string {
	if seen[t] || t.Implements(unmarshalText) || reflect.PointerTo(t).Implements(unmarshalText) {
		return ""
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Func:
		return "a function"
	case reflect.Chan:
		return "a channel"
	case reflect.Complex64, reflect.Complex128:
		return "a complex number"
	case reflect.UnsafePointer, reflect.Uintptr:
		return "an address"
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return unusable(t.Elem(), seen)
	case reflect.Map:
		if what := unusable(t.Key(), seen); what != "" {
			return what
		}
		return unusable(t.Elem(), seen)
	}
	return ""
}

// isInputStruct reports whether the fields of t, or of the type it points to, are arguments. A
// struct that is decoded from a text is one value.
func isInputStruct(t reflect.Type) bool {
	t = indirectType(t)
	return t.Kind() == reflect.Struct && t != urlType && !reflect.PointerTo(t).Implements(unmarshalText)
}

// isOpaque reports whether the struct t, or the struct it points to, has fields but none that an
// argument could set. This is the case for types such as *sql.DB, which are usually meant to be
// provided.
func isOpaque(t reflect.Type) bool {
	t = indirectType(t)
	named := false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.IsExported() || f.Anonymous {
			return false
		}
		named = named || f.Name != "_"
	}
	return named
}

func quoteAll(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", strings.TrimSpace(n))
	}
	return strings.Join(q, ", ")
}

func exampleNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("name%d", i+1)
	}
	if n == 1 {
		names[0] = "name"
	}
	return strings.Join(names, ",")
}
