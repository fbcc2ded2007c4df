package mcpkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func searchNotes(_ context.Context, query string, limit int, tags []string) string {
	return fmt.Sprint(query, limit, tags)
}

// searchTool is the tool that the how-to shows.
func searchTool() *mcpkit.ToolBuilder {
	// docs:begin param
	return mcpkit.NewTool("search", searchNotes).
		Desc("Finds the notes that contain every word.").
		Hints("readonly").
		Param("query", mcpkit.Desc("Words that every hit contains."), mcpkit.Rules("min=2")).
		Param("limit", mcpkit.Desc("How many hits to return."), mcpkit.Default(10), mcpkit.Rules("min=1,max=50")).
		Param("tags", mcpkit.Optional(), mcpkit.Rules("max=3,dive,oneof=home work"))
	// docs:end param
}

// The same tool as a struct: parameters use the engine of fields.
type searchFields struct {
	Query string   `json:"query" desc:"Words that every hit contains." validate:"min=2"`
	Limit int      `json:"limit" desc:"How many hits to return." default:"10" validate:"min=1,max=50"`
	Tags  []string `json:"tags,omitempty" validate:"max=3,dive,oneof=home work"`
}

func TestParametersOfBuildersAreLikeFieldsOfStructs(t *testing.T) {
	schemas, wrong := [2]string{}, [2]string{}
	for i, tool := range []mcpkit.Item{searchTool(), mcpkit.NewTool("search", func(in searchFields) string { return searchNotes(t.Context(), in.Query, in.Limit, in.Tags) }).
		Desc("Finds the notes that contain every word.").Hints("readonly")} {
		srv := newServer(t, nil)
		require.NoError(t, srv.Add(tool))
		p := modern(t, srv)
		schemas[i] = member(t, p.result("tools/list", "{}"), "tools")
		for arguments, want := range map[string]string{
			`{"query":"tea"}`: "tea10 []", `{"query":"tea","limit":50,"tags":["home"]}`: "tea50 [home]",
			`{"query":"tea","limit":null,"tags":null}`: "tea10 []",
		} {
			require.Contains(t, p.result("tools/call", `{"name":"search","arguments":`+arguments+`}`), want)
		}
		for _, arguments := range []string{`{}`, `{"query":"t","limit":51,"tags":["away",1]}`, `{"query":"tea","query":"tee"}`, `{"query":"tea","limt":1}`, `{"query":null}`} {
			result := p.result("tools/call", `{"name":"search","arguments":`+arguments+`}`)
			require.Contains(t, result, `"isError":true`, arguments)
			wrong[i] += member(t, result, "content") + "\n"
		}
	}
	require.Equal(t, schemas[1], schemas[0])
	require.Equal(t, wrong[1], wrong[0])
	require.Contains(t, wrong[0], `/limit: got 51, want an integer between 1 and 50`)
	require.Contains(t, wrong[0], `/limt: unknown; did you mean \"limit\"?`)
}

func TestMistakesInParametersAreErrorsAtStartup(t *testing.T) {
	tool := func() *mcpkit.ToolBuilder { return mcpkit.NewTool("search", searchNotes).Param("query") }
	for want, item := range map[string]mcpkit.Item{
		`the names are "query", but the parameters are (string, int, []string); name each one, in order`:                                     tool(),
		`parameter "limit": the default is 99, which is not an integer between 1 and 50`:                                                     tool().Param("limit", mcpkit.Default(99), mcpkit.Rules("min=1,max=50")).Param("tags"),
		`parameter "limit": the default is "ten", which is not an integer`:                                                                   tool().Param("limit", mcpkit.Default("ten")).Param("tags"),
		`parameter "limit": unknown rule "mim"; did you mean "min"?`:                                                                         tool().Param("limit", mcpkit.Rules("mim=1")).Param("tags"),
		`parameter "limit": rule "email" does not fit int`:                                                                                   tool().Param("limit", mcpkit.Rules("email")).Param("tags"),
		`parameter "limit": the default does not encode:`:                                                                                    tool().Param("limit", mcpkit.Default(math.NaN())).Param("tags"),
		`parameter "limit": unknown tag key "exmple"; did you mean "example"?`:                                                               tool().Param("limit", mcpkit.FieldTag("exmple", "1")).Param("tags"),
		`parameter "limit": the tag has the key "validate" twice`:                                                                            tool().Param("limit", mcpkit.Rules("min=1"), mcpkit.Rules("max=2")).Param("tags"),
		`parameter "limit": an option is nil`:                                                                                                tool().Param("limit", nil).Param("tags"),
		`parameter "limit,tags": a name has no comma and no question mark`:                                                                   tool().Param("limit,tags"),
		`parameter "limit?": a name has no comma and no question mark`:                                                                       tool().Param("limit?").Param("tags"),
		`parameter "query": it is named twice`:                                                                                               tool().Param("query").Param("tags"),
		`the params tag "query,,tags" has no name for the parameter int`:                                                                     tool().Param("").Param("tags"),
		`Params and Param both name the parameters; use one of them`:                                                                         tool().Params("query,limit,tags"),
		`the params tag names plain parameters, but the arguments are the fields of mcpkit_test.searchFields; remove the tag`:                mcpkit.NewTool("x", func(searchFields) {}).Param("query", mcpkit.Rules("min=1")),
		"Go does not keep the names of the parameters (int, string); name them with ToolBuilder.Params(\"name1,name2\"), or take one struct": mcpkit.NewTool("x", func(int, string) {}),
		"Go does not keep the names of the parameters (string); name them with PromptBuilder.Params(\"name\"), or take one struct":           mcpkit.NewPrompt("x", func(string) string { return "" }),
		`the params tag names "query", but no parameter takes an argument`:                                                                   mcpkit.NewTool("x", func(context.Context) {}).Param("query"),
	} {
		err := newServer(t, nil).Add(item)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "param_test.go:", "the error says where it was built")
	}
}

