package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/analysis"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/vet"
	"github.com/mcpkit/mcpkit-go/internal/toolname"
)

const vetHelp = `Reports the startup errors of the services of the packages (default: the
current one): unknown tags and values, entries of methods that do not exist,
signatures and input fields that do not fit. Vet builds each package with one
added file, which registers the services and ends the program. The imports of
the package are initialized; its own variables, main and Start do not run.
Last, vet prints what tools/list of each service costs a model, in tokens, and
warns of tool names that some clients refuse.

Vet also reports methods and fields without a description, a stale
` + services.GeneratedFile + `, tools with names such as DeleteNote without hints,
methods that seem to change something before they ask without mcpkit.Once, and
dropped errors of Serve and Register. A comment //lint:ignore mcpkit REASON
silences these findings on its line and the next. These checks also run as
go vet -vettool=$(which mcpkit) [packages]`

// analyzer runs the checks of the source under go vet, which passes one package at a time and only
// the types of its imports.
var analyzer = &analysis.Analyzer{
	Name: "mcpkit",
	Doc:  "check services of mcpkit: annotations, signatures, input fields, doc comments",
	Run: func(pass *analysis.Pass) (any, error) {
		p := &services.Package{
			Path: pass.Pkg.Path(), Fset: pass.Fset, Files: pass.Files, Types: pass.Pkg, Info: pass.TypesInfo, Dirs: map[string]string{}, OneOnly: true,
		}
		if len(pass.Files) > 0 {
			p.Dir = filepath.Dir(pass.Fset.Position(pass.Files[0].Package).Filename)
			p.Dirs[p.Path] = p.Dir
		}
		if err := p.Find(nil); err != nil {
			return nil, err
		}
		for _, d := range vet.Sort(p, vet.Check(p)) {
			pass.Report(analysis.Diagnostic{Pos: d.Pos, Message: d.Message})
		}
		for _, file := range pass.Files {
			if filepath.Base(pass.Fset.Position(file.Package).Filename) != services.GeneratedFile || !p.FindDirs() {
				continue
			}
			if err := vet.Fresh(p); err != nil {
				pass.Report(analysis.Diagnostic{Pos: file.Package, Message: err.Error()})
			}
		}
		return nil, nil
	},
}

// calledByGoVet reports whether the arguments are those of a -vettool.
func calledByGoVet(args []string) bool {
	if len(args) == 0 {
		return false
	}
	flags, last := args[:len(args)-1], args[len(args)-1]
	words := slices.ContainsFunc(flags, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	return args[0] == "-flags" || strings.HasPrefix(args[0], "-V=") || strings.HasSuffix(last, ".cfg") && !words
}

func vetCommand(std streams) *cobra.Command {
	return packagesCommand(std, &cobra.Command{
		Use:   "vet [packages]",
		Short: "report what is wrong with services, and what their tools cost",
		Long:  vetHelp,
	}, func(ctx context.Context, names, patterns []string) error {
		c := checker{names: names, stdout: std.out, stderr: std.err}
		err := c.run(ctx, patterns)
		if err == nil && c.found > 0 {
			return exit(exitFault)
		}
		return err
	})
}

// A checker runs vet over packages.
type checker struct {
	dir            string // "" for the current one
	names          []string
	stdout, stderr io.Writer
	found          int // faults
}

func (c *checker) run(ctx context.Context, patterns []string) error {
	pkgs, err := services.Load(c.dir, patterns)
	faults := []error{err}
	var costs []vet.Cost
	for _, p := range pkgs {
		if err := p.Find(c.names); err != nil {
			faults = append(faults, err)
			continue
		}
		found, cost, err := vet.Start(ctx, c.dir, p)
		faults = append(faults, err)
		costs = append(costs, cost...)
		found = vet.Sort(p, append(found, vet.Check(p)...))
		for _, d := range found {
			fmt.Fprintf(c.stderr, "%s: %s\n", c.short(p.Fset.Position(d.Pos).String()), d.Message)
		}
		c.found += len(found)
		if err := vet.Fresh(p); err != nil {
			fmt.Fprintln(c.stderr, err)
			c.found++
		}
	}
	for _, cost := range costs {
		fmt.Fprintln(c.stdout, costLine(cost))
		for _, name := range cost.Refused {
			fmt.Fprintf(c.stdout, "%s: warning: some clients refuse the tool name %q; %s\n", cost.Service, name, toolname.Advice)
		}
	}
	return errors.Join(faults...)
}

// costLine describes the size of a service's tool definitions. Four bytes are about one token of
// JSON in English.
func costLine(c vet.Cost) string {
	return fmt.Sprintf("%s: %d tools; tools/list is %d bytes, about %d tokens (bytes/4)", c.Service, c.Tools, c.Bytes, (c.Bytes+3)/4)
}

// short makes a place relative to the current directory if that is shorter.
func (c *checker) short(place string) string {
	dir := c.dir
	if dir == "" {
		dir, _ = os.Getwd()
	}
	if rel, err := filepath.Rel(dir, place); err == nil && len(rel) < len(place) {
		return rel
	}
	return place
}
