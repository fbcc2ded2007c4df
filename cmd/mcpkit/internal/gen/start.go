package gen

import (
	"bytes"
	"fmt"
	"go/format"
	"go/types"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

// A Started is the result of registering one service. The program of [Start] writes a list of them
// as JSON.
type Started struct {
	Faults []Fault
	// Tools are the definitions of the tools in the newest version of the protocol, a JSON array.
	// It is empty if there are faults.
	Tools []byte
}

// A Fault is a mistake that registering a service reports.
type Fault struct{ Site, Msg string }

// startName is the name of the function in the file of Start.
const startName = "zzMcpkitVet"

// CanStart reports whether the file of Start can create the service: it is declared in the package
// and has no type parameters.
func CanStart(p *services.Package, s *services.Service) bool {
	return s.Type.TypeParams().Len() == 0 && s.Type.Obj().Parent() == p.Types.Scope()
}

// Start returns a file for p that registers each service with its own server, writes the results to
// the file result, and ends the program. It runs when the first variable of the package is
// initialized: the imports are initialized, and no other code of the package runs but what the
// registration calls, such as methods that decode a default.
func Start(p *services.Package, list []*services.Service, result string) ([]byte, error) {
	f := &file{pkg: p, names: map[string]string{}, taken: map[string]bool{}}
	use := func(path, name string) string { return f.use(path, name) + "." }
	mcpkit := ""
	if p.Path != mcpkitPath {
		mcpkit = use(mcpkitPath, "mcpkit")
	}
	const library = "github.com/mcpkit/mcpkit-go/"
	json, errors, os, slog := use("encoding/json", "json"), use("errors", "errors"), use("os", "os"), use("log/slog", "slog")
	protocol, reflectx := use(library+"protocol", "protocol"), use(library+"reflectx", "reflectx")

	var starts strings.Builder
	options := f.startOptions(mcpkit)
	for _, s := range list {
		fmt.Fprintf(&starts, "func(look %[1]sOption) (*%[1]sServer, error) {\nreturn %[1]sNew(new(%[2]s), look, %[1]sLogger(%[3]sNew(%[3]sDiscardHandler)), %[1]sPageSize(1<<30), %[1]sAuthenticated(), %[1]sAnyTags(), %[1]sVisible(nil),\n",
			mcpkit, s.Type.Obj().Name(), slog)
		if s.OptIn {
			fmt.Fprintf(&starts, "%sOptIn(),\n", mcpkit)
		}
		starts.WriteString(options + ")\n},\n")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n", p.Types.Name())
	f.writeImports(&b)
	fmt.Fprintf(&b, `
var _ = %[1]s()

func %[1]s() bool {
	type fault struct{ Site, Msg string }
	type started struct {
		Faults []fault
		Tools  []byte
	}
	all := []started{}
	for _, start := range []func(%[2]sOption) (*%[2]sServer, error){
		%[7]s
	} {
		var one started
		// The server is not started: services may need what the program gives them.
		tools := []%[5]sTool{}
		_, err := start(%[2]sExtend(%[2]sExtension{ID: "io.github.mcpkit/vet", Tool: func(t *%[2]sToolEntry, _ %[5]sVersion) error {
			definition := t.Definition
			if len(definition.Meta) == 0 {
				definition.Meta = nil // as in lists
			}
			tools = append(tools, definition)
			return nil
		}}))
		var many %[6]sErrors
		var single *%[6]sError
		switch {
		case %[4]sAs(err, &many):
			for _, e := range many {
				one.Faults = append(one.Faults, fault{e.Site, e.Msg})
			}
		case %[4]sAs(err, &single):
			one.Faults = append(one.Faults, fault{single.Site, single.Msg})
		case err != nil:
			one.Faults = append(one.Faults, fault{"", err.Error()})
		default:
			if one.Tools, err = %[3]sMarshal(tools); err != nil {
				panic(err)
			}
		}
		all = append(all, one)
	}
	b, err := %[3]sMarshal(all)
	if err != nil {
		panic(err)
	}
	if err := %[8]sWriteFile(%[9]q, b, 0o600); err != nil {
		panic(err)
	}
	%[8]sExit(0)
	return true
}
`, startName, mcpkit, json, errors, protocol, reflectx, starts.String(), os, result)
	return format.Source(b.Bytes())
}

// startOptions returns the options of all services: the provided types of the package, except those
// that cannot be written in the file.
func (f *file) startOptions(mcpkit string) string {
	var b strings.Builder
	var given []types.Type
	for _, t := range f.pkg.Provided {
		if slices.ContainsFunc(given, func(g types.Type) bool { return types.Identical(g, t) }) || !f.canSpell(t) {
			continue
		}
		given = append(given, t)
		text := f.spell(t)
		fmt.Fprintf(&b, "%sProvide(func(%s.Context) (v %s, err error) { return v, nil }),\n", mcpkit, f.use("context", "context"), text)
	}
	return b.String()
}

// spell returns the type as source in the package.
func (f *file) spell(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == f.pkg.Types {
			return ""
		}
		return f.use(p.Path(), p.Name())
	})
}

// canSpell reports whether the type can be written outside of functions.
func (f *file) canSpell(t types.Type) bool {
	if !f.canWrite(t, map[types.Type]bool{}) {
		return false
	}
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		return f.canSpell(ptr.Elem())
	}
	switch t := t.(type) {
	case *types.TypeParam:
		return false
	case interface{ Obj() *types.TypeName }:
		return t.Obj().Pkg() == nil || t.Obj().Parent() == t.Obj().Pkg().Scope()
	}
	return true
}
