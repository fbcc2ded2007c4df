package mcpkit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

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
