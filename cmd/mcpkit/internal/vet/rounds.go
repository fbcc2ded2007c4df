package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

// questions are the functions of package mcpkit that ask the client.
var questions = []string{"Elicit", "ElicitForm", "ElicitURL", "Confirm", "Choose", "Sample", "Roots", "Ask"}

// changing are the first words in the names of functions that seem to change something.
var changing = []string{
	"add", "append", "book", "buy", "cancel", "charge", "commit", "create", "debit", "delete", "deploy", "drop", "enqueue", "exec", "hold", "insert",
	"move", "notify", "order", "pay", "post", "publish", "purge", "push", "put", "refund", "register", "release", "remove", "rename", "reserve", "revoke",
	"save", "send", "store", "submit", "transfer", "update", "upsert", "write",
}

// rounds reports what a method changes before it asks a question. From version 2026-07-28 on, the
// method runs again from its beginning when the answer arrives, and repeats the change unless
// mcpkit.Once makes it. Changes are recognized by names, and by what methods of the package assign, so
// the check is not exact.
func (v *checker) rounds() {
	bodies := map[*types.Func]*ast.FuncDecl{}
	r := &rounds{checker: v, asking: map[*types.Func]bool{}, bodies: bodies, reading: map[*types.Func]bool{}, assigning: map[*types.Func]bool{}}
	for _, file := range v.pkg.Files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				if fn, ok := v.pkg.Info.Defs[f.Name].(*types.Func); ok {
					bodies[fn] = f
				}
			}
		}
	}
	// Functions that call a function that asks, ask as well.
	for grown := true; grown; {
		grown = false
		for fn, decl := range bodies {
			if !r.asking[fn] && slices.ContainsFunc(r.calls(decl.Body), r.asks) {
				r.asking[fn], grown = true, true
			}
		}
	}
	for _, s := range v.pkg.Services {
		for _, m := range s.Methods {
			if decl := bodies[m.Func]; decl != nil && r.asking[m.Func] && !v.inTest(decl.Pos()) {
				r.method(s, decl)
			}
		}
	}
}

type rounds struct {
	*checker
	asking map[*types.Func]bool // of this package
	bodies map[*types.Func]*ast.FuncDecl
	// reading holds the results of reads. While a function is checked, its result is true, which
	// ends the recursion.
	reading map[*types.Func]bool
	// assigning holds the results of assignsReceiver. While a function is checked, its result is
	// false.
	assigning map[*types.Func]bool
}

// method reports the changes that a question may follow.
func (r *rounds) method(s *services.Service, decl *ast.FuncDecl) {
	var receiver types.Object
	if names := decl.Recv.List[0].Names; len(names) > 0 {
		receiver = r.pkg.Info.Defs[names[0]]
	}
	graph := cfg.New(decl.Body, func(*ast.CallExpr) bool { return true })
	reached := map[*cfg.Block]bool{} // blocks with a question in or after them
	asksIn := func(b *cfg.Block) bool {
		return slices.ContainsFunc(b.Nodes, func(n ast.Node) bool { return slices.ContainsFunc(r.calls(n), r.asks) })
	}
	for grown := true; grown; {
		grown = false
		for _, b := range graph.Blocks {
			if !reached[b] && (asksIn(b) || slices.ContainsFunc(b.Succs, func(next *cfg.Block) bool { return reached[next] })) {
				reached[b], grown = true, true
			}
		}
	}
	for _, b := range graph.Blocks {
		later := slices.ContainsFunc(b.Succs, func(next *cfg.Block) bool { return reached[next] })
		for _, n := range slices.Backward(b.Nodes) {
			for _, call := range slices.Backward(r.calls(n)) {
				switch {
				case r.asks(call):
					later = true
				case later && (r.changes(call) || r.receiverChanges(call, receiver)):
					r.reportChange(s, decl, call.Pos(), types.ExprString(call.Fun)+"(…)")
				}
			}
			if pos, text := r.assigns(n, func(obj types.Object) bool { return obj == receiver }); later && text != "" {
				r.reportChange(s, decl, pos, text)
			}
		}
	}
}

