package services

import (
	"go/ast"
	"go/types"
	"iter"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// A Service is a struct whose methods clients can call.
type Service struct {
	Type *types.Named
	// Methods are the exported methods of a pointer to the struct, sorted by name.
	Methods []Method
	// OptIn says that the source registers the service with this option.
	OptIn bool
}

// entries yields the fields of the annotation blocks of t, with their tags, and then those of the
// structs that t embeds with the tag mcpkit:"include".
func entries(t types.Type, above ...types.Type) iter.Seq2[*types.Var, reflect.StructTag] {
	return func(yield func(*types.Var, reflect.StructTag) bool) {
		st, ok := t.Underlying().(*types.Struct)
		if !ok || slices.Contains(above, t) {
			return
		}
		var included []types.Type
		for i := range st.NumFields() {
			f := st.Field(i)
			if f.Anonymous() && reflect.StructTag(st.Tag(i)).Get("mcpkit") == "include" {
				included = append(included, types.Unalias(Indirect(f.Type())))
			}
			block, ok := types.Unalias(f.Type()).(*types.Struct)
			if f.Name() != "_" || !ok {
				continue
			}
			for i := range block.NumFields() {
				if !yield(block.Field(i), reflect.StructTag(block.Tag(i))) {
					return
				}
			}
		}
		for _, in := range included {
			for f, tag := range entries(in, append(above, t)...) {
				if !yield(f, tag) {
					return
				}
			}
		}
	}
}

// Entry returns the field of the annotation block with the name of the method, and its tag. It
// returns nil and "" if there is none.
func (s *Service) Entry(method string) (*types.Var, reflect.StructTag) {
	for f, tag := range entries(s.Type) {
		if f.Name() == method {
			return f, tag
		}
	}
	return nil, ""
}

// EntryTag returns the tag of the method in the annotation block.
func (s *Service) EntryTag(method string) reflect.StructTag {
	_, tag := s.Entry(method)
	return tag
}

// Completers returns the methods that complete tags name. They are not tools, unless the annotation
// block has an entry for them.
func (s *Service) Completers() []string {
	var names []string
	for _, tag := range entries(s.Type) {
		for _, pair := range strings.FieldsFunc(tag.Get("complete"), func(r rune) bool { return r == ' ' || r == ',' }) {
			_, method, _ := strings.Cut(pair, "=")
			names = append(names, method)
		}
	}
	for _, m := range s.Methods {
		for param := range m.Func.Signature().Params().Variables() {
			if st, ok := Indirect(param.Type()).Underlying().(*types.Struct); ok {
				for i := range st.NumFields() {
					names = append(names, reflect.StructTag(st.Tag(i)).Get("complete"))
				}
			}
		}
	}
	return names
}

// Indirect returns the type that the pointer type t points to, or t itself.
func Indirect(t types.Type) types.Type {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		return ptr.Elem()
	}
	return t
}

// A Method is an exported method of a service.
type Method struct {
	Func *types.Func
	// Owner is the type that declares the method. It is nil for a type without a name.
	Owner *types.Named
	// Path is the names of the embedded fields that promote the method, from the outside in. It is
	// nil for a method that the service declares.
	Path []string
	// Marker is the kind in the annotation block: "Tool", "Resource", "Prompt" or "Skip". It is ""
	// if the block has no entry for the method.
	Marker string
	// Included reports that each field of Path has the tag mcpkit:"include".
	Included bool
}

// Find finds the services of p: structs with an annotation block or an Info field, and structs that
// are passed to a function of mcpkit as a service.
func (p *Package) Find() {
	var found []*types.Named
	add := func(t *types.Named) {
		if t != nil && t.Obj().Pkg() == p.Types && !slices.Contains(found, t) {
			found = append(found, t)
		}
	}
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		obj, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || obj.IsAlias() {
			continue
		}
		if t, ok := obj.Type().(*types.Named); ok && isMarked(t) {
			add(t)
		}
	}
	options := map[*types.Named]bool{}
	p.findCalls(add, options)
	for _, t := range found {
		p.Services = append(p.Services, &Service{Type: t, Methods: methods(t), OptIn: options[t]})
	}
	slices.SortFunc(p.Services, func(a, b *Service) int { return strings.Compare(a.Type.Obj().Name(), b.Type.Obj().Name()) })
}

// findCalls finds the services, functions and providers that are passed to functions of mcpkit.
func (p *Package) findCalls(add func(*types.Named), options map[*types.Named]bool) {
	if isMcpkit(p.Types) {
		return // it calls its own functions in other ways than users do
	}
	for _, file := range p.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fn, ok := typeutil.Callee(p.Info, call).(*types.Func)
			if !ok || !isMcpkit(fn.Pkg()) {
				return true
			}
			p.findCall(fn, call, add, options)
			return true
		})
	}
}

