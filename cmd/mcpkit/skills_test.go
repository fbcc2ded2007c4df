package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// serveSkills serves two skills over HTTP, with middleware, and returns the URL.
func serveSkills(t *testing.T, mw ...mcpkit.Middleware) string {
	t.Helper()
	srv, err := mcpkit.New(nil, skills.Join(
		skills.FS(fstest.MapFS{
			"pdf/SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Fill forms\n---\n")},
			"pdf/x.md":     {Data: []byte("Fill.\n")},
		}),
		skills.Func("day", "Report", func(context.Context) (string, error) { return "Today.", nil }),
	))
	require.NoError(t, err)
	srv.Use(mw...)
	h := streamable.NewHandler(srv, nil)
	web := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); web.Close() })
	return web.URL
}

func TestSkillsAreCompared(t *testing.T) {
	url := serveSkills(t)
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"skills", url}, streams{out: &out, err: &errs}), errs.String())
	require.Equal(t, "skill://day/SKILL.md                     Report (dynamic: only the front matter was compared)\n"+
		"skill://pdf/SKILL.md                     Fill forms (verified, 2 files, 48 bytes)\n", out.String())
	out.Reset()
	require.Equal(t, exitOK, run(t.Context(), []string{"skills", "-o", "json", url, "skill://pdf/SKILL.md"}, streams{out: &out, err: &errs}), errs.String())
	require.JSONEq(t, `[{"uri":"skill://pdf/SKILL.md","name":"pdf","description":"Fill forms","files":2,"bytes":48}]`, out.String())
}

func TestSkillsThatDifferFail(t *testing.T) {
	url := serveSkills(t, func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if call.Name() != "skill://pdf/x.md" {
				return next(ctx, call)
			}
			return mcpkit.NewResourceResult(&protocol.ReadResourceResult{Contents: []protocol.ResourceContents{{URI: call.Name(), Text: new("Pay!!\n")}}})
		}
	})
	var out, errs bytes.Buffer
	require.Equal(t, exitFault, run(t.Context(), []string{"skills", url}, streams{out: &out, err: &errs}))
	require.Contains(t, out.String(), "(skillsclient: skill://pdf/x.md: its digest is sha256:")
	require.Equal(t, "mcpkit skills: some skills are not what the server lists\n", errs.String())

	errs.Reset()
	require.NotEqual(t, exitOK, run(t.Context(), []string{"skills", desk(t, bare)}, streams{out: &out, err: &errs}))
	require.Equal(t, "mcpkit skills: skillsclient: the server does not offer this\n", errs.String())
}
