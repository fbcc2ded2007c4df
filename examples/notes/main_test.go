package main

import (
	"flag"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/internal/longtest"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

var _ = flag.Bool("update", false, "update the responses in the transcripts")

// asProgram makes the test binary run as the program.
const asProgram = "NOTES_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	leaktest.VerifyTestMain(m)
}

// serve starts a server and returns its URL.
func serve(t *testing.T) string {
	srv, err := newServer(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	handler := streamable.NewHandler(srv, nil)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		server.Close()
		require.NoError(t, srv.Close())
	})
	return server.URL
}

// The transcripts contain the messages of client and server, in one folder for each family of
// versions.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.ToSlash(file), func(t *testing.T) {
			srv, err := newServer(slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			defer srv.Close()
			mcptest.New(t, srv).Replay(file)
		})
	}
}

func TestNotesAreAddedFoundAndDeleted(t *testing.T) {
	for _, version := range []string{rawclient.Legacy, rawclient.Modern} {
		t.Run(version, func(t *testing.T) {
			c := rawclient.HTTP(t, version, serve(t))
			require.Equal(t, "kept tea", c.CallTool("add", `{"id":"tea","text":"Green tea: 80 degrees"}`).Text())
			again := c.CallTool("add", `{"id":"tea","text":"x"}`)
			require.True(t, again.IsError)
			require.Equal(t, `there is a note "tea" already; choose another id`, again.Text())

			// The structured content depends on the version, the text does not.
			require.Contains(t, c.CallTool("search", `{"query":"tea GREEN"}`).Text(), `{"id":"tea","text":"Green tea: 80 degrees"}`)
			require.NotContains(t, c.CallTool("search", `{"query":"coffee"}`).Text(), "tea")

			require.False(t, c.CallTool("delete", `{"id":"tea"}`).IsError)
			require.NotContains(t, c.CallTool("search", `{"query":"tea"}`).Text(), "Green")
		})
	}
}

func TestSearch(t *testing.T) {
	s := mcptest.New(t, NewNotes())
	s.Call("add", AddInput{ID: "tea", Text: "Green tea"}).OK()
	s.Call("search", SearchInput{Query: "green"}).OK().JSON(`[{"id": "tea", "text": "Green tea"}]`)
}

func TestStdio(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, version := range []string{rawclient.Legacy, rawclient.Modern} {
		t.Run(version, func(t *testing.T) {
			cmd := exec.Command(self)
			cmd.Env = append(cmd.Environ(), asProgram+"=1")
			c := rawclient.Stdio(t, version, cmd)
			require.Contains(t, c.CallTool("search", `{"query":"first"}`).Text(), "This is your first note.")
		})
	}
}

func TestDescriptionsAreInTheProgram(t *testing.T) {
	longtest.Mark(t, "builds the program")
	program := filepath.Join(t.TempDir(), "notes")
	here, err := os.Getwd()
	require.NoError(t, err)
	// Hide the source from the program. The flag -trimpath would do so, too, but compiles the
	// standard library again.
	out, err := exec.Command("go", "build", "-gcflags=-trimpath="+here+"=>/elsewhere", "-ldflags=-s -w", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	binary, err := os.ReadFile(program)
	require.NoError(t, err)
	require.Contains(t, string(binary), "/elsewhere/notes.go")
	require.NotContains(t, string(binary), here+"/notes.go")
	cmd := exec.Command(program)
	cmd.Dir = t.TempDir()
	list := string(rawclient.Stdio(t, rawclient.Modern, cmd).Request("tools/list", `{}`).Result)
	require.Contains(t, list, `"description":"Finds the notes that contain every word of the query."`)
	require.Contains(t, list, `"description":"How many hits to return."`)
}
