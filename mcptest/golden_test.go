package mcptest_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcptest"
)

var _ = flag.Bool("update", false, "write golden files and transcripts")

// update sets -update for the time of f.
func update(t *testing.T, f func()) {
	t.Helper()
	before := flag.Lookup("update").Value.String()
	require.NoError(t, flag.Set("update", "true"))
	defer func() { require.NoError(t, flag.Set("update", before)) }()
	f()
}

// docs:begin golden

func TestTheSurfaceIsTheOneThatWasReleased(t *testing.T) {
	mcptest.Golden(t, mcptest.New(t, &Desk{}), "testdata/desk.json")
}

// docs:end golden

func TestGoldenWritesWhatItThenAccepts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "surface.json")
	update(t, func() { mcptest.Golden(t, mcptest.New(t, &Desk{}), file) })
	require.NoError(t, flag.Set("update", "false"))
	mcptest.Golden(t, mcptest.New(t, &Desk{}), file)

	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, name := range []string{`"tools": {`, `"add": {`, `"prompts": {`, `"greet": {`, `"resources": {`, `"desk://rules": {`, `"resourceTemplates": {`, `"note://{id}": {`} {
		require.Contains(t, string(raw), name)
	}

	fresh := filepath.Join(t.TempDir(), "testdata", "surfaces", "desk.json")
	update(t, func() { mcptest.Golden(t, mcptest.New(t, &Desk{}), fresh) })
	mcptest.Golden(t, mcptest.New(t, &Desk{}), fresh)

	said := failures(t, func(tb testing.TB) {
		update(t, func() { mcptest.Golden(tb, mcptest.New(tb, &Desk{}), filepath.Join(file, "not a folder")) })
	})
	require.Len(t, said, 1)
	require.Contains(t, said[0], "mcptest: mkdir ")
}

func TestGoldenReportsWhatDiffers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "surface.json")
	update(t, func() { mcptest.Golden(t, mcptest.New(t, &Desk{}), file) })
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.Replace(raw, []byte(`"name": "add"`), []byte(`"name": "plus"`), 1), 0o600))
	said := failures(t, func(t testing.TB) { mcptest.Golden(t, mcptest.New(t, &Desk{}), file) })
	require.Len(t, said, 1)
	for _, want := range []string{"mcptest: the server differs from " + file + "; -update writes it", `-      "name": "plus",`, `+      "name": "add",`} {
		require.Contains(t, said[0], want)
	}
}

func TestGoldenWantsAFile(t *testing.T) {
	said := failures(t, func(t testing.TB) { mcptest.Golden(t, mcptest.New(t, &Desk{}), "testdata/none.json") })
	require.Equal(t, []string{"mcptest: open testdata/none.json: no such file or directory; -update writes it; the test package needs the flag: var _ = flag.Bool(\"update\", false, \"write golden files\")"}, said)
}
