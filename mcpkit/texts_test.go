package mcpkit_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

// poems has completers whose names are misspelt.
type poems struct {
	_ struct {
		Poem mcpkit.Prompt   `params:"style" complete:"style=Stlyes"`
		Line mcpkit.Resource `uri:"poem://{number}" params:"number" complete:"numbr=Numbers"`
	}
}

func (*poems) Poem(string) string                                { return "" }
func (*poems) Line(int) string                                   { return "" }
func (*poems) Styles(context.Context, string) ([]string, error)  { return nil, nil }
func (*poems) Numbers(context.Context, string) ([]string, error) { return nil, nil }

func TestMisspeltCompletersAreMistakes(t *testing.T) {
	_, err := mcpkit.New(&poems{})
	require.ErrorContains(t, err, `parameter "style" is completed by method "Stlyes", which does not exist; did you mean "Styles"?`)
	require.ErrorContains(t, err, `complete names "numbr", which is not a parameter; did you mean "number"?`)
}

func TestVariablesOfAURIAreCalledSo(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Items(mcpkit.NewResource("poem://{number}", "poem", func(number int) string { return "x" })))
	p := modern(t, srv)
	require.Contains(t, p.fails("resources/read", `{"uri":"poem://ten"}`).Message, "1 problem with the variables of the URI:\n/number: got \"ten\", want an integer")

	err := srv.Add(mcpkit.NewResource("shelf://{row}/{place}", "shelf", func(row int) string { return "x" }))
	require.ErrorContains(t, err, `the variables of the URI are "row", "place", but the parameters are (int)`)
}

func TestAMissingScopeIsLoggedForTheOperatorAlone(t *testing.T) {
	var log bytes.Buffer
	srv := newServer(t, nil, mcpkit.Authenticated(), mcpkit.Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	require.NoError(t, srv.Add(mcpkit.NewTool("wipe", func() string { return "" }).Scopes("disk:write")))
	ctx := oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann", Scopes: []string{"disk:read"}})
	p := modern(t, srv)
	call := func(name string) string {
		return p.raw(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+withMeta(`{"name":"`+name+`"}`)+`}`)
	}
	unknown := call("rinse")
	require.Empty(t, log.String())
	require.Equal(t, strings.ReplaceAll(unknown, "rinse", "wipe"), call("wipe"), "the caller learns no more than of a tool that is not there")
	require.Contains(t, log.String(), `name=wipe scopes=disk:write callerScopes=disk:read principal=ann`)
}

func TestMethodsOfTheProgramHoldParamsToTheirTags(t *testing.T) {
	type params struct {
		Index string `json:"index" validate:"oneof=notes tags"`
		Limit int    `json:"limit" default:"10" validate:"max=50"`
	}
	srv := newServer(t, nil)
	require.NoError(t, mcpkit.Handle(srv, "example.com/reindex", func(_ context.Context, p *params) (map[string]int, error) {
		return map[string]int{p.Index: p.Limit}, nil
	}))
	p := modern(t, srv)
	require.Contains(t, p.result("example.com/reindex", `{"index":"notes"}`), `"notes":10`)
	require.Equal(t, "3 problems with the params:\n/limit: got 99, want an integer of at most 50\n/colour: unknown; known: \"index\", \"limit\"\n"+
		"/index: missing, want one of \"notes\" or \"tags\"",
		p.fails("example.com/reindex", `{"limit":99,"colour":1}`).Message)
	require.ErrorContains(t, mcpkit.Handle(srv, "example.com/other", func(context.Context, struct {
		A int `validate:"mni=1"`
	}) (struct{}, error) {
		return struct{}{}, nil
	}), `mcpkit: Handle("example.com/other"), field A: unknown rule "mni"; did you mean "min"?`)
}
