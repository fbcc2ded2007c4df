package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPublicPackagesHaveExamples checks that each package that users import has an Example.
func TestPublicPackagesHaveExamples(t *testing.T) {
	checked := 0
	for _, p := range list(t, "./...") {
		path, _ := local(p.ImportPath)
		first, _, _ := strings.Cut(path, "/")
		switch {
		case p.Name == "main", strings.Contains("/"+path+"/", "/internal/"), first == "examples", first == "conformance", first == "interop", first == "scripts":
			continue
		}
		require.True(t, hasExample(t, filepath.Join(root(t), path)), "%s has no Example", path)
		checked++
	}
	require.Greater(t, checked, 25)
}

func hasExample(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "\nfunc Example") {
			return true
		}
	}
	return false
}
