package archtest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// needTestingT are the packages whose functions take a *testing.T, which an example that runs does
// not have. Theirs are compiled.
var needTestingT = []string{"mcptest", "mcptest/browser", "transport/transporttest"}

// TestPublicPackagesHaveExamples checks that each package that users import, in all modules, has an
// example that go test runs.
func TestPublicPackagesHaveExamples(t *testing.T) {
	tests, packages := map[string][]*ast.File{}, map[string]bool{}
	for _, path := range goFiles(t) {
		name, err := filepath.Rel(root(t), path)
		require.NoError(t, err)
		folder := filepath.ToSlash(filepath.Dir(name))
		if !isPublic(folder) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		switch {
		case strings.HasSuffix(path, "_test.go"):
			tests[folder] = append(tests[folder], file)
		case file.Name.Name != "main":
			packages[folder] = true
		}
	}
	for folder := range packages {
		examples := doc.Examples(tests[folder]...)
		require.NotEmpty(t, examples, "%s has no Example", folder)
		runs := slices.ContainsFunc(examples, func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput })
		require.True(t, runs || slices.Contains(needTestingT, folder), "no Example of %s has an output, so none runs", folder)
	}
	for _, folder := range append(slices.Clip(needTestingT), "fleet/natsfleet") {
		require.True(t, packages[folder], "%s is not there", folder)
	}
	require.Greater(t, len(packages), 35)
}

// isPublic reports whether users import the package in a folder.
func isPublic(folder string) bool {
	for part := range strings.SplitSeq(folder, "/") {
		if part == "internal" || part == "testdata" {
			return false
		}
	}
	first, _, _ := strings.Cut(folder, "/")
	return !slices.Contains([]string{"cmd", "docs", "examples"}, first)
}
