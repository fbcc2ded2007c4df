package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/vet"
	"github.com/mcpkit/mcpkit-go/internal/toolname"
)

const vetUsage = `vet [flags] [packages]

Reports, for the services of the packages (the current one when none is given), what a start of the server would: unknown tags
and words, entries of methods that do not exist, signatures and input fields that do not fit. For this it builds each package with
a small file more, which registers the services and ends the program: the packages that it imports are initialized, but neither its
own variables nor main or Start run. In the end it prints what tools/list costs a model, in tokens, for each service, and warns of
names of tools that some clients refuse.

It also reports what a start does not: methods and fields without a description, a ` + services.GeneratedFile + ` that is stale,
tools that sound as if they did harm and have no hints, methods that change something before they ask without mcpkit.Once (told by names:
not all are found), errors of Serve and Register that nobody looks at. These checks, which read the source alone, also run as:
go vet -vettool=$(which mcpkit) [packages]`

// analyzer is vet for go vet, which gives it one package at a time, and the types alone of those that it imports.
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
	return args[0] == "-flags" || strings.HasPrefix(args[0], "-V=") || strings.HasSuffix(args[len(args)-1], ".cfg")
}

// runVet is the command vet.
func runVet(ctx context.Context, args []string, std streams) int {
	flags := flag.NewFlagSet("vet", flag.ContinueOnError)
	names := flags.String("type", "", "`names` of further structs that are services, with commas between; they are looked for in each package")
	if code, ok := parse(flags, vetUsage, args, std.err); !ok {
		return code
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	c := checker{stdout: std.out, stderr: std.err}
	if *names != "" {
		c.names = strings.Split(*names, ",")
	}
	if err := c.run(ctx, patterns); err != nil {
		fmt.Fprintf(std.err, "mcpkit vet: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nmcpkit vet: "))
		return exitFault
	}
	if c.found > 0 {
		return exitFault
	}
	return exitOK
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

// costLine says what the definitions of a service's tools cost. A quarter of the bytes is about right for JSON in English.
func costLine(c vet.Cost) string {
	return fmt.Sprintf("%s: %d tools; tools/list is %d bytes, about %d tokens (bytes/4)", c.Service, c.Tools, c.Bytes, (c.Bytes+3)/4)
}

// short names a place from the current directory, where that is shorter.
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
