package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/vet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/protocol"
)

const vetHelp = `Reports the startup errors of the services of the packages (default: the
current one): unknown tags and values, entries of methods that do not exist,
signatures and input fields that do not fit. Vet builds each package with one
added file, which registers the services and ends the program. The imports of
the package are initialized; its own variables, main and Start do not run.
Last, vet prints what the tools of each service cost a model, in tokens, and
warns of names and inputs that some clients refuse.

Vet also reports methods and fields without a description, a stale
` + services.GeneratedFile + `, and fields whose values come from constants that only
that file tells a program without its source. It notes fields without a json
tag.`

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
	var all []vet.Listed
	for _, p := range pkgs {
		p.Find()
		found, listed, err := vet.Start(ctx, c.dir, p)
		faults = append(faults, err)
		all = append(all, listed...)
		found = vet.Sort(p, append(found, vet.Check(p)...))
		for _, d := range found {
			to, note := c.stderr, ""
			if d.Note {
				to, note = c.stdout, "note: "
			} else {
				c.found++
			}
			fmt.Fprintf(to, "%s: %s%s\n", c.short(p.Fset.Position(d.Pos).String()), note, d.Message)
		}
		if _, err := os.Stat(filepath.Join(p.Dir, services.GeneratedFile)); err != nil {
			continue
		}
		if _, err := (&generator{check: true, stdout: c.stdout}).file(p); err != nil {
			fmt.Fprintln(c.stderr, err)
			c.found++
		}
	}
	for _, l := range all {
		fmt.Fprintf(c.stdout, "%s: %s\n", l.Service, costOf(l.Tools))
		for _, tool := range l.Tools {
			fmt.Fprintf(c.stdout, "%7d  %s\n", tokens(tool), tool.Name)
			for _, why := range refusals(tool) {
				fmt.Fprintf(c.stdout, "%s: warning: %s\n", l.Service, why)
			}
		}
	}
	return errors.Join(faults...)
}

// tokens estimates what a tool costs a model, to which clients send its name, description and input:
// four bytes are about one token of JSON in English.
func tokens(t *protocol.Tool) int {
	text, _ := jsonx.Marshal(protocol.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}) // it came as JSON
	return (len(text) + 3) / 4
}

// costOf describes what tools cost a model.
func costOf(tools []*protocol.Tool) string {
	sum := 0
	for _, t := range tools {
		sum += tokens(t)
	}
	return fmt.Sprintf("%d tools cost a model about %d tokens (their names, descriptions and inputs as JSON, bytes/4)", len(tools), sum)
}

// refusals says why some clients, or the APIs of their models, refuse a whole list for a tool.
func refusals(t *protocol.Tool) (all []string) {
	if !naming.Portable(t.Name) {
		all = append(all, fmt.Sprintf("some clients refuse the tool name %q; %s", t.Name, naming.Advice))
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "not"} {
		if jsonx.Member(t.InputSchema, key) != nil {
			all = append(all, fmt.Sprintf("some clients refuse the tool %q for %s at the root of its input; move it to a property", t.Name, key))
		}
	}
	for name := range jsonx.Members(jsonx.Member(t.InputSchema, "properties")) {
		if arg := jsonx.String(name); !naming.Portable(strings.ReplaceAll(arg, ".", "_")) {
			all = append(all, fmt.Sprintf("some clients refuse the argument name %q of the tool %q; %s", arg, t.Name, naming.Advice))
		}
	}
	return all
}

// short makes a place relative to the current directory if that is shorter.
func (c *checker) short(place string) string {
	dir, _ := filepath.Abs(c.dir)
	if rel, err := filepath.Rel(dir, place); err == nil && len(rel) < len(place) {
		return rel
	}
	return place
}
