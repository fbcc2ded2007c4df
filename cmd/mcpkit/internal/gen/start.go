package gen

import (
	"bytes"
	"fmt"
	"go/format"
	"go/types"
	"slices"
	"strconv"
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
// initialized: the imports are initialized, and no other code of the package runs.
func Start(p *services.Package, list []*services.Service, result string) ([]byte, error) {
	f := &file{pkg: p, names: map[string]string{}, taken: map[string]bool{}}
	use := func(path, name string) string { return f.use(path, name) + "." }
	mcpkit := ""
	if p.Path != mcpkitPath {
		mcpkit = use(mcpkitPath, "mcpkit")
	}
	const library = "github.com/mcpkit/mcpkit-go/"
	context, json, errors, os, slog := use("context", "context"), use("encoding/json", "json"), use("errors", "errors"), use("os", "os"), use("log/slog", "slog")
	inmem, reflectx := use(library+"transport/inmem", "inmem"), use(library+"reflectx", "reflectx")

	var starts strings.Builder
	options := f.startOptions(mcpkit, context)
	for _, s := range list {
		fmt.Fprintf(&starts, "func() (*%[1]sServer, error) {\nreturn %[1]sNew(new(%[2]s), %[1]sLogger(%[3]sNew(%[3]sDiscardHandler)), %[1]sPageSize(1<<30), %[1]sAuthenticated(), %[1]sLinkedTags(),\n",
			mcpkit, s.Type.Obj().Name(), slog)
		if scopes := scopesOf(s); len(scopes) > 0 {
			fmt.Fprintf(&starts, "%sTrustLocal(%s),\n", mcpkit, strings.Join(scopes, ", "))
		}
		if s.Prefix != "" {
			fmt.Fprintf(&starts, "%sPrefix(%q),\n", mcpkit, s.Prefix)
		}
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
	for _, start := range []func() (*%[2]sServer, error){
		%[8]s
	} {
		var one started
		srv, err := start()
		var many %[7]sErrors
		var single *%[7]sError
		switch {
		case %[5]sAs(err, &many):
			for _, e := range many {
				one.Faults = append(one.Faults, fault{e.Site, e.Msg})
			}
		case %[5]sAs(err, &single):
			one.Faults = append(one.Faults, fault{single.Site, single.Msg})
		case err != nil:
			one.Faults = append(one.Faults, fault{"", err.Error()})
		default:
			conn := %[6]sConnect(%[3]sBackground(), srv)
			resp, err := conn.Call(%[3]sBackground(), "tools/list", %[4]sRawMessage(`+"`%[10]s`"+`))
			if err != nil {
				panic(err)
			}
			var list struct{ Tools %[4]sRawMessage }
			if resp.Error != nil {
				panic(resp.Error)
			}
			if err := %[4]sUnmarshal(resp.Result, &list); err != nil {
				panic(err)
			}
			one.Tools = list.Tools
		}
		all = append(all, one)
	}
	b, err := %[4]sMarshal(all)
	if err != nil {
		panic(err)
	}
	if err := %[9]sWriteFile(%[11]q, b, 0o600); err != nil {
		panic(err)
	}
	%[9]sExit(0)
	return true
}
`, startName, mcpkit, context, json, errors, inmem, reflectx, starts.String(), os, startMeta, result)
	return format.Source(b.Bytes())
}

const startMeta = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"mcpkit vet","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`

// startOptions returns the options of all services: the provided types and the unions of the
// package, except those that cannot be written in the file.
func (f *file) startOptions(mcpkit, context string) string {
	var b strings.Builder
	var given []types.Type
	for _, t := range f.pkg.Provided {
		if slices.ContainsFunc(given, func(g types.Type) bool { return types.Identical(g, t) }) || !f.canSpell(t) {
			continue
		}
		given = append(given, t)
		text := f.spell(t)
		fmt.Fprintf(&b, "%sProvide(func(%sContext) (v %s, err error) { return v, nil }),\n", mcpkit, context, text)
	}
	for _, u := range f.pkg.Unions {
		if u.Discriminator == "" || !f.canSpell(u.Interface) || slices.ContainsFunc(u.Cases, func(t types.Type) bool { return !f.canSpell(t) }) {
			continue
		}
		var cases []string
		for _, t := range u.Cases {
			if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
				cases = append(cases, "new("+f.spell(ptr.Elem())+")")
			} else {
				cases = append(cases, "*new("+f.spell(t)+")")
			}
		}
		fmt.Fprintf(&b, "%sUnion[%s](%q, %s),\n", mcpkit, f.spell(u.Interface), u.Discriminator, strings.Join(cases, ", "))
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

// scopesOf returns the scopes in the tags of the service, in quotes.
func scopesOf(s *services.Service) []string {
	var scopes []string
	for _, m := range s.Methods {
		for _, scope := range strings.FieldsFunc(s.EntryTag(m.Func.Name()).Get("scopes"), func(r rune) bool { return r == ' ' || r == ',' }) {
			scopes = append(scopes, strconv.Quote(scope))
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}
