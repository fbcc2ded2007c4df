package services

import (
	"go/types"
	"reflect"
	"slices"
)

// Reached holds the named types and methods whose descriptions clients can see.
type Reached struct {
	// Types has, by import path and name of the type, the names of its fields and methods.
	Types map[string]map[string][]string

	seen map[types.Type]bool
}

// Reach returns the types of the arguments of the services' methods and of the functions that are
// passed to mcpkit, and those of forms.
func (p *Package) Reach(wellKnown []string) *Reached {
	r := &Reached{Types: map[string]map[string][]string{}, seen: map[types.Type]bool{}}
	for _, s := range p.Services {
		r.add(s.Type.Obj(), "")
		for _, m := range s.Registered(wellKnown) {
			if m.Owner != nil {
				r.add(m.Owner.Obj(), m.Func.Name())
			}
			r.signature(p, m.Func.Signature())
		}
	}
	for _, sig := range p.Functions {
		r.signature(p, sig)
	}
	for _, t := range p.Asked {
		r.walk(t)
	}
	return r
}

func (r *Reached) add(obj *types.TypeName, member string) {
	if obj.Pkg() == nil {
		return
	}
	names := r.Types[obj.Pkg().Path()]
	if names == nil {
		names = map[string][]string{}
		r.Types[obj.Pkg().Path()] = names
	}
	members := names[obj.Name()]
	if member != "" && !slices.Contains(members, member) {
		members = append(members, member)
	}
	names[obj.Name()] = members
}

func (r *Reached) signature(p *Package, sig *types.Signature) {
	for v := range sig.Params().Variables() {
		if !p.Injected(v.Type()) {
			r.walk(v.Type())
		}
	}
}

// Injected reports whether a parameter of type t does not come from the arguments.
func (p *Package) Injected(t types.Type) bool {
	return ours(t) || slices.ContainsFunc(p.Provided, func(given types.Type) bool { return types.Identical(given, t) })
}

// ours reports whether t is a type of this library, or a list of them: requests, content, results.
// They have no schema.
func ours(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer, *types.Slice:
		return ours(t.(HasElem).Elem())
	case *types.Named:
		return t.Obj().Pkg() != nil && libraryTypes[t.Obj().Pkg().Path()]
	}
	return false
}

var libraryTypes = map[string]bool{
	module + "/mcpkit": true, module + "/mcpkit/internal/result": true, // of mcpkit.Blob
	module + "/protocol": true, module + "/oauth": true, module + "/transport": true,
}

// HasElem is a pointer, slice, array, map or channel type.
type HasElem interface{ Elem() types.Type }

func (r *Reached) walk(t types.Type) {
	if r.seen[t] {
		return
	}
	r.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		r.walk(types.Unalias(t))
	case *types.Named:
		r.add(t.Obj(), "")
		switch u := t.Underlying().(type) {
		case *types.Struct:
			if !WritesItself(t) {
				r.structFields(u, t.Obj())
			}
		case *types.Basic, *types.Interface:
		default:
			r.walk(u)
		}
	case *types.Map:
		r.walk(t.Key())
		r.walk(t.Elem())
	case HasElem:
		r.walk(t.Elem())
	case *types.Struct:
		r.structFields(t, nil)
	}
}

// structFields walks the fields that are encoded in JSON. owner is the type that declares them, or
// nil for a struct without a name.
func (r *Reached) structFields(st *types.Struct, owner *types.TypeName) {
	for i := range st.NumFields() {
		f := st.Field(i)
		if !f.Exported() && !f.Embedded() || reflect.StructTag(st.Tag(i)).Get("json") == "-" {
			continue
		}
		if owner != nil && f.Exported() {
			r.add(owner, f.Name())
		}
		r.walk(f.Type())
	}
}

// WritesItself reports whether methods of t read or write its JSON or text, so that its fields do
// not show.
func WritesItself(t *types.Named) bool {
	for _, name := range []string{"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, true, t.Obj().Pkg(), name); obj != nil {
			if _, ok := obj.(*types.Func); ok {
				return true
			}
		}
	}
	return false
}
