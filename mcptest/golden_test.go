package mcptest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcptest"
)

func TestGoldenSaysWhatBreaks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	golden := `{
  "add": {"name":"add","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"c":{"type":"integer"}},"required":["c"]}},
  "gone": {"name":"gone","inputSchema":{"type":"object","properties":{}}}
}`
	require.NoError(t, os.WriteFile(file, []byte(golden), 0o600))
	said := failures(t, func(t testing.TB) { mcptest.Golden(t, mcptest.New(t, &Desk{}), file) })
	require.Len(t, said, 1)
	for _, line := range []string{
		`breaking: tool "gone" removed`, `breaking: tool "add": argument "c" removed`, `breaking: tool "add": argument "a" is required now`,
		`breaking: tool "add": argument "b" added, and required`,
		"breaking?: tool \"add\": annotations changed\n  was: {\"readOnlyHint\":true}\n  is:  (none)", `additive: tool "pair" added`,
	} {
		require.Contains(t, said[0], line+"\n")
	}
}

func TestGoldenWantsAFile(t *testing.T) {
	said := failures(t, func(t testing.TB) { mcptest.Golden(t, mcptest.New(t, &Desk{}), "testdata/none.json") })
	require.Equal(t, []string{"mcptest: open testdata/none.json: no such file or directory; -update writes it"}, said)
}
