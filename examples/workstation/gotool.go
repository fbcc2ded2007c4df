package main

import (
	"context"
	"path"
	"strings"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Go runs the go tool in the module of the directory.
type Go struct {
	_ struct {
		Test mcpkit.Tool `title:"Test packages" hints:"open-world" timeout:"10m"`
	}
	dir string
}

// TestInput selects tests.
type TestInput struct {
	// Packages of the module: "./..." is all of them, "./store" the one in that directory.
	Packages []string `json:"packages,omitempty" validate:"min=1,max=50" default:"[\"./...\"]"`
	// Only tests whose name matches this regular expression.
	Run string `json:"run,omitempty" default:"." example:"^TestAdd$"`
}

// Test runs the tests of packages. It reports the output as progress. A failed test is not a tool
// error: the output contains it.
func (g *Go) Test(ctx context.Context, call *mcpkit.Call, in TestInput) (Output, error) {
	for _, p := range in.Packages {
		if err := withinModule(p); err != nil {
			return Output{}, err
		}
	}
	lines := 0.0
	test := command{dir: g.dir, name: "go", args: append([]string{"test", "-run=" + in.Run}, in.Packages...)}
	test.line = func(text string) {
		lines++
		call.Progress(lines, 0, text)
	}
	return test.run(ctx)
}

// withinModule refuses patterns that do not name packages of the module: options, other modules,
// files, and paths above the root.
func withinModule(pattern string) error {
	ok := pattern == "." || strings.HasPrefix(pattern, "./")
	for part := range strings.SplitSeq(pattern, "/") {
		ok = ok && part != ".."
	}
	if !ok || strings.ContainsAny(pattern, "\\@=\x00") || path.Ext(pattern) == ".go" {
		return mcpkit.Errorf(`%q is not a package of this module; write for example "./..." or "./store"`, pattern)
	}
	return nil
}