// briefs is a service with rules for plain parameters.
type briefs struct {
	_ struct {
		Brief mcpkit.Prompt   `params:"topic,style?,words?,code?" rules:"style:oneof=short long; words:min=10,max=500; topic:min=2; code:pattern=^[a-z]{2,3}$"`
		Cut   mcpkit.Tool     `params:"words,unit" rules:"words:min=1; unit:oneof=cm mm"`
		Page  mcpkit.Resource `uri:"page://{book}/{n}" rules:"n:min=1,max=9;book:oneof=emma persuasion"`
	}
}

// Brief writes a brief.
//
//   - topic: what it is about
func (*briefs) Brief(topic, style string, words int, code string) string {
	return fmt.Sprint(topic, style, words, code)
}
func (*briefs) Cut(words int, unit string) string       { return fmt.Sprint(words, unit) }
func (*briefs) Page(book string, n int) (string, error) { return fmt.Sprint(book, n), nil }

func TestRulesRestrictTheArgumentsOfPrompts(t *testing.T) {
	srv := newServer(t, &briefs{})
	for _, p := range []*peer{modern(t, srv), legacy(t, srv, protocol.V20251125)} {
		require.JSONEq(t, `[
			{"name":"topic","required":true,"description":"what it is about. Must be a string of at least 2 characters."},
			{"name":"style","description":"Must be one of \"short\" or \"long\"."},
			{"name":"words","description":"Must be an integer between 10 and 500."},
			{"name":"code","description":"Must be a string that matches ^[a-z]{2,3}$."}]`,
			argumentsOf(t, p, "brief"))
		require.Contains(t, p.result("prompts/get", `{"name":"brief","arguments":{"topic":"tea","style":"short","words":"20","code":"ab"}}`), "teashort20ab")
		require.Contains(t, p.result("prompts/get", `{"name":"brief","arguments":{"topic":"tea"}}`), "tea0")
		for arguments, want := range map[string]string{
			`{"topic":"tea","style":"long "}`:      `/style: got "long ", want one of "short" or "long"`,
			`{"topic":"tea","style":""}`:           `/style: got "", want one of "short" or "long"`,
			`{"topic":"tea","words":"9"}`:          `/words: got 9, want an integer between 10 and 500`,
			`{"topic":"tea","words":"ten"}`:        `/words: got "ten", want an integer between 10 and 500`,
			`{"topic":"t"}`:                        `/topic: got "t", want a string of at least 2 characters`,
			`{"topic":"tea","code":"abcd"}`:        `/code: got "abcd", want a string that matches ^[a-z]{2,3}$`,
			`{"style":"short"}`:                    `/topic: missing`,
			`{"topic":"tea","styles":"short"}`:     `prompt "brief" has no argument "styles"; did you mean "style"?`,
			`{"topic":"tea","topic":"the cheese"}`: `twice`,
		} {
			err := p.fails("prompts/get", `{"name":"brief","arguments":`+arguments+`}`)
			require.Contains(t, err.Message, want)
			require.EqualValues(t, -32602, err.Code)
		}
		complete := func(value string) string {
			return p.result("completion/complete", `{"ref":{"type":"ref/prompt","name":"brief"},"argument":{"name":"style","value":"`+value+`"}}`)
		}
		require.Contains(t, complete(""), `"values":["short","long"]`)
		require.Contains(t, complete("LO"), `"values":["long"]`)
		require.Contains(t, complete("x"), `"values":[]`)
	}
}

