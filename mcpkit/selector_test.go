package mcpkit_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

type shop struct {
	_ struct {
		Charge mcpkit.Tool `tags:"money,admin"`
		Look   mcpkit.Tool `tags:"open"`
	}
}

func (shop) Charge() string { return "charged" }
func (shop) Look() string   { return "seen" }

// refuse is a guard.
func refuse(mcpkit.Handler) mcpkit.Handler {
	return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { return nil, mcpkit.Errorf("refused") }
}

func TestGuardsOnNamesThatDoNotExistAreFaultsAtStartup(t *testing.T) {
	for name, test := range map[string]struct {
		sel  mcpkit.Selector
		want string
	}{
		"a tool":     {mcpkit.OnTool("look", "chargee"), `mcpkit: UseFor: no tool is named "chargee"; did you mean "charge"?; add Later() to the selector if it comes after the start`},
		"a tag":      {mcpkit.OnTag("amdin"), `mcpkit: UseFor: no tool, prompt or resource has the tag "amdin"; did you mean "admin"?; add Later() to the selector if it comes after the start`},
		"a method":   {mcpkit.OnMethod("tool/call"), `mcpkit: UseFor: no method is named "tool/call"; did you mean "tools/call"?; add Later() to the selector if it comes after the start`},
		"a resource": {mcpkit.OnTool("shop://x"), `mcpkit: UseFor: no tool is named "shop://x"; add Later() to the selector if it comes after the start`},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, &shop{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
			srv.UseFor(test.sel, refuse)
			require.EqualError(t, srv.Start(t.Context()), test.want)
			require.EqualError(t, srv.Serve(t.Context()), test.want, "so Serve ends at once")
			require.EqualError(t, modern(t, srv).fails("tools/call", `{"name":"look"}`), "the server did not start (code -32603)", "and nothing is served unguarded")
		})
	}
	srv := newServer(t, &shop{})
	srv.UseFor(mcpkit.OnTool("chargee").Later(), refuse)
	require.NoError(t, srv.Start(t.Context()))
	require.NoError(t, srv.Add(mcpkit.NewTool("chargee", func() string { return "charged" })))
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"chargee"}`), "refused", "what comes later is guarded")
	// A misspelt name is also a mistake if the guard is added after the start.
	srv.UseFor(mcpkit.OnTag("amdin"), refuse)
	require.Error(t, srv.Start(t.Context()))
	require.NoError(t, srv.Add(mcpkit.NewTool("late", func() string { return "late" }).Tags("amdin")))
	require.NoError(t, srv.Start(t.Context()), "what was missing is there now")
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"late"}`), "refused")
}

func TestSelectorsReachWhatTheyName(t *testing.T) {
	srv, other := newServer(t, &shop{}), newServer(t, &shop{})
	srv.MustMount("far", other)
	require.NoError(t, mcpkit.Handle(srv, "example.com/count", func(context.Context, struct{}) (map[string]int, error) { return map[string]int{}, nil }))
	srv.UseFor(mcpkit.OnTool("look", "far_look"), refuse)
	srv.UseFor(mcpkit.OnTag("money"), refuse)
	srv.UseFor(mcpkit.OnMethod(protocol.MethodToolsList, "example.com/count"), refuse)
	for version, p := range versionPeers(t, srv) {
		for _, name := range []string{"look", "far_look", "charge", "far_charge"} {
			require.Contains(t, p.result("tools/call", `{"name":"`+name+`"}`), "refused", "%s on %s", name, version)
		}
		require.EqualError(t, p.fails("tools/list", "{}"), "refused (code -32603)")
		require.EqualError(t, p.fails("example.com/count", "{}"), "refused (code -32603)")
		require.Contains(t, modern(t, other).result("tools/call", `{"name":"look"}`), "seen", "the mounted server itself is not guarded by the other")
	}
}

func TestMiddlewareOfSelectorsStandsInTheOrderOfUse(t *testing.T) {
	srv := newServer(t, &shop{})
	var trace []string
	srv.Use(tracing(&trace, "first"))
	srv.UseFor(mcpkit.OnTool("look"), tracing(&trace, "second"), tracing(&trace, "third"))
	srv.Use(tracing(&trace, "last"))
	modern(t, srv).result("tools/call", `{"name":"look"}`)
	require.Equal(t, []string{"first", "second", "third", "last"}, trace)
	trace = nil
	modern(t, srv).result("tools/call", `{"name":"charge"}`)
	require.Equal(t, []string{"first", "last"}, trace)
}

func TestSelectorsThatSelectNothingPanic(t *testing.T) {
	srv := newServer(t, &shop{})
	require.PanicsWithValue(t, `mcpkit: UseFor: a name of a tool is missing; write for example mcpkit.OnTool("charge")`, func() { srv.UseFor(mcpkit.Selector{}, refuse) })
	require.PanicsWithValue(t, `mcpkit: UseFor: a name of a tag is missing; write for example mcpkit.OnTool("charge")`, func() { srv.UseFor(mcpkit.OnTag(""), refuse) })
	require.PanicsWithValue(t, `mcpkit: UseFor: there is no middleware to use`, func() { srv.UseFor(mcpkit.OnTool("look")) })
	require.PanicsWithValue(t, `mcpkit: UseFor: middleware 2 of 2 is nil`, func() { srv.UseFor(mcpkit.OnTool("look"), refuse, nil) })
	srv.UseFor(mcpkit.OnTool("look"), func(mcpkit.Handler) mcpkit.Handler { return nil })
	require.Contains(t, modern(t, newServer(t, nil, mcpkit.With(&shop{}))).result("tools/call", `{"name":"look"}`), "seen")
	resp := modern(t, srv).rpc(t.Context(), modern(t, srv).request("tools/call", `{"name":"look"}`))
	require.Contains(t, string(resp.Result), `"isError":true`, "a guard that is no handler lets nothing through")
	require.NoError(t, errors.Join(srv.Close()))
}
