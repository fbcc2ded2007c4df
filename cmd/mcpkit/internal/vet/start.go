package vet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/gen"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/toolname"
)

// startFile is what Start adds to a package, in memory of the go command alone. Its name comes
// first, so that its variable does.
const startFile = "0mcpkit_vet.go"

// patience is how long the packages that the package imports may take to be initialized.
const patience = time.Minute

// Start builds the package p with a file more, one that registers its services, runs that, and
// returns the faults that a start of the server would report and what the tools cost. dir is where
// the go command runs; "" is the current directory. The error is that of a package that does not
// build, or does not come to its first variable.
func Start(ctx context.Context, dir string, p *services.Package) ([]Diagnostic, []Cost, error) {
	list := slices.DeleteFunc(slices.Clone(p.Services), func(s *services.Service) bool { return !gen.CanStart(p, s) })
	if len(list) == 0 {
		return nil, nil, nil
	}
	temp, err := os.MkdirTemp("", "mcpkit-*")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	started, err := start(ctx, dir, temp, p, list)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	var found []Diagnostic
	var costs []Cost
	for i, s := range list {
		faults := slices.DeleteFunc(started[i].Faults, func(f gen.Fault) bool {
			return p.OwnRules && strings.Contains(f.Msg, "unknown rule") // one that the program teaches its validator
		})
		for _, f := range faults {
			text := f.Msg
			if f.Site != "" {
				text = f.Site + ": " + f.Msg
			}
			found = append(found, Diagnostic{place(p, s, f.Site), text})
		}
		if len(started[i].Faults) > 0 {
			continue
		}
		var tools []struct{ Name string }
		if err := json.Unmarshal(started[i].Tools, &tools); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.Path, err)
		}
		cost := Cost{Service: p.Path + "." + s.Type.Obj().Name(), Tools: len(tools), Bytes: len(started[i].Tools)}
		for _, tool := range tools {
			if !toolname.Portable(tool.Name) {
				cost.Refused = append(cost.Refused, tool.Name)
			}
		}
		costs = append(costs, cost)
	}
	return found, costs, nil
}

// start builds and runs the program, with files of its own in temp.
func start(ctx context.Context, dir, temp string, p *services.Package, list []*services.Service) ([]gen.Started, error) {
	result, program, overlay := filepath.Join(temp, "result.json"), filepath.Join(temp, "vet.exe"), filepath.Join(temp, "overlay.json")
	source, err := gen.Start(p, list, result)
	if err != nil {
		return nil, err
	}
	// The generated file may be what no longer compiles, and the comments are to be those of the
	// source.
	replace := map[string]string{filepath.Join(p.Dir, services.GeneratedFile): ""}
	add := func(name, file string, text []byte) error {
		replace[name] = filepath.Join(temp, file)
		return os.WriteFile(replace[name], text, 0o600)
	}
	if err := add(filepath.Join(p.Dir, startFile), "start.go", source); err != nil {
		return nil, err
	}
	target := []string{p.Path}
	switch {
	case p.Path == "command-line-arguments": // files were named, instead of a package
		target = []string{filepath.Join(p.Dir, startFile)}
		for _, f := range p.Files {
			if name := p.Fset.Position(f.Package).Filename; filepath.Base(name) != services.GeneratedFile {
				target = append(target, name)
			}
		}
	case p.Types.Name() != "main":
		const main = "mcpkit_vet_main"
		target[0] += "/" + main
		text := fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", p.Path)
		if err := add(filepath.Join(p.Dir, main, "main.go"), "main.go", []byte(text)); err != nil {
			return nil, err
		}
	}
	encoded, _ := json.Marshal(map[string]any{"Replace": replace}) // strings encode
	if err := os.WriteFile(overlay, encoded, 0o600); err != nil {
		return nil, err
	}
	// Comments are found beside the source, whose place -trimpath would hide. Symbols for debuggers
	// take time.
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-overlay=" + overlay, "-o", program, "-trimpath=false", "-ldflags=-s -w"}, target...)...)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("it does not build with its services registered: %w\n%s", err, bytes.TrimSpace(out))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	run := exec.CommandContext(ctx, program)
	run.Dir = dir
	out, err := run.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("registering its services failed: %w\n%s", err, bytes.TrimSpace(out))
	}
	data, err := os.ReadFile(result)
	if err != nil {
		return nil, fmt.Errorf("a package that it imports ended the program: %w\n%s", err, bytes.TrimSpace(out))
	}
	var started []gen.Started
	if err := json.Unmarshal(data, &started); err != nil {
		return nil, err
	}
	if len(started) != len(list) {
		return nil, fmt.Errorf("%d services were registered, of %d", len(started), len(list))
	}
	return started, nil
}
