package mcpkit_test

import (
	"context"
	"iter"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// docs:begin cases

// step is what a robot can be told to do.
type step interface{ isStep() }

type (
	walk struct {
		Metres int `json:"metres" validate:"min=1"`
	}
	grasp struct {
		Thing string `json:"thing"`
	}
	// repeat has steps in it.
	repeat struct {
		Times int    `json:"times,omitempty" validate:"min=1"`
		Steps []step `json:"steps"`
	}
)

func (walk) isStep()    {}
func (grasp) isStep()   {}
func (*repeat) isStep() {}

// docs:end cases

func (walk) UnionName() string { return "go" }

type robot struct {
	_ struct {
		Do mcpkit.Tool `params:"step"`
	}
	did []step
}

type plan struct {
	Steps []step `json:"steps" validate:"required,min=1"`
}

func (r *robot) Run(in plan) plan { r.did = append(r.did, in.Steps...); return in }
func (r *robot) Do(s step) step   { r.did = append(r.did, s); return s }
func (r *robot) History() iter.Seq[step] {
	return func(yield func(step) bool) { _ = len(r.did) == 0 || yield(r.did[0]) }
}
func (r *robot) Nothing() step                { return nil }
func (r *robot) Odd() []step                  { return []step{stray{}} }
func (r *robot) Anything(context.Context) any { return plan{[]step{grasp{"cup"}}} }

type stray struct{}

func (stray) isStep() {}

func steps() mcpkit.Option {
	// docs:begin union
	return mcpkit.Union[step]("do", walk{}, grasp{}, &repeat{})
	// docs:end union
}

func TestUnionsInToolsOfEachVersion(t *testing.T) {
	r := &robot{}
	srv := newServer(t, r, steps(), mcpkit.ExposeErrors())
	for _, p := range []*peer{modern(t, srv), legacy(t, srv, protocol.V20250618)} {
		r.did = nil
		args := `{"steps":[{"do":"go","metres":2},{"do":"repeat","times":2,"steps":[{"do":"grasp","thing":"cup"}]}]}`
		require.JSONEq(t, args, member(t, p.result("tools/call", `{"name":"run","arguments":`+args+`}`), "structuredContent"))
		require.Equal(t, []step{walk{2}, &repeat{2, []step{grasp{"cup"}}}}, r.did)
		require.JSONEq(t, `{"do":"grasp","thing":"pen"}`, member(t, p.result("tools/call", `{"name":"do","arguments":{"step":{"do":"grasp","thing":"pen"}}}`), "structuredContent"))
		require.Contains(t, p.result("tools/call", `{"name":"history"}`), `{\"do\":\"go\",\"metres\":2}`)
		require.JSONEq(t, `{"steps":[{"do":"grasp","thing":"cup"}]}`, member(t, p.result("tools/call", `{"name":"anything"}`), "structuredContent"))
		require.Contains(t, p.result("tools/call", `{"name":"run","arguments":{"steps":[{"do":"jump"}]}}`),
			`/steps/0/do: got \"jump\", want one of \"go\", \"grasp\" or \"repeat\"`)
		require.Contains(t, p.result("tools/call", `{"name":"nothing"}`), `the tool returned no result and no error: it is a nil mcpkit_test.step`)
		require.Contains(t, p.result("tools/call", `{"name":"odd"}`),
			`a mcpkit_test.stray is not a case of the union mcpkit_test.step; its cases are mcpkit_test.walk, mcpkit_test.grasp and *mcpkit_test.repeat`)
	}
}

func TestUnionFaults(t *testing.T) {
	_, err := mcpkit.New(&robot{})
	require.Error(t, err)
	require.Contains(t, err.Error(), `result of the interface type mcpkit_test.step says too little`)
	require.Contains(t, err.Error(), `field Steps: the interface mcpkit_test.step has no JSON; register its types with mcpkit.Union, take any, or hide the field with json:"-"`)

	_, err = mcpkit.New(nil, mcpkit.Union[step](""))
	require.Equal(t, "mcpkit: Union[mcpkit_test.step] (union_test.go:0): the discriminator is \"\"; write the name of a member, such as \"kind\"\n"+
		"mcpkit: Union[mcpkit_test.step] (union_test.go:0): there are no cases; write a value of each type, such as Circle{}", unlined(err))
	_, err = mcpkit.New(nil, steps(), steps())
	require.Equal(t, "mcpkit: Union[mcpkit_test.step] (union_test.go:0): the union is given twice", unlined(err))
	_, err = mcpkit.New(nil, mcpkit.Union[step]("do", nil))
	require.ErrorContains(t, err, "case 1 is nil; write a value of its type, such as Circle{}")
}

var lineOfCall = regexp.MustCompile(`_test\.go:[1-9]\d*`)

// unlined is the text of an error without the numbers of lines.
func unlined(err error) string { return lineOfCall.ReplaceAllString(err.Error(), "_test.go:0") }
