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

type sums struct {
	_ struct {
		Add  mcpkit.Tool     `params:"a, b?"`
		Note mcpkit.Resource `uri:"sums://{name}"`
		Ask  mcpkit.Prompt   `params:"topic"`
	}
}

// docs:begin paramdescriptions

// Add adds two numbers.
//
//   - a: the first number
//   - b: the other one, 0 if
//     it is not given
//
// It does not round.
func (*sums) Add(a float64, b *float64) float64 { return a + orZero(b) }

// docs:end paramdescriptions

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// Note reads one.
//   - name: what it is called
func (*sums) Note(name string) string { return name }

// Ask asks.
//
//   - topic: what about
func (*sums) Ask(topic string) string { return topic }

func TestDocCommentsDescribePlainParameters(t *testing.T) {
	p := modern(t, newServer(t, &sums{}))
	tools := p.result("tools/list", "{}")
	require.Contains(t, tools, `"description":"Adds two numbers.\n\nIt does not round."`)
	require.Contains(t, tools, `"properties":{"a":{"type":"number","description":"the first number"},"b":{"type":"number","description":"the other one, 0 if it is not given"}},"required":["a"]`)
	require.Contains(t, p.result("prompts/list", "{}"), `"description":"Asks.","arguments":[{"name":"topic","description":"what about","required":true}]`)
	require.Contains(t, p.result("resources/templates/list", "{}"), `"description":"Reads one."`)
}

// Descriptions are without the name of the method.
func TestDescriptionsOfMethods(t *testing.T) {
	p := modern(t, newServer(t, &phrases{}))
	require.Equal(t, []string{
		"Area of a shape.", "Counts, and tells.", "Finds.", "Finds notes.", "Has has two ways.", "Lists", "Search élargit.",
	}, names(t, p, "tools/list", "tools", "description"))
}

type phrases struct{}

// Area of a shape.
func (*phrases) Area() {}

// Count counts, and tells.
func (*phrases) Count() {}

// Find finds.
func (*phrases) Find() {}

// Finds notes.
func (*phrases) FindNotes() {}

// Has has two ways.
func (*phrases) Has() {}

// Lists
func (*phrases) Lists() {}

// Search élargit.
func (*phrases) Search() {}
