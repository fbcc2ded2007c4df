package mcpkit_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// stars is a tag of the extension com.example/ratings: how good a tool is.
var stars = mcpkit.NewToolTag("stars", `stars:"3"`, func(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 5 {
		return 0, fmt.Errorf("%q is not a number from 1 to 5", value)
	}
	return n, nil
})

// starred shows the stars of tools to clients.
func starred() mcpkit.Extension {
	return mcpkit.Extension{
		ID:   ratingsID,
		Tags: []mcpkit.AnyToolTag{stars},
		Tool: func(t *mcpkit.ToolEntry) error {
			n, ok := stars.Of(t)
			switch {
			case !ok:
				return nil
			case n == 1:
				return errors.New("a tool with one star is not worth a tool; improve it")
			}
			t.SetMeta("example.com/stars", n)
			t.SetMember("execution", map[string]string{"taskSupport": "optional"}, protocol.V20251125)
			return nil
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
	type seen struct {
		stars int
		ok    bool
	}
	calls := map[string]seen{}
	e := starred()
	e.Intercept = func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			n, ok := stars.Of(call)
			calls[call.Name()] = seen{n, ok}
			return next(ctx, call)
		}
	}
	srv := newServer(t, &rated{}, mcpkit.Extend(e))
	require.NoError(t, srv.Add(mcpkit.NewTool("built", func() string { return "" }).Tag("stars", "5")))
	p := modern(t, srv)
	for _, name := range []string{"search", "plain", "built"} {
		p.result("tools/call", `{"name":"`+name+`"}`)
	}
	require.Equal(t, map[string]seen{"search": {4, true}, "plain": {}, "built": {5, true}}, calls)
	_, ok := stars.Of(&mcpkit.Call{})
	require.False(t, ok)
}

func TestExtensionsAddMembersToToolsPerVersion(t *testing.T) {
	srv := newServer(t, &rated{}, mcpkit.Extend(starred()))
	const schemas = `"inputSchema":{"type":"object","properties":{},"additionalProperties":false}`
	plain := `{"name":"plain","title":"Plain",` + schemas + `}`
	withMeta := `{"name":"search","title":"Search",` + schemas + `,"_meta":{"example.com/stars":4,"example.com/team":"search"}`
	for range 2 { // the second time from the cache
		require.Equal(t, `[`+plain+`,`+withMeta+`}]`, member(t, modern(t, srv).result("tools/list", `{}`), "tools"))
		require.Equal(t, `[`+plain+`,`+withMeta+`}]`, member(t, legacy(t, srv, protocol.V20250618).result("tools/list", `{}`), "tools"))
		require.Equal(t, `[`+plain+`,`+withMeta+`,"execution":{"taskSupport":"optional"}}]`, member(t, legacy(t, srv, protocol.V20251125).result("tools/list", `{}`), "tools"))
	}
}

func TestMembersOfExtensionsBeginWithTheirVersion(t *testing.T) {
	e := starred()
	e.Since = protocol.V20260728
	srv := newServer(t, &rated{}, mcpkit.Extend(e))
	require.Contains(t, modern(t, srv).result("tools/list", `{}`), `"example.com/stars":4`)
	legacyList := legacy(t, srv, protocol.V20251125).result("tools/list", `{}`)
	require.NotContains(t, legacyList, `example.com/stars`)
	require.Contains(t, legacyList, `"execution":{"taskSupport":"optional"}`, "it names its version")
}

func TestMembersOfExtensionsReachThroughAMount(t *testing.T) {
	parent := newServer(t, nil)
	require.NoError(t, parent.Mount("child", newServer(t, &rated{}, mcpkit.Extend(starred()))))
	require.Contains(t, modern(t, parent).result("tools/list", `{}`), `{"name":"child_search","title":"Search","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"_meta":{"example.com/stars":4,`)
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
		refused struct {
			rated `mcpkit:"include"`
			_     struct {
				Plain mcpkit.Tool `stars:"1"`
			}
		}
		onPrompt struct {
			rated
			_ struct {
				Plain mcpkit.Prompt `stars:"3"`
			}
		}
	)
	const known = `name, title, desc, icon, scopes, timeout, rate, tags, params, rules, input, hints, cache, hidden, meta`
	for _, test := range []struct {
		service any
		opts    []mcpkit.Option
		want    string
	}{
		{&outOfRange{}, []mcpkit.Option{mcpkit.Extend(starred())}, `outOfRange.Plain (tooltag_test.go:53): tag stars: "6" is not a number from 1 to 5; write for example stars:"3"`},
		{&misspelt{}, []mcpkit.Option{mcpkit.Extend(starred())}, `misspelt.Plain (tooltag_test.go:53): unknown tag "star"; did you mean "stars"?; known are ` + known + `, stars`},
		{&refused{}, []mcpkit.Option{mcpkit.Extend(starred())}, `refused.Plain (tooltag_test.go:53): a tool with one star is not worth a tool; improve it`},
		{&onPrompt{}, []mcpkit.Option{mcpkit.Extend(starred())}, `onPrompt.Plain (tooltag_test.go:53): tag "stars" means nothing for a Prompt; it is for tools`},
		{&refused{}, nil, `refused.Plain (tooltag_test.go:53): tag "stars" belongs to an extension that the server does not have; add the extension to the options of New
refused.Search (tooltag_test.go:52): tag "stars" belongs to an extension that the server does not have; add the extension to the options of New`},
	} {
		_, err := mcpkit.New(test.service, test.opts...)
		require.EqualError(t, err, test.want)
	}
}