func (r *rounds) reportChange(s *services.Service, decl *ast.FuncDecl, pos token.Pos, what string) {
	r.report(pos, "%s.%s: %s comes before a question, and runs again when the answer comes; put it into mcpkit.Once, or ask first",
		s.Type.Obj().Name(), decl.Name.Name, what)
}

// calls returns the calls in n, in the order in which they run if that is known. It leaves out
// deferred calls and the bodies of function literals, which run later.
func (r *rounds) calls(n ast.Node) []*ast.CallExpr {
	var found, open []*ast.CallExpr
	var walk []ast.Node
	ast.Inspect(n, func(n ast.Node) bool {
		if n == nil {
			if call, ok := walk[len(walk)-1].(*ast.CallExpr); ok {
				open = open[:len(open)-1]
				found = append(found, call)
			}
			walk = walk[:len(walk)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.DeferStmt:
			return false
		case *ast.FuncLit:
			// Ask calls the functions that are passed to it.
			if len(open) == 0 || !r.asks(open[len(open)-1]) {
				return false
			}
		case *ast.CallExpr:
			open = append(open, n)
		}
		walk = append(walk, n)
		return true
	})
	return found
}

func (r *rounds) asks(call *ast.CallExpr) bool {
	fn, ok := typeutil.Callee(r.pkg.Info, call).(*types.Func)
	if !ok {
		return false
	}
	if services.IsLibrary(fn.Pkg()) {
		return fn.Signature().Recv() == nil && slices.Contains(questions, fn.Name())
	}
	return r.asking[fn.Origin()]
}

// changes reports whether the function seems to change something that outlives the call: its name
// suggests it, and neither its declaration nor its body contradicts. Functions of package mcpkit,
// built-in functions, and most packages of the standard library change nothing that counts.
func (r *rounds) changes(call *ast.CallExpr) bool {
	fn, ok := typeutil.Callee(r.pkg.Info, call).(*types.Func)
	if !ok || fn.Pkg() == nil || services.IsLibrary(fn.Pkg()) {
		return false
	}
	switch path := fn.Pkg().Path(); path {
	case "os", "net/http", "net/smtp", "database/sql":
	default:
		if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") && fn.Pkg() != r.pkg.Types && isStandard(r.pkg, path) {
			return false
		}
	}
	return slices.Contains(changing, firstWord(fn.Name())) && !r.reads(fn.Origin())
}

// receiverChanges reports whether the call is of a method of the receiver, or of one of its fields,
// that changes what it is called on.
func (r *rounds) receiverChanges(call *ast.CallExpr, receiver types.Object) bool {
	fn, ok := typeutil.Callee(r.pkg.Info, call).(*types.Func)
	if !ok || receiver == nil || fn.Signature().Recv() == nil {
		return false
	}
	id, _ := rootOf(call.Fun)
	return id != nil && r.pkg.Info.Uses[id] == receiver && r.assignsReceiver(fn.Origin())
}

// assignsReceiver reports whether the body of a method is known and assigns through its receiver,
// itself or by another method. Function literals do not count, since Once may get them.
func (r *rounds) assignsReceiver(fn *types.Func) bool {
	if assigns, known := r.assigning[fn]; known {
		return assigns
	}
	r.assigning[fn] = false
	decl := r.bodies[fn]
	if decl == nil || decl.Recv == nil || len(decl.Recv.List[0].Names) == 0 || r.declaredReadOnly(fn) {
		return false
	}
	receiver := r.pkg.Info.Defs[decl.Recv.List[0].Names[0]]
	found := false
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.AssignStmt, *ast.IncDecStmt:
			_, text := r.assigns(n, func(obj types.Object) bool { return obj == receiver })
			found = found || text != ""
		case *ast.CallExpr:
			found = found || r.receiverChanges(n, receiver)
		}
		return !found
	})
	r.assigning[fn] = found
	return found
}

// reads reports whether a function only reads, although its name suggests a change.
func (r *rounds) reads(fn *types.Func) bool {
	if reads, known := r.reading[fn]; known {
		return reads
	}
	r.reading[fn] = true
	r.reading[fn] = r.declaredReadOnly(fn) || r.bodyReads(fn) || isGetter(fn)
	return r.reading[fn]
}

