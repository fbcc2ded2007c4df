package main

import (
	"context"
	"os"
	"path"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Go runs the go tool in the module of the directory.
type Go struct {
	_ struct {
		Build mcpkit.Tool `title:"Build packages" hints:"readonly"`
		Vet   mcpkit.Tool `title:"Vet packages" hints:"readonly"`
		Test  mcpkit.Tool `title:"Test packages" hints:"open-world" timeout:"10m"`
	}
	dir string
}

// PackagesInput selects packages.
type PackagesInput struct {
	// Packages of the module: "./..." is all of them, "./store" the one in that directory.
	Packages []string `json:"packages,omitempty" validate:"max=50" default:"[\"./...\"]"`
}

// A Report is the result of a run of the go tool.
type Report struct {
	// Whether the run succeeded.
	OK bool `json:"ok"`
	Output
	// The duration in seconds.
	Seconds float64 `json:"seconds"`
}

// Build compiles packages and reports the errors.
func (g *Go) Build(ctx context.Context, call *mcpkit.Call, in PackagesInput) (Report, error) {
	// Otherwise go build leaves the program of a single package in the directory.
	return g.run(ctx, call, in.Packages, "build", "-o", os.DevNull)
}

// Vet searches packages for likely mistakes.
func (g *Go) Vet(ctx context.Context, call *mcpkit.Call, in PackagesInput) (Report, error) {
	return g.run(ctx, call, in.Packages, "vet")
}

// TestInput selects tests.
type TestInput struct {
	PackagesInput
	// Only tests whose name matches this regular expression.
	Run string `json:"run,omitempty" example:"^TestAdd$"`
	// Detect data races. This is slower.
	Race bool `json:"race,omitempty"`
}

// docs:begin test

// Test runs the tests of packages. A failed test is not a tool error: the report contains it.
func (g *Go) Test(ctx context.Context, call *mcpkit.Call, in TestInput) (Report, error) {
	args := []string{"test"}
	if in.Run != "" {
		args = append(args, "-run="+in.Run)
	}
	if in.Race {
		args = append(args, "-race")
	}
	return g.run(ctx, call, in.Packages, args...)
}

// docs:end test

// docs:begin progress

// run runs the go tool. It reports each line of output as progress.
func (g *Go) run(ctx context.Context, call *mcpkit.Call, packages []string, args ...string) (Report, error) {
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	for _, p := range packages {
		if err := withinModule(p); err != nil {
			return Report{}, err
		}
	}
	start, lines := time.Now(), 0.0
	out, err := command{dir: g.dir, name: "go", args: append(args, packages...), line: func(text string) {
		lines++
		call.Progress(lines, 0, text)
	}}.run(ctx)
	return Report{OK: err == nil && out.ExitCode == 0, Output: out, Seconds: time.Since(start).Seconds()}, err
}

// docs:end progress

// withinModule refuses patterns that do not name packages of the module: options, other modules,
// files, and paths above the root.
func withinModule(pattern string) error {
	ok := pattern == "." || strings.HasPrefix(pattern, "./")
	for part := range strings.SplitSeq(pattern, "/") {
		ok = ok && part != ".."
	}
	if !ok || strings.ContainsAny(pattern, "\\@=\x00") || path.Ext(pattern) == ".go" {
		return mcpkit.Errorf(`%q is no package of this module; write for example "./..." or "./store"`, pattern)
	}
	return nil
}
