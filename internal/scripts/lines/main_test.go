package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesFilesNamesAndFields(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"pub/a.go": `// Package pub has a comment.
package pub

/* a comment
over lines */ import "fmt"

// T has fields.
type T struct {
	A, b int // two
	fmt.Stringer
}

func (t *T) M()        {}
func (t *T) m()        {}
func (u hidden) M()    {}
func (g *G[K, V]) Do() {}

type G[K, V any] struct{}
type hidden struct{ x, y, z, w int }

const raw = ` + "`one\n\n// two\nthree`" + `
`,
		"pub/a_test.go":        "package pub\n\nfunc Helper() {}\n",
		"pub/testdata/x.go":    "not Go",
		"pub/internal/in/x.go": "package in\n\nfunc Exported() {}\n",
		"cmd/x/main.go":        "package main\n\nfunc Exported() {}\nfunc main() {}\n",
		"examples/x/main.go":   "package main\n",
		".cache/x.go":          "not Go",
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
	var out strings.Builder
	require.NoError(t, run(dir, &out))
	require.Equal(t, strings.TrimPrefix(`
  lines  files  exported  top package
      3      1         0          cmd
     18      2         4          pub
     21      3         4        total

  lines  files  exported          package
      3      1         0            cmd/x
     16      1         4              pub
      2      1         0  pub/internal/in

  fields      struct
       4  pub.hidden
       3       pub.T
       0       pub.G
`, "\n"), out.String())
}

func TestUnreadableCodeIsAnError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte("no Go"), 0o644))
	require.ErrorContains(t, run(dir, &strings.Builder{}), "expected 'package'")
}
