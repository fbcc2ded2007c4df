package mcpkit_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// starred is the extension com.example/ratings, which shows clients how good tools are.
func starred() mcpkit.Extension {
	return mcpkit.Extension{
		ID:   ratingsID,
		Tags: []string{"stars"},
		Tool: func(t *mcpkit.ToolEntry, v protocol.Version) error {
			value, ok := t.Tags["stars"]
			if !ok {
				return nil
			}
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > 5 {
				return fmt.Errorf("tag stars: %q is not a number from 1 to 5", value)
			}
			if v == protocol.V20251125 {
				t.Definition.Execution = &protocol.ToolExecution{TaskSupport: "optional"}
			}
			return t.Definition.Meta.Set("example.com/stars", n)
		},
	}
}

type rated struct {
	_ struct {
		Search mcpkit.Tool `stars:"4" meta:"example.com/team=search"`
		Plain  mcpkit.Tool
	}
}

func (rated) Search() string { return "" }
func (rated) Plain() string  { return "" }

func TestTagsOfExtensionsReachTheEntryAndTheCall(t *testing.T) {
	calls := map[string]string{}
	e := starred()
	e.Intercept = func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if value, ok := call.ToolTag("stars"); ok {
				calls[call.Name()] = value
			}
			return next(ctx, call)
		}
	}
	srv := newServer(t, &rated{}, mcpkit.Extend(e))
	require.NoError(t, srv.Add(mcpkit.NewTool("built", func() string { return "" }).Tag("stars", "5")))
	top := newServer(t, nil)
	top.MustMount("far", srv)
	p := modern(t, top)
	for _, name := range []string{"search", "plain", "built"} {
		p.result("tools/call", `{"name":"far_`+name+`"}`)
	}
	require.Equal(t, map[string]string{"far_search": "4", "far_built": "5"}, calls)
}

func TestExtensionsAddMembersToToolsPerVersion(t *testing.T) {
	srv := newServer(t, &rated{}, mcpkit.Extend(starred()))
	const schemas = `"inputSchema":{"type":"object","properties":{},"additionalProperties":false}`
	plain := `{"name":"plain",` + schemas + `}`
	withMeta := `{"name":"search",` + schemas + `,"_meta":{"example.com/stars":4,"example.com/team":"search"}`
	for range 2 { // the second time from the cache
		require.Equal(t, `[`+plain+`,`+withMeta+`}]`, member(t, modern(t, srv).result("tools/list", `{}`), "tools"))
		require.Equal(t, `[`+plain+`,`+withMeta+`}]`, member(t, legacy(t, srv, protocol.V20250618).result("tools/list", `{}`), "tools"))
		require.Equal(t, `[`+plain+`,{"name":"search",`+schemas+`,"execution":{"taskSupport":"optional"},"_meta":{"example.com/stars":4,"example.com/team":"search"}}]`, member(t, legacy(t, srv, protocol.V20251125).result("tools/list", `{}`), "tools"))
	}
}

func TestMembersOfExtensionsReachThroughAMount(t *testing.T) {
	parent := newServer(t, nil)
	require.NoError(t, parent.Mount("child", newServer(t, &rated{}, mcpkit.Extend(starred()))))
	require.Contains(t, modern(t, parent).result("tools/list", `{}`), `{"name":"child_search","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"_meta":{"example.com/stars":4,`)
}

func TestMistakesWithTagsOfExtensions(t *testing.T) {
	type (
		outOfRange struct {
			rated
			_ struct {
				Plain mcpkit.Tool `stars:"6"`
			}
		}
		misspelt struct {
			rated
			_ struct {
				Plain mcpkit.Tool `star:"3"`
			}
		}
		onPrompt struct {
			rated
			_ struct {
				Plain mcpkit.Prompt `stars:"3"`
			}
		}
		ofTasks struct {
			rated
			_ struct {
				Plain mcpkit.Tool `task:"optional"`
			}
		}
	)
	const known = `name, title, desc, icon, scopes, timeout, rate, tags, toolset, alias, variant, params, rules, hints, cache, hidden, meta, stars`
	for _, test := range []struct {
		service any
		want    string
	}{
		{&outOfRange{}, `: tag stars: "6" is not a number from 1 to 5`},
		{&misspelt{}, `: unknown tag "star"; did you mean "stars"?; known are ` + known},
		{&onPrompt{}, `: tag "stars" means nothing for mcpkit.Prompt; known are name,`},
		{&ofTasks{}, `: unknown tag "task"; if it is of an extension, such as tasks.New or apps.Pages, add that to the options of New; known are ` + known},
	} {
		_, err := mcpkit.New(test.service, mcpkit.Extend(starred()))
		require.ErrorContains(t, err, `.Plain (tooltag_test.go:`)
		require.ErrorContains(t, err, test.want)
	}
	srv := newServer(t, nil, mcpkit.Extend(starred()))
	tool := func(key, value string) *mcpkit.Builder {
		return mcpkit.NewTool("brew", func() string { return "" }).Tag(key, value)
	}
	require.ErrorContains(t, srv.Add(tool("stars", "many")), `: tag stars: "many" is not a number from 1 to 5`)
	require.ErrorContains(t, srv.Add(tool("star", "3")), `: unknown tag "star"; did you mean "stars"?`)
}

func TestMistakesOfExtensionsWithTags(t *testing.T) {
	for want, tags := range map[string][]string{
		`mcpkit: extension "com.example/ratings": the tag "timeout" means something already, or has characters that no tag has`: {"timeout"},
		`mcpkit: extension "com.example/ratings": the tag "a b" means something already, or has characters that no tag has`:     {"a b"},
		`mcpkit: extension "com.example/ratings": the tag "stars" means something already, or has characters that no tag has`:   {"stars", "stars"},
	} {
		_, err := mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{ID: ratingsID, Tags: tags}))
		require.EqualError(t, err, want)
	}
}

// A check of services does not know the extensions, and yet finds what is misspelt.
func TestAnyTagsAreThoseOfUnknownExtensions(t *testing.T) {
	srv := newServer(t, &rated{}, mcpkit.AnyTags())
	require.NotContains(t, modern(t, srv).result("tools/list", `{}`), "stars")
	err := srv.Add(mcpkit.NewTool("brew", func() string { return "" }).Tag("timeuot", "9s"))
	require.ErrorContains(t, err, `unknown tag "timeuot"; did you mean "timeout"?`)
}

func TestExtendEachMakesAnExtensionForEachServer(t *testing.T) {
	made := 0
	opt := mcpkit.ExtendEach(func() mcpkit.Extension {
		made++
		return mcpkit.Extension{ID: ratingsID, Settings: map[string]int{"server": made}}
	})
	for i := range 2 {
		require.Contains(t, modern(t, newServer(t, nil, opt)).result("server/discover", `{}`), fmt.Sprintf(`{"server":%d}`, i+1))
	}
}
