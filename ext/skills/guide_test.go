package skills_test

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

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
		OnDuty       mcpkit.Skip // is not a tool
	}
	today func() time.Time
}

// CheckMessage reports whether a commit message is short enough.
func (*Team) CheckMessage(message string) bool { return len(message) <= 72 }

// OnDuty returns the text of a skill, which differs from day to day.
func (t *Team) OnDuty(context.Context) (string, error) {
	who := []string{"Ada", "Grace", "Barbara"}[t.today().YearDay()%3]
	return "Ask " + who + " before you deploy.\n", nil
}

// newLibrary returns the skills of the team: those of a folder, and one that a method makes.
func newLibrary(t *Team) *skills.Library {
	return skills.Join(
		skills.FS(embedded, skills.Dir("skills")),
		skills.Func("deploy", "Deploy to production. Says who is on duty.", t.OnDuty),
	)
}

// docs:end library

// docs:begin load

// load returns the instructions of the skill with the name, and a file that they name.
func load(ctx context.Context, c *client.Client, name, file string) (instructions, text string, err error) {
	for skill, err := range skillsclient.List(ctx, c) {
		if err != nil {
			return "", "", err
		}
		if skill.Name() != name {
			continue
		}
		// Here a host asks the user for approval: skill.Files() is what the user approves.
		loaded, err := skill.Load(ctx)
		if err != nil {
			return "", "", err
		}
		read, err := loaded.Read(ctx, file)
		return loaded.Text(), string(read), err
	}
	return "", "", os.ErrNotExist
}

// docs:end load

func TestSkillsOfTheTeam(t *testing.T) {
	team := &Team{today: func() time.Time { return time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC) }}
	srv, err := mcpkit.New(team, newLibrary(team), mcpkit.Name("team", "1.0.0"))
	require.NoError(t, err)
	c, err := client.Dial(t.Context(), srv)
	require.NoError(t, err)
	defer c.Close()
	instructions, style, err := load(t.Context(), c, "commit-messages", "references/STYLE.md")
	require.NoError(t, err)
	require.Contains(t, instructions, "# Commit messages")
	require.Contains(t, style, "72 characters")

	deploy, err := skillsclient.Get(t.Context(), c, "skill://deploy/SKILL.md")
	require.NoError(t, err)
	require.True(t, deploy.Dynamic())
	loaded, err := deploy.Load(t.Context())
	require.NoError(t, err)
	require.Contains(t, loaded.Text(), "Ask Ada before you deploy.")
}

func TestSkillsOfAFolderAreReloaded(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "deploy"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "deploy", "SKILL.md"), []byte(text), 0o600))
	}
	write("---\nname: deploy\ndescription: Deploy\n---\nFirst.\n")
	// docs:begin reload
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	library := skills.FS(root.FS())
	srv, err := mcpkit.New(&Team{}, library)
	// ... the files change ...
	// docs:end reload
	require.NoError(t, err)
	c, err := client.Dial(t.Context(), srv)
	require.NoError(t, err)
	defer c.Close()
	write("---\nname: deploy\ndescription: Deploy\n---\nSecond.\n")
	require.NoError(t, library.Reload())
	s, err := skillsclient.Get(t.Context(), c, "skill://deploy/SKILL.md")
	require.NoError(t, err)
	loaded, err := s.Load(t.Context())
	require.NoError(t, err)
	require.Contains(t, loaded.Text(), "Second.")
}

func TestSkillsForStaff(t *testing.T) {
	// docs:begin scopes
	library := skills.Join(
		skills.FS(embedded, skills.Dir("skills")),
		skills.FS(embedded, skills.Dir("skills"), skills.Prefix("staff"), skills.Scopes("staff")),
	)
	srv, err := mcpkit.New(&Team{}, library, mcpkit.Authenticated())
	// docs:end scopes
	require.NoError(t, err)
	for _, test := range []struct {
		principal *oauth.Principal
		want      int
	}{{nil, 1}, {&oauth.Principal{Subject: "ann"}, 1}, {&oauth.Principal{Subject: "bob", Scopes: []string{"staff"}}, 2}} {
		ctx := t.Context()
		if test.principal != nil {
			ctx = oauth.NewContext(ctx, test.principal)
		}
		c, err := client.Dial(ctx, srv)
		require.NoError(t, err)
		n := 0
		for _, err := range skillsclient.List(ctx, c) {
			require.NoError(t, err)
			n++
		}
		require.NoError(t, c.Close())
		require.Equal(t, test.want, n)
	}
}
