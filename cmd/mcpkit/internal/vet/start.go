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
)

// startFile is the file that Start adds to a package with -overlay; it is not written to disk. Its
// name sorts first, so that its variable is initialized first.
const startFile = "0mcpkit_vet.go"

// startTimeout is how long the initialization of the imported packages may take.
const startTimeout = time.Minute

// Start builds the package p with a file that registers its services, runs the program, and returns
// the startup errors and the tools. dir is the directory of the go command; "" means
// the current directory. Start returns an error if the package does not build, or if the program
// ends before it registers the services.
func Start(ctx context.Context, dir string, p *services.Package) ([]Diagnostic, []Listed, error) {
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
	var all []Listed
	for i, s := range list {
		faults := slices.DeleteFunc(started[i].Faults, func(f gen.Fault) bool {
			return p.OwnRules && strings.Contains(f.Msg, "unknown rule") // the program's own validator may have it
		})
		for _, f := range faults {
			text := f.Msg
			if f.Site != "" {
				text = f.Site + ": " + f.Msg
			}
			found = append(found, Diagnostic{Pos: place(p, s, f.Site), Message: text})
		}
		if len(started[i].Faults) > 0 {
			continue
		}
		listed := Listed{Service: p.Path + "." + s.Type.Obj().Name()}
		if err := json.Unmarshal(started[i].Tools, &listed.Tools); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.Path, err)
		}
		all = append(all, listed)
	}
	return found, all, nil
}

// start builds and runs the program, with its files in temp.
func start(ctx context.Context, dir, temp string, p *services.Package, list []*services.Service) ([]gen.Started, error) {
	result, program := filepath.Join(temp, "result.json"), filepath.Join(temp, "vet.exe")
	source, err := gen.Start(p, list, result)
	if err != nil {
		return nil, err
	}
	// The generated file may not compile any longer, and the descriptions should come from the
	// source.
	replace := map[string]string{filepath.Join(p.Dir, services.GeneratedFile): ""}
	add := func(name, file string, text []byte) error {
		replace[name] = filepath.Join(temp, file)
		return os.WriteFile(replace[name], text, 0o600)
	}
	if err := add(filepath.Join(p.Dir, startFile), "start.go", source); err != nil {
		return nil, err
	}
	target := p.Path
	if p.Types.Name() != "main" {
		const main = "mcpkit_vet_main"
		target += "/" + main
		text := fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", p.Path)
		if err := add(filepath.Join(p.Dir, main, "main.go"), "main.go", []byte(text)); err != nil {
			return nil, err
		}
	}
	overlay, err := services.Overlay(temp, replace)
	if err != nil {
		return nil, err
	}
	// Without -trimpath, the program finds its source and thereby its comments. Symbols for
	// debuggers take time.
	build := services.Go(ctx, "build", overlay, "-o", program, "-trimpath=false", "-ldflags=-s -w", target)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("it does not build with its services registered: %w\n%s", err, bytes.TrimSpace(out))
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
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
		return nil, fmt.Errorf("an imported package ended the program: %w\n%s", err, bytes.TrimSpace(out))
	}
	var started []gen.Started // of each service in the list
	err = json.Unmarshal(data, &started)
	return started, err
}
