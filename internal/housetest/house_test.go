package housetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for path, p := range ours(t) {
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "" // a program may begin as it likes
		}
		if p.Doc == "" || !strings.HasPrefix(p.Doc, want) {
			t.Errorf("package %s needs a doc comment that begins with %q; it has %q", path, want, p.Doc)
		}
	}
}

// goFiles returns the Go files that git knows, or will know, of this repository.
func goFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.go")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git does not list the files of this source tree: %v %s", err, stderr.String())
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		file := filepath.Join(root, name)
		if _, err := os.Stat(file); err == nil { // not one that is deleted but still in the index
			files = append(files, file)
		}
	}
	require.NotEmpty(t, files)
	return files
}
