package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/skills/skillsclient"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

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
	srv, err := mcpkit.New(team, newLibrary(team))
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

	faults, err := client.Call[[]string](t.Context(), c, "check_message", map[string]string{"message": "Add a limit."})
	require.NoError(t, err)
	require.Equal(t, []string{"the first line ends with a full stop"}, faults)
	tools := 0
	for range c.Tools(t.Context()) {
		tools++
	}
	require.Equal(t, 1, tools, "OnDuty is not a tool")
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
		skills.FS(files, skills.Dir("skills")),
		skills.FS(files, skills.Dir("skills"), skills.Prefix("staff"), skills.Scopes("staff")),
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
