package reflectx

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
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
// by o.Names. A struct that is encoded as one value, such as time.Time, is a plain parameter; so is,
// with a params tag, one that implements json.Unmarshaler. There may be any number of results; an
// error must be the last one.
//
// Compile returns all mistakes as Errors. Besides Errors, it returns a Func of which only Outputs and
// Input can be called. If the results are wrong, Outputs is empty.
func Compile(fn reflect.Value, o FuncOptions) (*Func, error) {
	if !fn.IsValid() || fn.Kind() != reflect.Func || fn.IsNil() {
		return &Func{input: &Input{}}, Errors{{Site: o.Site, Msg: "there is no function to call"}}
	}
	if pkgPath, file := funcFile(fn); pkgPath != "reflect" {
		onDisk.add(pkgPath, file) // reflect implements bound methods
	}
	t := fn.Type()
	c := planner{FuncOptions: o, t: t, f: &Func{fn: fn, params: make([]param, t.NumIn()), doc: o.Doc, input: &Input{}}}
	c.params()
	c.results()
	return c.f, c.errs.Err()
}

// A planner holds the state of compiling the parameters.
type planner struct {
	FuncOptions
	t    reflect.Type // of the function
	f    *Func
	errs Errors

	structs []int // indexes of the input structs, and of others that take all arguments
	plain   []int // indexes of the plain parameters
}

func (c *planner) errorf(format string, args ...any) {
	c.errs.Addf(c.Site, format, args...)
}

// tagged reports whether there is a params tag.
func (c *planner) tagged() bool { return c.Names != nil && !c.URI }

func (c *planner) params() {
	for i := range c.t.NumIn() {
		c.param(i, c.t.In(i))
	}
	if len(c.errs) > 0 {
		return
	}
	switch {
	case c.Input.Schema != nil && c.tagged():
		c.errorf("the params tag names %s, but the schema of the arguments is given; remove one of the two",
			quoteAll(c.Names))
	case len(c.structs) > 1:
		a, b := c.structs[0], c.structs[1]
		c.errorf("parameters %d (%s) and %d (%s) both take all arguments; there can be one, "+
			"so put the fields of both into it; if one of them should not come from the arguments, %s",
			a+1, typeText(c.t.In(a)), b+1, typeText(c.t.In(b)), c.Give)
	case len(c.structs) == 1 && len(c.plain) > 0:
		a, b := c.structs[0], c.plain[0]
		c.errorf("parameter %d (%s) is a struct of arguments, parameter %d (%s) a plain argument; "+
			"write the one or the other: put %[4]s into the struct as a field",
			a+1, typeText(c.t.In(a)), b+1, typeText(c.t.In(b)))
	case len(c.structs) == 1:
		c.structInput(c.structs[0])
	case len(c.plain) > 0:
		c.plainInput()
	default:
		names := slices.AppendSeq(slices.Clone(c.Names), maps.Keys(c.Tags))
		slices.Sort(names)
		if strings.Join(names, "") != "" {
			c.errorf("no parameter takes the arguments %s; add a parameter for each", quoteAll(slices.Compact(names)))
		}
		none := reflect.TypeFor[struct{}]()
		if c.Input.Schema != nil { // by which they are checked, nevertheless
			none = rawType
		}
		c.setInput(NewInput(c.Site, none, c.Input))
	}
}

// param determines the source of a parameter.
func (c *planner) param(i int, t reflect.Type) {
	if c.t.IsVariadic() && i == c.t.NumIn()-1 {
		c.errorf("parameter %d is variadic (...%s); take a slice, %s, or hide the method with mcpkit.Skip or mcpkit.OptIn", i+1, t.Elem(), t)
		return
	}
	inject := c.injector(t)
	isPlain := !isInputStruct(t) || c.tagged() && reflect.PointerTo(indirectType(t)).Implements(unmarshalJSON)
	switch {
	case inject != nil:
		c.f.params[i].inject = inject
	case c.injector(reflect.PointerTo(t)) != nil:
		// It would become an argument, which callers choose, even if it is, for example, the caller's identity.
		c.errorf("parameter %d is a %s, which is given as a pointer; write *%s", i+1, t, t)
	case shapeOf(indirectAll(t), forInput) == shapeNone || !isPlain && isOpaque(t):
		c.errorf("parameter %d is a %s, which no argument can give; %s", i+1, typeText(t), c.Give)
	case c.Input.Schema != nil && isPlain && !isWhole(t):
		c.errorf("parameter %d is a %s, but the schema of the arguments is given, so one parameter takes all of them; "+
			"write a struct, map[string]any or json.RawMessage", i+1, typeText(t))
	case c.Input.Schema != nil:
		c.structs = append(c.structs, i)
	case isPlain:
		c.plain = append(c.plain, i)
	default:
		c.structs = append(c.structs, i)
	}
}

// injector returns the injector of a parameter of type t, or nil if it comes from the arguments.
func (c *planner) injector(t reflect.Type) Injector {
	if t == contextType {
		return func(ctx context.Context) (reflect.Value, error) { return reflect.ValueOf(&ctx).Elem(), nil }
	}
	if c.Inject == nil {
		return nil
	}
	return c.Inject(t)
}

