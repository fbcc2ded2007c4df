package skills_test

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/skills/skillsclient"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

// The code of docs/howto/serve-skills.md.

//go:embed testdata/skills
var testdata embed.FS

var embedded = func() fs.FS {
	folder, err := fs.Sub(testdata, "testdata")
	if err != nil {
		panic(err)
	}
	return folder
}()

// docs:begin library

// Team helps with the work of a team.
type Team struct {
	_ struct {
		CheckMessage mcpkit.Tool `hints:"readonly" params:"message"`
	}
}

// CheckMessage reports whether a commit message is short enough.
func (*Team) CheckMessage(message string) bool { return len(message) <= 72 }

func newTeam() (*mcpkit.Server, error) {
	return mcpkit.New(&Team{}, skills.FS(embedded, skills.Dir("skills")))
}

// docs:end library

// docs:begin load

// load returns the instructions of the skill with the name, and a file that they name.
func load(ctx context.Context, c *client.Client, name, file string) (instructions, text string, err error) {
	for skill, err := range skillsclient.List(ctx, c) {
		if err != nil {
			return "", "", err
		}
		if skill.Name != name {
			continue
		}
		// Here a host asks the user for approval: skill.Files is what the user approves.
		if instructions, err = skill.Load(ctx); err != nil {
			return "", "", err
		}
		read, err := skill.Read(ctx, file)
		return instructions, string(read), err
	}
	return "", "", os.ErrNotExist
}

// docs:end load

func TestSkillsOfTheTeam(t *testing.T) {
	srv, err := newTeam()
	require.NoError(t, err)
	c, err := client.Dial(t.Context(), srv)
	require.NoError(t, err)
	defer c.Close()
	instructions, style, err := load(t.Context(), c, "commit-messages", "references/STYLE.md")
	require.NoError(t, err)
	require.Contains(t, instructions, "# Commit messages")
	require.Contains(t, style, "72 characters")
}

func TestSkillsOfAFolderAreReloaded(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "deploy"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "deploy", "SKILL.md"), []byte(text), 0o600))
	}
	write("---\nname: deploy\ndescription: Deploy\n---\nFirst.\n")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	library := skills.FS(root.FS())
	srv, err := mcpkit.New(&Team{}, library)
	// ... the files change ...
	require.NoError(t, err)
	c, err := client.Dial(t.Context(), srv)
	require.NoError(t, err)
	defer c.Close()
	write("---\nname: deploy\ndescription: Deploy\n---\nSecond.\n")
	require.NoError(t, library.Reload())
	s, err := skillsclient.Get(t.Context(), c, "skill://deploy/SKILL.md")
	require.NoError(t, err)
	text, err := s.Load(t.Context())
	require.NoError(t, err)
	require.Contains(t, text, "Second.")
}

func TestSkillsForStaff(t *testing.T) {
	library := skills.FS(embedded, skills.Dir("skills"), skills.Scopes("staff"))
	srv, err := mcpkit.New(&Team{}, library, mcpkit.Authenticated())
	require.NoError(t, err)
	for scope, want := range map[string]int{"guests": 0, "staff": 1} {
		ctx := oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann", Scopes: []string{scope}})
		c, err := client.Dial(ctx, srv)
		require.NoError(t, err)
		n := 0
		for _, err := range skillsclient.List(ctx, c) {
			require.NoError(t, err)
			n++
		}
		require.NoError(t, c.Close())
		require.Equal(t, want, n)
	}
}
