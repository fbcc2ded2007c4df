package reflectx

import (
	"fmt"
	"net/url"
	"reflect"
	"runtime"
	"strings"
)

// A Method is an exported method of a value, and its place in the source.
type Method struct {
	Name string
	// Func is bound to the value.
	Func reflect.Value
	// Unbound takes Receiver, which is the value, as its first parameter.
	Unbound, Receiver reflect.Value
	// Owner is the type that declares the method: the value's own type without the pointer, the
	// type of an embedded field, or, if an embedded interface is nil, the interface.
	Owner reflect.Type
	// Promoted reports that an embedded field declares the method instead of the value's own type.
	// Path is the names of the embedded fields from the outside in.
	Promoted bool
	Path     []string
	// File and Line are the place of the declaration, or "" and 0 if unknown. With -trimpath, File
	// begins with the import path of the package instead of a directory.
	File string
	Line int
}

// Methods returns the exported methods of v, sorted by name.
//
// It is the only code in this package that uses reflect's Type.Method, which makes the linker keep
// every exported method of a program. (The rule validateFn of validator/v10 has the same effect.)
//
// It returns an error if v is nil or a nil pointer, or if v is not a pointer and its pointer type
// has more methods, which would be left out.
func Methods(v any) ([]Method, error) {
	val := reflect.ValueOf(v)
	if !val.IsValid() {
		return nil, &Error{Msg: "the service is nil; give a pointer to it"}
	}
	t := val.Type()
	if t.Kind() == reflect.Pointer && val.IsNil() {
		return nil, &Error{Site: t.String(), Msg: "the service is a nil pointer; give a pointer to a value"}
	}
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		if missing := onlyOnPointer(t); len(missing) > 0 {
			return nil, &Error{Site: t.String(), Msg: fmt.Sprintf("it is given by value, without the methods of *%s (%s); give a pointer to it",
				t, strings.Join(missing, ", "))}
		}
	}
	methods := make([]Method, t.NumMethod())
	for i := range methods {
		unbound := t.Method(i)
		m := Method{Name: unbound.Name, Func: val.Method(i), Unbound: unbound.Func, Receiver: val}
		m.find(val)
		onDisk.add(m.Owner.PkgPath(), m.File)
		methods[i] = m
	}
	return methods, nil
}

// onlyOnPointer returns the methods of *t that t does not have.
func onlyOnPointer(t reflect.Type) []string {
	p := reflect.PointerTo(t)
	if p.NumMethod() == t.NumMethod() {
		return nil
	}
	var names []string
	for i := range p.NumMethod() {
		name := p.Method(i).Name
		if _, ok := t.MethodByName(name); !ok {
			names = append(names, name)
		}
	}
	return names
}

// find finds where the method of val is declared.
func (m *Method) find(val reflect.Value) {
	t := indirectType(val.Type())
	m.Owner = t
	if file, line, ok := declared(t, m.Name); ok {
		m.File, m.Line = file, line
		return
	}
	if t.Kind() != reflect.Struct {
		return
	}
	// Breadth first, since the shallowest declaration is promoted. The language does not allow two
	// at the same depth.
	type embedded struct {
		t    reflect.Type
		v    reflect.Value // invalid behind a nil pointer
		path []string
	}
	level := []embedded{{t: t, v: reflect.Indirect(val)}}
	seen := map[reflect.Type]bool{t: true}
	for len(level) > 0 {
		var next []embedded
		for _, e := range level {
			for i := range e.t.NumField() {
				f := e.t.Field(i)
				if !f.Anonymous {
					continue
				}
				in := embedded{t: indirectType(f.Type), path: append(e.path[:len(e.path):len(e.path)], f.Name)}
				if e.v.IsValid() {
					in.v = reflect.Indirect(e.v.Field(i))
				}
				if m.from(in.t, in.v) {
					m.Promoted, m.Path = true, in.path
					return
				}
				if in.t.Kind() == reflect.Struct && !seen[in.t] {
					seen[in.t] = true
					next = append(next, in)
				}
			}
		}
		level = next
	}
}

// from reports whether the embedded type t declares the method, and records where.
func (m *Method) from(t reflect.Type, v reflect.Value) bool {
	if t.Kind() == reflect.Interface {
		if _, ok := t.MethodByName(m.Name); !ok {
			return false
		}
		m.Owner = t
		if v.IsValid() && v.Kind() == reflect.Interface && !v.IsNil() {
			held := Method{Name: m.Name}
			held.find(v.Elem())
			m.Owner, m.File, m.Line = held.Owner, held.File, held.Line
		}
		return true
	}
	file, line, ok := declared(t, m.Name)
	if ok {
		m.Owner, m.File, m.Line = t, file, line
	}
	return ok
}

// declared reports whether the named type t itself declares the method, and where.
//
// For a promoted method, and for a value method called through a pointer, the compiler generates a
// wrapper without a place in the source. So declared looks at the value's method first, then at the
// pointer's.
func declared(t reflect.Type, name string) (file string, line int, ok bool) {
	if t.Name() == "" || t.Kind() == reflect.Interface {
		return "", 0, false
	}
	for _, recv := range []reflect.Type{t, reflect.PointerTo(t)} {
		m, has := recv.MethodByName(name)
		if !has {
			continue
		}
		fn := runtime.FuncForPC(m.Func.Pointer())
		if fn == nil {
			continue
		}
		file, line := fn.FileLine(fn.Entry())
		if file != "<autogenerated>" && file != "" && isMethodOf(fn.Name(), t) {
			return file, line, true
		}
	}
	return "", 0, false
}

// isMethodOf reports whether fn, the linker's name of a function such as
// "example.com/x.(*Box[...]).Get", is a method of t. It is not if the method of an embedded type
// was inlined into the wrapper.
func isMethodOf(fn string, t reflect.Type) bool {
	pkg, rest := splitFuncName(fn)
	recv, _, _ := strings.Cut(strings.TrimPrefix(rest, "(*"), ".")
	recv = strings.TrimSuffix(recv, ")")
	return pkg == t.PkgPath() && baseName(recv) == baseName(t.Name())
}

// splitFuncName splits the linker's name of a function into the import path and the rest: "(*T).M",
// "T.M", "F".
func splitFuncName(fn string) (pkg, rest string) {
	// The type arguments of a generic function may contain slashes.
	head, tail := fn, ""
	if i := strings.IndexByte(fn, '['); i >= 0 {
		head, tail = fn[:i], fn[i:]
	}
	slash := strings.LastIndexByte(head, '/') + 1
	dot := strings.IndexByte(head[slash:], '.')
	if dot < 0 {
		return "", fn
	}
	pkg = head[:slash+dot]
	if plain, err := url.PathUnescape(pkg); err == nil { // the linker writes %2e for a dot in the last element
		pkg = plain
	}
	return pkg, head[slash+dot+1:] + tail
}

// baseName returns the name of a type without its type arguments.
func baseName(name string) string {
	base, _, _ := strings.Cut(name, "[")
	return base
}

func indirectType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