// isWhole reports whether a parameter of type t can take all arguments.
func isWhole(t reflect.Type) bool {
	return t == rawType || t.ConvertibleTo(reflect.TypeFor[map[string]any]())
}

// structInput plans a function with a parameter that takes all arguments, such as a struct with a field
// for each.
func (c *planner) structInput(i int) {
	t := c.t.In(i)
	if c.tagged() || len(c.Tags) > 0 {
		c.errorf("names and rules are for plain parameters, but the arguments are the fields of %s; "+
			"write them in json and validate tags of the fields", t)
		return
	}
	c.f.params[i].pick = func(v reflect.Value) reflect.Value { return v }
	if t.Kind() == reflect.Pointer {
		c.f.params[i].pick = reflect.Value.Addr
	}
	c.setInput(NewInput(c.Site, t, c.Input))
}

func (c *planner) setInput(in *Input, err error) {
	c.errs.Add(c.Site, err)
	c.f.input = cmp.Or(in, c.f.input)
}

// plainInput plans a function whose arguments are plain parameters. They become the fields P0, P1 and
// so on of a struct.
func (c *planner) plainInput() {
	types := make([]string, len(c.plain))
	for n, i := range c.plain {
		types[n] = c.t.In(i).String()
	}
	list := "(" + strings.Join(types, ", ") + ")"
	switch {
	case c.Names == nil && len(c.plain) == 1 && isWhole(c.t.In(c.plain[0])):
		c.errorf("parameter %d %s can take all arguments, but nothing says what they are; give their JSON Schema "+
			"with Builder.Input, or name the parameter with the tag params", c.plain[0]+1, list)
		return
	case c.Names == nil:
		c.errorf("Go does not keep the names of the parameters %s; write your names into the tag params or Builder.Params, "+
			`such as "a,b?", or take one struct; if the method is not for clients, hide it with mcpkit.Skip or mcpkit.OptIn`, list)
		return
	case len(c.Names) != len(c.plain):
		what := "names"
		if c.URI {
			what = "variables of the URI"
		}
		c.errorf("the %s are %s, but the parameters are %s; name each one, in order",
			what, cmp.Or(quoteAll(c.Names), "none"), list)
		return
	}
	fields := make([]reflect.StructField, len(c.plain))
	var names []string
	for n := range c.plain {
		names = append(names, c.name(n, names))
	}
	var descriptions map[string]string
	c.f.doc, descriptions = paramDescriptions(c.Doc, names)
	for n, i := range c.plain {
		name, t := names[n], c.t.In(i)
		tag := "json:" + strconv.Quote(name)
		if strings.HasSuffix(strings.TrimSpace(c.Names[n]), "?") {
			tag = "json:" + strconv.Quote(name+",omitempty")
		}
		rules := c.Tags[name]
		if desc := descriptions[name]; desc != "" && rules.Get("desc") == "" {
			tag += " desc:" + strconv.Quote(desc)
		}
		if rules != "" {
			tag += " " + string(rules)
		}
		fields[n] = reflect.StructField{Name: "P" + strconv.Itoa(n), Type: t, Tag: reflect.StructTag(tag)}
		c.f.params[i].pick = func(v reflect.Value) reflect.Value { return v.Field(n) }
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tags)) {
		if !slices.Contains(names, name) {
			c.errorf("the rules are for %q, which is not a parameter%s",
				name, hintOr(name, names, "the parameters are "+quoteAll(names)))
		}
	}
	if len(c.errs) == 0 {
		in := newCompiler(c.Site, c.Input, forInput)
		in.params = true
		c.setInput(in.input(reflect.StructOf(fields)))
	}
}

// name returns the name of a plain parameter. others are those before it.
func (c *planner) name(n int, others []string) string {
	name, _ := strings.CutSuffix(strings.TrimSpace(c.Names[n]), "?")
	switch {
	case name == "" || strings.ContainsAny(name, "?,\"'`{}[]()\\ \t\r\n"):
		c.errorf("%q is not a name of a parameter; write names with commas between, and a '?' after an optional one: "+
			`"a,b?"`, name)
	case slices.Contains(others, name):
		c.errorf("the name %q is listed twice for the parameters; give each its own", name)
	}
	return name
}

func (c *planner) results() {
	n := c.t.NumOut()
	for i := range n {
		out := c.t.Out(i)
		// A nil *E in an error is not a nil error, so that an E is not returned as one.
		isOther := (out.Kind() == reflect.Pointer || out.Kind() == reflect.Interface) && out.Implements(errorType)
		switch last := i == n-1; {
		case out == errorType && last:
			c.f.fails = true
		case out == errorType, isOther && last:
			c.errorf("result %d of %d has the type %s; return one error, as the last result and with the type error", i+1, n, out)
			c.f.outputs = nil
			return
		default:
			c.f.outputs = append(c.f.outputs, out)
		}
	}
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
	for f := range t.Fields() {
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