// declaredReadOnly reports whether the annotation block declares fn as a resource, a prompt or a
// read-only tool.
func (r *rounds) declaredReadOnly(fn *types.Func) bool {
	for _, s := range r.pkg.Services {
		for _, m := range s.Methods {
			if m.Func == fn {
				return m.Marker == "Resource" || m.Marker == "Prompt" || strings.Contains(s.EntryTag(fn.Name()).Get("hints"), "readonly")
			}
		}
	}
	return false
}

// bodyReads reports whether the body of the function is known and contains no change: no assignment
// through its receiver or parameters, no delete or send, and no call of a function that changes or
// starts something.
func (r *rounds) bodyReads(fn *types.Func) bool {
	decl := r.bodies[fn]
	if decl == nil {
		return false
	}
	own := map[types.Object]bool{}
	for _, list := range []*ast.FieldList{decl.Recv, decl.Type.Params} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				own[r.pkg.Info.Defs[name]] = true
			}
		}
	}
	reads := true
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SendStmt, *ast.GoStmt:
			reads = false
		case *ast.AssignStmt, *ast.IncDecStmt:
			_, text := r.assigns(n, func(obj types.Object) bool { return own[obj] || obj.Parent() == r.pkg.Types.Scope() })
			reads = reads && text == ""
		case *ast.CallExpr:
			switch callee := typeutil.Callee(r.pkg.Info, n).(type) {
			case *types.Builtin:
				reads = reads && !slices.Contains([]string{"delete", "clear", "copy", "close"}, callee.Name())
			case *types.Func:
				started := callee.Pkg() != nil && slices.Contains([]string{"net", "net/http", "net/smtp", "os/exec", "syscall"}, callee.Pkg().Path())
				reads = reads && !started && !r.changes(n)
			}
		}
		return reads
	})
	return reads
}

// isGetter reports whether the function returns what it is named for, such as Order(ctx, id string)
// (*Order, error), and takes nothing but a context and values of basic types.
func isGetter(fn *types.Func) bool {
	sig := fn.Signature()
	if sig.Results().Len() == 0 {
		return false
	}
	for param := range sig.Params().Variables() {
		if _, basic := param.Type().Underlying().(*types.Basic); !basic && types.TypeString(param.Type(), nil) != "context.Context" {
			return false
		}
	}
	named, ok := types.Unalias(services.Indirect(sig.Results().At(0).Type())).(*types.Named)
	return ok && named.Obj().Name() == fn.Name()
}

// isStandard reports whether the package seems to belong to the standard library: only other
// packages have known directories.
func isStandard(p *services.Package, path string) bool {
	_, known := p.Dirs[path]
	return !known
}

// firstWord returns the first word of a name in small letters: "send" for "SendAll".
func firstWord(name string) string {
	word := []byte{name[0] | 0x20}
	for i := 1; i < len(name) && name[i] >= 'a' && name[i] <= 'z'; i++ {
		word = append(word, name[i])
	}
	return string(word)
}

// rootOf returns the variable from which an expression selects, and the number of steps from it; nil
// if the expression begins otherwise.
func rootOf(e ast.Expr) (root *ast.Ident, steps int) {
	for ; ; steps++ {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.Ident:
			return x, steps
		default:
			return nil, steps
		}
	}
}

// assigns finds an assignment through one of the variables for which own returns true.
func (r *rounds) assigns(n ast.Node, own func(types.Object) bool) (token.Pos, string) {
	var left []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		left = n.Lhs
	case *ast.IncDecStmt:
		left = []ast.Expr{n.X}
	}
	for _, e := range left {
		id, steps := rootOf(e)
		if obj := r.pkg.Info.Uses[id]; id != nil && obj != nil && own(obj) && (steps > 0 || obj.Parent() == r.pkg.Types.Scope()) {
			return n.Pos(), "the assignment to " + types.ExprString(e)
		}
	}
	return token.NoPos, ""
}