func (p *Package) findCall(fn *types.Func, call *ast.CallExpr, add func(*types.Named), options map[*types.Named]bool) {
	params := fn.Signature().Params()
	for i := range min(params.Len(), len(call.Args)) {
		given := p.Info.Types[call.Args[i]].Type
		if given == nil {
			continue
		}
		switch param := params.At(i); {
		case param.Name() == "service" && types.Identical(param.Type(), types.Universe.Lookup("any").Type()):
			if ptr, ok := types.Unalias(given).(*types.Pointer); ok {
				t := namedStruct(ptr.Elem())
				add(t)
				options[t] = p.optIn(call.Args[i+1:])
			} else if t := namedStruct(given); t != nil {
				add(t)
				p.ByValue = append(p.ByValue, call.Args[i])
			}
		case param.Name() == "fn":
			switch given := given.Underlying().(type) {
			case *types.Signature:
				p.Functions = append(p.Functions, given)
			case *types.Interface: // from a table
				p.Unknown = append(p.Unknown, call.Pos())
			}
		}
	}
	switch fn.Name() {
	case "Validator":
		p.OwnRules = true
	case "Elicit":
		if args := instance(p.Info, call.Fun); args != nil && args.Len() == 1 {
			p.Asked = append(p.Asked, args.At(0))
		}
	case "Provide":
		if args := instance(p.Info, call.Fun); args != nil && args.Len() == 1 {
			p.Provided = append(p.Provided, args.At(0))
		}
	}
}

// optIn reports whether OptIn is among the options of a service.
func (p *Package) optIn(args []ast.Expr) bool {
	return slices.ContainsFunc(args, func(arg ast.Expr) bool {
		call, ok := ast.Unparen(arg).(*ast.CallExpr)
		if !ok {
			return false
		}
		fn, ok := typeutil.Callee(p.Info, call).(*types.Func)
		return ok && isMcpkit(fn.Pkg()) && fn.Name() == "OptIn"
	})
}

// instance returns the type arguments, also inferred ones, of the generic function fun.
func instance(info *types.Info, fun ast.Expr) *types.TypeList {
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		return info.Instances[fun].TypeArgs
	case *ast.SelectorExpr:
		return info.Instances[fun.Sel].TypeArgs
	case *ast.IndexExpr:
		return instance(info, fun.X)
	}
	return nil
}

// isMcpkit reports whether p is mcpkit or mcptest, whose functions take services.
func isMcpkit(p *types.Package) bool {
	return p != nil && (p.Path() == module+"/mcpkit" || p.Path() == module+"/mcptest")
}

// Marker returns the name of the marker type t ("Tool", "Info" and so on), or "" if t is another
// type.
func Marker(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != module+"/mcpkit" {
		return ""
	}
	switch name := named.Obj().Name(); name {
	case "Tool", "Resource", "Prompt", "Skip", "Info":
		return name
	}
	return ""
}

// isMarked reports whether t has an annotation block or an Info field.
func isMarked(t *types.Named) bool {
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range st.Fields() {
		if Marker(f.Type()) == "Info" {
			return true
		}
	}
	for f := range entries(t) {
		if Marker(f.Type()) != "" {
			return true
		}
	}
	return false
}

// namedStruct returns t if it is a struct with a name, and nil otherwise.
func namedStruct(t types.Type) *types.Named {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return nil
	}
	if _, ok := named.Underlying().(*types.Struct); !ok {
		return nil
	}
	return named
}

func methods(t *types.Named) []Method {
	markers := map[string]string{}
	for f := range entries(t) {
		if markers[f.Name()] == "" { // the outermost block is first
			markers[f.Name()] = Marker(f.Type())
		}
	}
	var found []Method
	set := types.NewMethodSet(types.NewPointer(t))
	for sel := range set.Methods() {
		fn := sel.Obj().(*types.Func)
		if !fn.Exported() {
			continue
		}
		m := Method{Func: fn, Marker: markers[fn.Name()], Included: true}
		m.Owner, _ = types.Unalias(Indirect(fn.Signature().Recv().Type())).(*types.Named)
		in := t.Underlying().(*types.Struct)
		for _, i := range sel.Index()[:len(sel.Index())-1] {
			f := in.Field(i)
			m.Path = append(m.Path, f.Name())
			m.Included = m.Included && reflect.StructTag(in.Tag(i)).Get("mcpkit") == "include"
			in, _ = Indirect(f.Type()).Underlying().(*types.Struct)
		}
		found = append(found, m)
	}
	slices.SortFunc(found, func(a, b Method) int { return strings.Compare(a.Func.Name(), b.Func.Name()) })
	return found
}

// Registered returns the methods that mcpkit registers, including completion methods. wellKnown are
// the names that mcpkit leaves out by default.
func (s *Service) Registered(wellKnown []string) []Method {
	return slices.DeleteFunc(slices.Clone(s.Methods), func(m Method) bool {
		switch {
		case m.Marker == "Skip":
			return true
		case m.Marker != "":
			return false
		}
		return slices.Contains(wellKnown, m.Func.Name()) || m.Path != nil && !m.Included
	})
}
