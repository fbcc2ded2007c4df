package mcpkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func searchNotes(_ context.Context, query string, limit int, tags []string) string {
	return fmt.Sprint(query, limit, tags)
}

// searchTool is the tool that the how-to shows.
func searchTool() *mcpkit.Builder {
	// docs:begin builder
	return mcpkit.NewTool("search", searchNotes).
		Desc("Finds the notes that contain every word.").
		Hints("readonly").
		Params("query,limit?,tags?").
		Rules("query:min=2; limit:min=1,max=50; tags:max=3,dive,oneof=home work")
	// docs:end builder
}

type searchFields struct {
	Query string `json:"query" validate:"min=2"`
}

func TestBuildersTakeTheTagsOfMethods(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Items(searchTool()))
	p := modern(t, srv)
	require.Contains(t, p.result("tools/call", `{"name":"search","arguments":{"query":"tea","limit":50,"tags":["home"]}}`), "tea50 [home]")
	wrong := p.result("tools/call", `{"name":"search","arguments":{"query":"tea","limit":51,"limt":1}}`)
	require.Contains(t, wrong, `/limit: got 51, want an integer between 1 and 50`)
	require.Contains(t, wrong, `/limt: unknown; did you mean \"limit\"?`)
}

func TestMistakesInBuildersAreErrorsOfAdd(t *testing.T) {
	tool := func() *mcpkit.Builder { return mcpkit.NewTool("search", searchNotes) }
	for want, item := range map[string]mcpkit.Item{
		`the names are "query", but the parameters are (string, int, []string); name each one, in order`: tool().Params("query"),
		`parameter "limit": unknown rule "mim"; did you mean "min"?`:                                     tool().Params("query,limit,tags").Rules("limit:mim=1"),
		`tag "uri" means nothing for mcpkit.Tool`:                                                        tool().Tag("uri", "a://b"),
		`unknown tag "titel"; did you mean "title"?`:                                                     tool().Tag("titel", "x"),
		`tag hints: unknown hint "read-only"; did you mean "readonly"?`:                                  tool().Hints("read-only"),
		`Meta("m"): `:                      tool().Meta("m", func() {}),
		`there is no function to call`:     mcpkit.NewTool("x", 5),
		`name "a b" contains ' '`:          mcpkit.NewTool("a b", searchNotes),
		`"nothing" is not an absolute URI`: mcpkit.NewResource("nothing", "n", func() string { return "" }),
		`x-mcp-header "X" is at "x", which is not a string, integer or boolean`: mcpkit.NewTool("x", func(*mcpkit.Call) {}).
			Input(`{"type":"object","properties":{"x":{"type":"number","x-mcp-header":"X"}}}`),
		`no parameter takes the arguments "query"; add a parameter for each`: mcpkit.NewTool("x", func(context.Context) {}).Params("query"),
	} {
		srv := newServer(t, nil, rawSchemas)
		err := srv.Add(mcpkit.NewTool("fine", func() string { return "" }), item)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "builder_test.go:", "the error says where it was built")
		require.Equal(t, jsonrpc.CodeMethodNotFound, modern(t, srv).fails("tools/list", "{}").Code, "nothing is registered")
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
			`{"topic":"tea","style":"long "}`:  `/style: got "long ", want one of "short" or "long"`,
			`{"topic":"tea","style":""}`:       `/style: got "", want one of "short" or "long"`,
			`{"topic":"tea","words":"9"}`:      `/words: got 9, want an integer between 10 and 500`,
			`{"topic":"tea","words":"ten"}`:    `/words: got "ten", want an integer between 10 and 500`,
			`{"topic":"t"}`:                    `/topic: got "t", want a string of at least 2 characters`,
			`{"topic":"tea","code":"abcd"}`:    `/code: got "abcd", want a string that matches ^[a-z]{2,3}$`,
			`{"style":"short"}`:                `/topic: missing`,
			`{"topic":"tea","styles":"short"}`: `prompt "brief" has no argument "styles"; did you mean "style"?`,
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
)

type structRules struct {
	_ struct {
		Do mcpkit.Tool `rules:"query:min=1"`
	}
}

func (*structRules) Do(searchFields) {}
func (*badRules) Do(n int)           {}
func (*otherRules) Do(n int)         {}
func (*wrongRules) Do(n int)         {}

