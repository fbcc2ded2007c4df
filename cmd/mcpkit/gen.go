package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/gen"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

func genCommand(std streams) *cobra.Command {
	g := &generator{stdout: std.out}
	cmd := packagesCommand(std, &cobra.Command{
		Use:   "gen [packages]",
		Short: "Write the doc comments of services into their packages",
		Long: `Writes ` + services.GeneratedFile + ` into each of the packages (default: the current
one) that has services: structs with an annotation block or an Info field, and
structs passed to mcpkit. The file holds the doc comments that clients see, so
that a program has them without its source, and the signatures of the methods,
so that the build fails if one of them changes.`,
	}, func(_ context.Context, patterns []string) error { return g.run(patterns) })
	cmd.Flags().BoolVar(&g.check, "check", false, "write nothing; fail if a file is stale")
	return cmd
}

// A generator runs gen over packages.
type generator struct {
	dir    string // "" for the current one
	check  bool
	stdout io.Writer
}

func (g *generator) run(patterns []string) error {
	pkgs, err := services.Load(g.dir, patterns)
	faults := []error{err}
	found := 0
	for _, p := range pkgs {
		p.Find()
		n, err := g.file(p)
		found += n
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if found == 0 {
		return fmt.Errorf("%s has no service: no struct with an annotation block or an Info field, and none that is passed to mcpkit",
			strings.Join(patterns, " "))
	}
	return nil
}

// file writes or checks the file of a package whose services are found. It returns their number.
func (g *generator) file(p *services.Package) (int, error) {
	for _, pos := range p.Unknown {
		fmt.Fprintf(g.stdout, "%s: the source does not show the function; a built program may not describe its arguments\n", p.Fset.Position(pos))
	}
	want, err := gen.File(p)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.Path, err)
	}
	path := filepath.Join(p.Dir, services.GeneratedFile)
	have, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	found := len(p.Services) + len(p.Functions)
	switch {
	case gen.Same(have, want):
		return found, nil
	case g.check && have == nil:
		return found, fmt.Errorf("%s has no %s; run go generate, or mcpkit gen %[1]s", p.Path, services.GeneratedFile)
	case g.check:
		return found, fmt.Errorf("%s: %s is stale; run go generate, or mcpkit gen %[1]s", p.Path, services.GeneratedFile)
	case want == nil && !bytes.HasPrefix(have, []byte(gen.Header)):
		return found, nil // a file that gen did not write
	case want == nil:
		fmt.Fprintf(g.stdout, "removed %s\n", path)
		return found, os.Remove(path)
	}
	fmt.Fprintf(g.stdout, "wrote %s\n", path)
	return found, os.WriteFile(path, want, 0o644)
}
