package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/vet"
	"github.com/mcpkit/mcpkit-go/internal/naming"
)

const vetHelp = `Reports the startup errors of the services of the packages (default: the
current one): unknown tags and values, entries of methods that do not exist,
signatures and input fields that do not fit. Vet builds each package with one
added file, which registers the services and ends the program. The imports of
the package are initialized; its own variables, main and Start do not run.
Last, vet prints what tools/list of each service costs a model, in tokens, and
warns of tool names that some clients refuse.

Vet also reports methods and fields without a description, a stale
` + services.GeneratedFile + `, and fields whose values come from constants that only
that file tells a program without its source.`

func vetCommand(std streams) *cobra.Command {
	return packagesCommand(std, &cobra.Command{
		Use:   "vet [packages]",
		Short: "Report what is wrong with services, and what their tools cost",
		Long:  vetHelp,
	}, func(ctx context.Context, patterns []string) error {
		c := checker{stdout: std.out, stderr: std.err}
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
	stdout, stderr io.Writer
	found          int // faults
}

func (c *checker) run(ctx context.Context, patterns []string) error {
	pkgs, err := services.Load(c.dir, patterns)
	faults := []error{err}
	var costs []vet.Cost
	for _, p := range pkgs {
		p.Find()
		found, cost, err := vet.Start(ctx, c.dir, p)
		faults = append(faults, err)
		costs = append(costs, cost...)
		found = vet.Sort(p, append(found, vet.Check(p)...))
		for _, d := range found {
			fmt.Fprintf(c.stderr, "%s: %s\n", c.short(p.Fset.Position(d.Pos).String()), d.Message)
		}
		c.found += len(found)
		if _, err := os.Stat(filepath.Join(p.Dir, services.GeneratedFile)); err != nil {
			continue
		}
		if _, err := (&generator{check: true, stdout: c.stdout}).file(p); err != nil {
			fmt.Fprintln(c.stderr, err)
			c.found++
		}
	}
	for _, cost := range costs {
		fmt.Fprintln(c.stdout, costLine(cost))
		for _, name := range cost.Refused {
			fmt.Fprintf(c.stdout, "%s: warning: some clients refuse the tool name %q; %s\n", cost.Service, name, naming.Advice)
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