func TestMistakesInTheTagRulesAreErrorsAtStartup(t *testing.T) {
	for want, service := range map[string]any{
		`badRules.Do (builder_test.go:`: &badRules{},
		`tag rules: "n min=1" is not of the form parameter:rules; write for example rules:"style:oneof=short long; count:min=1,max=9"`:                               &badRules{},
		`the rules are for "coumt", which is not a parameter; did you mean "count"?`:                                                                                 &otherRules{},
		`parameter "n": jsonschema: "pattern=^[a-z]+$" does not fit int`:                                                                                             &wrongRules{},
		`names and rules are for plain parameters, but the arguments are the fields of mcpkit_test.searchFields; write them in json and validate tags of the fields`: &structRules{},
	} {
		_, err := mcpkit.New(service)
		require.ErrorContains(t, err, want)
	}
}

// A package may have its items in variables, and tests that run in parallel add them to servers.
func TestItemsAreAddedToSeveralServersAtOnce(t *testing.T) {
	items := []mcpkit.Item{
		mcpkit.NewTool("echo", func(text string) string { return text }).Params("text").Rules("text:min=1"),
		mcpkit.NewPrompt("ask", func(text string) string { return text }).Params("text"),
	}
	var adding sync.WaitGroup
	for range 8 {
		srv := newServer(t, nil)
		adding.Go(func() { assert.NoError(t, srv.Add(items...)) })
	}
	adding.Wait()
}

// A mood is one of its constants.
type mood string

const (
	calm   mood = "calm"   // Nothing to do.
	hectic mood = "hectic" // Too much to do.
)

// A volume is one of its constants, too.
type loudness int

const (
	low  loudness = 1
	high loudness = 9
)

type moodInput struct {
	Mood   mood              `json:"mood" validate:"enum"`
	Volume loudness          `json:"volume" default:"1" validate:"enum"`
	Others []mood            `json:"others,omitempty" validate:"max=2,dive,enum"`
	Rooms  map[mood]loudness `json:"rooms,omitempty" validate:"dive,keys,enum,endkeys,enum"`
}

type moods struct {
	_ struct {
		Describe mcpkit.Prompt
	}
}

func (moods) Set(in moodInput) string { return fmt.Sprint(in.Mood, in.Volume) }

func (moods) Describe(in struct {
	Mood mood `json:"mood" validate:"enum"`
}) string {
	return string(in.Mood)
}

func TestRuleEnumRestrictsToTheConstantsOfTheType(t *testing.T) {
	for name, opts := range map[string][]mcpkit.Option{
		"compiled rules":            nil,
		"the validator of the user": {mcpkit.Validator(validator.New(validator.WithRequiredStructEnabled()))},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, &moods{}, opts...)
			p := modern(t, srv)
			list := p.result("tools/list", `{}`)
			require.Contains(t, list, `"mood":{"type":"string","description":"A mood is one of its constants.\n\"calm\": Nothing to do.\n\"hectic\": Too much to do.","enum":["calm","hectic"]}`)
			require.Contains(t, list, `"enum":[1,9]`)

			set := func(arguments string) string {
				return p.result("tools/call", `{"name":"set","arguments":`+arguments+`}`)
			}
			require.Contains(t, set(`{"mood":"calm","volume":9,"others":["hectic"],"rooms":{"calm":1}}`), `"text":"calm9"`)
			for arguments, want := range map[string]string{
				`{"mood":"sad"}`:                     `/mood: got \"sad\", want one of \"calm\" or \"hectic\"`,
				`{"mood":"calm","volume":2}`:         `/volume: got 2, want one of 1 or 9`,
				`{"mood":"calm","others":["x"]}`:     `/others/0: got \"x\", want one of`,
				`{"mood":"calm","rooms":{"calm":5}}`: `/rooms/calm: got 5, want one of 1 or 9`,
				`{"mood":"calm","rooms":{"x":1}}`:    `/rooms/x: got \"x\", want`,
			} {
				require.Contains(t, set(arguments), want)
			}
			require.Contains(t, p.result("completion/complete", `{"ref":{"type":"ref/prompt","name":"describe"},"argument":{"name":"mood","value":"h"}}`), `"values":["hectic"]`)
		})
	}
}

// A shade has no constants.
type shade string

type shades struct{}

func (shades) Paint(in struct {
	Shade shade `json:"shade" validate:"enum"`
}) {
}

func TestRuleEnumWithoutConstantsFailsAtStartup(t *testing.T) {
	_, err := mcpkit.New(&shades{})
	require.Error(t, err)
	var found []string
	for line := range strings.Lines(err.Error()) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), ", field ")
		found = append(found, text)
	}
	require.Equal(t, []string{
		`Shade: rule "enum": the constants of mcpkit_test.shade are not known, since the program runs without its source; run "mcpkit gen" in its package, give the type a method Values() []shade, or list the values with oneof`,
	}, found)
}