func TestMistakesWithTagsOfBuilders(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Extend(starred()))
	tool := func(key, value string) *mcpkit.Builder {
		return mcpkit.NewTool("brew", func() string { return "" }).Tag(key, value)
	}
	require.ErrorContains(t, srv.Add(tool("stars", "many")), `: tag stars: "many" is not a number from 1 to 5; write for example stars:"3"`)
	require.ErrorContains(t, srv.Add(tool("star", "3")), `: unknown tag "star"; did you mean "stars"?`)
	require.ErrorContains(t, srv.Add(tool("stars", "1")), `(tooltag_test.go:`)
	require.ErrorContains(t, newServer(t, nil).Add(tool("stars", "3")), `: tag "stars" belongs to an extension that the server does not have`)
	twice := tool("stars", "3")
	require.NoError(t, srv.Add(twice))
	require.NoError(t, newServer(t, nil, mcpkit.Extend(starred())).Add(twice), "for a second server")
}

func TestMistakesOfExtensionsWithTagsAndMembers(t *testing.T) {
	setting := func(set func(*mcpkit.ToolEntry)) mcpkit.Extension {
		return mcpkit.Extension{ID: ratingsID, Tags: []mcpkit.AnyToolTag{stars}, Tool: func(t *mcpkit.ToolEntry) error { set(t); return nil }}
	}
	var none *mcpkit.ToolTag[int]
	declaring := func(tags ...mcpkit.AnyToolTag) mcpkit.Extension {
		return mcpkit.Extension{ID: ratingsID, Tags: tags}
	}
	for _, test := range []struct {
		name      string
		extension mcpkit.Extension
		want      string
	}{
		{"a member of the protocol", setting(func(t *mcpkit.ToolEntry) { t.SetMember("title", "x") }), `the tool's entry has the member "title" already`},
		{"the same member twice", setting(func(t *mcpkit.ToolEntry) { t.SetMeta("a/b", 1); t.SetMeta("a/b", 2) }), `the tool's entry has the member "a/b" already`},
		{"a member of the meta tag", setting(func(t *mcpkit.ToolEntry) { t.SetMeta("example.com/team", 1) }), `the tool's entry has the member "example.com/team" already`},
		{"no JSON", setting(func(t *mcpkit.ToolEntry) { t.SetMeta("a/b", func() {}) }), `member "a/b" of the tool's entry does not encode`},
		{"no tag", declaring(none), `mcpkit: extension "com.example/ratings": a tag is nil; make it with NewToolTag`},
		{"a tag of the core", declaring(mcpkit.NewToolTag("timeout", "", strconv.Atoi)), `mcpkit: extension "com.example/ratings": the tag "timeout" means something else`},
		{"no key", declaring(mcpkit.NewToolTag("a b", "", strconv.Atoi)), `mcpkit: extension "com.example/ratings": "a b" is not a key of a tag`},
		{"a tag of two", declaring(stars, mcpkit.NewToolTag("stars", "", strconv.Atoi)), `mcpkit: extension "com.example/ratings": another extension has the tag "stars"`},
	} {
		_, err := mcpkit.New(&rated{}, mcpkit.Extend(test.extension))
		require.ErrorContains(t, err, test.want, test.name)
	}
	_, err := mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{ID: "com.example/a", Tags: []mcpkit.AnyToolTag{stars}}), mcpkit.Extend(mcpkit.Extension{ID: "com.example/b", Tags: []mcpkit.AnyToolTag{stars}}))
	require.EqualError(t, err, `mcpkit: extension "com.example/b": another extension has the tag "stars"`)
}

func TestLinkedTagsAreCheckedWithoutTheirExtension(t *testing.T) {
	srv := newServer(t, &rated{}, mcpkit.LinkedTags())
	require.NotContains(t, modern(t, srv).result("tools/list", `{}`), "stars")
	err := srv.Add(mcpkit.NewTool("brew", func() string { return "" }).Tag("stars", "9"))
	require.ErrorContains(t, err, `tag stars: "9" is not a number from 1 to 5; write for example stars:"3"`)
	newServer(t, &rated{}, mcpkit.Extend(starred()), mcpkit.LinkedTags())
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