func TestRulesRestrictPlainParametersOfToolsAndResources(t *testing.T) {
	p := modern(t, newServer(t, &briefs{}))
	require.Contains(t, p.result("tools/list", "{}"), `"properties":{"words":{"type":"integer","minimum":1},"unit":{"type":"string","enum":["cm","mm"]}},"required":["words","unit"]`)
	require.Contains(t, p.result("tools/call", `{"name":"cut","arguments":{"words":1,"unit":"mm"}}`), "1mm")
	require.Contains(t, p.result("tools/call", `{"name":"cut","arguments":{"words":0,"unit":"m"}}`), `/unit: got \"m\", want one of \"cm\" or \"mm\"`)
	require.Contains(t, p.result("resources/read", `{"uri":"page://emma/9"}`), "emma9")
	require.Contains(t, p.fails("resources/read", `{"uri":"page://emma/10"}`).Message, "want an integer between 1 and 9")
	require.Contains(t, p.fails("resources/read", `{"uri":"page://ulysses/1"}`).Message, `want one of "emma" or "persuasion"`)
	require.Contains(t, p.result("completion/complete", `{"ref":{"type":"ref/resource","uri":"page://{book}/{n}"},"argument":{"name":"book","value":"p"}}`), `"values":["persuasion"]`)
}

func TestRulesOfPromptBuildersAreEnforced(t *testing.T) {
	srv := newServer(t, nil)
	require.NoError(t, srv.Add(mcpkit.NewPrompt("brief", func(style string, deep *bool) string { return fmt.Sprint(style, deep == nil) }).
		Param("style", mcpkit.Desc("How long"), mcpkit.Default("long"), mcpkit.Rules("oneof=short long")).
		Param("deep")))
	p := modern(t, srv)
	require.JSONEq(t, `[{"name":"style","description":"How long. Must be one of \"short\" or \"long\". Default: \"long\"."},{"name":"deep","description":"Must be true or false."}]`,
		argumentsOf(t, p, "brief"))
	require.Contains(t, p.result("prompts/get", `{"name":"brief"}`), "longtrue")
	require.Contains(t, p.fails("prompts/get", `{"name":"brief","arguments":{"style":"tiny"}}`).Message, `/style: got "tiny"`)
	require.Contains(t, p.result("completion/complete", `{"ref":{"type":"ref/prompt","name":"brief"},"argument":{"name":"style","value":""}}`), `"values":["short","long"]`)
}

// argumentsOf returns the arguments of a prompt as prompts/list has them.
func argumentsOf(t *testing.T, p *peer, name string) string {
	t.Helper()
	var list struct {
		Prompts []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal([]byte(p.result("prompts/list", "{}")), &list))
	for _, prompt := range list.Prompts {
		if prompt.Name == name {
			return string(prompt.Arguments)
		}
	}
	require.Fail(t, "there is no such prompt", name)
	return ""
}

type (
	badRules struct {
		_ struct {
			Do mcpkit.Tool `params:"n" rules:"n min=1"`
		}
	}
	otherRules struct {
		_ struct {
			Do mcpkit.Tool `params:"count" rules:"coumt:min=1"`
		}
	}
	wrongRules struct {
		_ struct {
			Do mcpkit.Tool `params:"n" rules:"n:pattern=^[a-z]+$"`
		}
	}
	contraryRules struct {
		_ struct {
			Do mcpkit.Prompt `params:"n" rules:"n:min=5,max=2"`
		}
	}
)

type structRules struct {
	_ struct {
		Do mcpkit.Tool `rules:"query:min=1"`
	}
}

func (*structRules) Do(searchFields)   {}
func (*badRules) Do(n int)             {}
func (*otherRules) Do(n int)           {}
func (*wrongRules) Do(n int)           {}
func (*contraryRules) Do(n int) string { return "" }

func TestMistakesInTheTagRulesAreErrorsAtStartup(t *testing.T) {
	for want, service := range map[string]any{
		`badRules.Do (param_test.go:`: &badRules{},
		`tag rules: "n min=1" is not of the form parameter:rules; write for example rules:"style:oneof=short long; count:min=1,max=9"`:                &badRules{},
		`the rules are for "coumt", which is not a parameter; did you mean "count"?`:                                                                  &otherRules{},
		`parameter "n": jsonschema: "pattern" does not fit int`:                                                                                       &wrongRules{},
		`the rules are for plain parameters, but the arguments are the fields of mcpkit_test.searchFields; write them in validate tags of the fields`: &structRules{},
		`parameter "n": the rules "min=5,max=2" allow nothing`:                                                                                        &contraryRules{},
	} {
		_, err := mcpkit.New(service)
		require.ErrorContains(t, err, want)
	}
}

// A package may have its items in variables, and tests that run in parallel add them to servers.
func TestItemsAreAddedToSeveralServersAtOnce(t *testing.T) {
	items := []mcpkit.Item{
		mcpkit.NewTool("echo", func(text string) string { return text }).Param("text", mcpkit.Rules("min=1")),
		mcpkit.NewPrompt("ask", func(text string) string { return text }).Param("text"),
	}
	var adding sync.WaitGroup
	for range 8 {
		srv := newServer(t, nil)
		adding.Go(func() { assert.NoError(t, srv.Add(items...)) })
	}
	adding.Wait()
}
