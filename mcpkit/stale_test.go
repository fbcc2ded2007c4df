package mcpkit_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A bakery has a method that its generated file does not know.
type bakery struct{}

// Bake bakes bread.
func (*bakery) Bake() {}

// A dairy has a comment that is not that of its generated file.
type dairy struct{}

// Churn churns butter.
func (*dairy) Churn() {}

// A mill has a generated file that is fresh.
type mill struct{}

// Grind grinds grain.
func (*mill) Grind() {}

// Programs that run beside their source, as under go run, log that the generated file differs from
// it.
func TestStaleDescriptionsAreLogged(t *testing.T) {
	const stale = `level=WARN msg="mcpkit: generated descriptions are stale; run go generate, or mcpkit gen" packages=[github.com/mcpkit/mcpkit-go/mcpkit_test]`
	// Registered descriptions stay, so each case has a type of its own.
	mcpkit.RegisterDescriptions("github.com/mcpkit/mcpkit-go/mcpkit_test", map[string]string{
		"bakery":      "A bakery has a method that its generated file does not know.",
		"dairy.Churn": "Churn churned butter.",
		"mill.Grind":  "Grind grinds grain.",
	})
	logged := func(service any) string {
		var log bytes.Buffer
		srv := newServer(t, service, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
		// The warning does not depend on how the server is served.
		modern(t, srv).result("tools/list", `{}`)
		first := log.String()
		require.NoError(t, srv.Start(t.Context()))
		require.Equal(t, first, log.String(), "it is logged once")
		return first
	}
	require.Contains(t, logged(&bakery{}), stale, "a method is new")
	require.Contains(t, logged(&dairy{}), stale, "a comment has changed")
	require.NotContains(t, logged(&mill{}), "stale")
}

// What the source says is sent, even if a generated file says something else.
func TestTheSourceWinsOverAStaleFile(t *testing.T) {
	mcpkit.RegisterDescriptions("github.com/mcpkit/mcpkit-go/mcpkit_test", map[string]string{"cellar.Age": "Age aged cheese.", "Grade#0": `"old" It was.`})
	p := modern(t, newServer(t, &cellar{}))
	tools := p.result("tools/list", `{}`)
	require.Contains(t, tools, `"description":"Ages cheese."`)
	require.Contains(t, tools, `"description":"Grade is how good it is.\n\"a\": as good as it gets","enum":["a"]`)
}

// A cellar has a comment that is not that of its generated file.
type cellar struct{}

// Age ages cheese.
func (*cellar) Age(struct {
	Grade Grade `json:"grade" validate:"enum"`
}) {
}

// Grade is how good it is.
type Grade string

const Best Grade = "a" // as good as it gets
