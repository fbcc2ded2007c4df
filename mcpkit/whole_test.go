package mcpkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// runReport runs a report that another program has defined.
func runReport(_ context.Context, args map[string]any) (string, error) {
	return fmt.Sprint(args["report"], " ", args["filter"]), nil
}

// asMap and asJSON are the two ways to take all arguments.
func asMap(_ context.Context, log *slog.Logger, args map[string]any) string {
	return fmt.Sprint("map ", args["report"], args["filter"], args["limit"], log != nil)
}

func asJSON(args json.RawMessage) string { return "json " + string(args) }

func TestAFunctionMayTakeAllArguments(t *testing.T) {
	// docs:begin input
	const schema = `{
		"type": "object",
		"properties": {
			"report": {"type": "string", "enum": ["sales", "stock"]},
			"filter": {"type": "object", "additionalProperties": {"type": "string"}},
			"limit": {"type": "integer", "minimum": 1}
		},
		"required": ["report"],
		"additionalProperties": false
	}`
	srv, err := mcpkit.New(nil, mcpkit.RawSchemas(rawschema.Compile))
	if err == nil {
		err = srv.Add(mcpkit.NewTool("run", runReport).Input(schema))
	}
	// docs:end input
	require.NoError(t, err)
	require.NoError(t, srv.Add(
		mcpkit.NewTool("map", asMap).Input(schema), mcpkit.NewTool("json", asJSON).Input(schema),
		mcpkit.NewTool("none", func(call *mcpkit.Call) string { return "none " + string(call.Arguments()) }).Input(schema),
		mcpkit.NewTool("typed", func(args map[string]any) struct{ N int } { return struct{ N int }{len(args)} }).Input(schema)))
	for _, p := range []*peer{modern(t, srv), legacy(t, srv, protocol.V20251125)} {
		require.Equal(t, []string{"json", "map", "none", "run", "typed"}, names(t, p, "tools/list", "tools", "name"))
		require.Equal(t, 5, strings.Count(p.result("tools/list", "{}"), `"enum":["sales","stock"]`))
		for tool, want := range map[string]string{
			"run": "sales map[a:b]", "map": "map salesmap[a:b] 9.007199254740992e+15 true", "none": `none {\"report\":\"sales\"`,
			"json": `json {\"report\":\"sales\",\"filter\":{\"a\":\"b\"},\"limit\":9007199254740993}`, "typed": `{"N":3}`,
		} {
			require.Contains(t, p.result("tools/call", `{"name":"`+tool+`","arguments":{"report":"sales","filter":{"a":"b"},"limit":9007199254740993}}`), want)
		}
		for _, tool := range []string{"run", "map", "json", "none", "typed"} {
			for arguments, want := range map[string]string{
				`{}`:                                  `missing property 'report'`,
				`null`:                                `missing property 'report'`,
				`{"report":"tax"}`:                    `/report: got \"tax\"`,
				`{"report":"sales","limit":0}`:        `/limit: got 0`,
				`{"report":"sales","limit":1.5}`:      `/limit: got 1.5`,
				`{"report":"sales","limit":"5"}`:      `/limit: got \"5\"`,
				`{"report":"sales","limit":null}`:     `/limit: got null`,
				`{"report":"sales","reprot":1}`:       `additional properties 'reprot'`,
				`{"report":"sales","filter":{"a":1}}`: `/filter/a: got 1`,
			} {
				result := p.result("tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`)
				require.Contains(t, result, `"isError":true`, "%s %s", tool, arguments)
				require.Contains(t, result, want, "%s %s", tool, arguments)
			}
			require.NotNil(t, p.fails("tools/call", `{"name":"`+tool+`","arguments":[]}`))
		}
	}
}

// An account is the input of a tool whose schema is written by hand.
type account struct {
	Name  string                  `json:"name" validate:"required,ne=root"`
	Limit int                     `json:"limit" default:"10" validate:"max=50"`
	Until string                  `json:"until" validate:"nefield=Name"`
	Note  mcpkit.Nullable[string] `json:"note"`
	Token string                  `json:"token" secret:"true" validate:"max=3"`
}

func TestAStructMayStandBehindASchemaByHand(t *testing.T) {
	srv := newServer(t, nil, rawSchemas, mcpkit.Lenient(mcpkit.LenientScalars))
	require.NoError(t, srv.Add(mcpkit.NewTool("open", func(call *mcpkit.Call, in *account) string { return fmt.Sprint(*in, call.Repairs()) }).Input(
		`{"type":"object","properties":{"name":{"type":"string"},"limit":{"type":"integer"},"until":{"type":"string","maxLength":4},"note":{"type":["string","null"]},`+
			`"token":{"type":"string","writeOnly":true}}}`)))
	p := modern(t, srv)
	for arguments, want := range map[string]string{
		`{"name":"ann"}`: `{ann 10  {false false } } 0`,
		`{"name":"ann","limit":"5","note":null,"more":1}`: `{ann 5  {true true } } 1`,
		`{"name":"ann","note":"x"}`:                       `{ann 10  {true false x} } 0`,
		`{"name":"ann","until":"never"}`:                  `/until: got \"never\", want what the schema says`,
		`{"until":"ever","limit":51}`:                     `/limit: got 51, want an integer of at most 50\n/name: missing, want a string other than \"root\"`,
		`{"name":"ann","until":"ann"}`:                    `/until: got \"ann\", want a string; must be other than name`,
		`{"name":"ann","token":"hunter2"}`:                `/token: got ***, want what the schema says`,
	} {
		require.Contains(t, p.result("tools/call", `{"name":"open","arguments":`+arguments+`}`), want)
	}
}

func TestArgumentsThatAFunctionKeepsStayAsTheyAre(t *testing.T) {
	var kept []json.RawMessage
	srv := newServer(t, nil, rawSchemas)
	require.NoError(t, srv.Add(mcpkit.NewTool("keep", func(args json.RawMessage) { kept = append(kept, args) }).Input(`{"type":"object"}`)))
	p := modern(t, srv)
	for i := range 3 {
		p.result("tools/call", fmt.Sprintf(`{"name":"keep","arguments":{"n":%d}}`, i))
	}
	p.result("tools/call", `{"name":"keep"}`)
	require.Equal(t, `[{"n":0} {"n":1} {"n":2} {}]`, fmt.Sprintf("%s", kept))
}

func TestAnOutputSchemaByHandReplacesThatOfTheType(t *testing.T) {
	srv := newServer(t, nil, rawSchemas, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	n := 1
	require.NoError(t, srv.Add(mcpkit.NewTool("count", func(what string) (map[string]int, error) { return map[string]int{what: n}, nil }).Params("what").
		Output(`{"type":"object","properties":{"a":{"type":"integer","maximum":5}},"required":["a"]}`)))
	p := modern(t, srv)
	require.Contains(t, p.result("tools/list", "{}"), `"outputSchema":{"type":"object","properties":{"a":{"type":"integer","maximum":5}},"required":["a"]}`)
	require.Contains(t, p.result("tools/call", `{"name":"count","arguments":{"what":"a"}}`), `"structuredContent":{"a":1}`)
	require.Contains(t, p.result("tools/call", `{"name":"count","arguments":{"what":"b"}}`), "internal error")
	n = 6
	require.Contains(t, p.result("tools/call", `{"name":"count","arguments":{"what":"a"}}`), "internal error")
}

type withoutSchema struct{}

func (*withoutSchema) Run(map[string]any) {}

func TestMistakesInSchemasByHandAreErrorsAtStartup(t *testing.T) {
	_, err := mcpkit.New(&withoutSchema{}, rawSchemas)
	require.ErrorContains(t, err, `parameter 1 (map[string]interface {}) can take all arguments, but nothing says what they are; `+
		`give their JSON Schema with Builder.Input, or name the parameter with the tag params`)
	const object = `{"type":"object"}`
	for want, tool := range map[string]*mcpkit.Builder{
		`input: the schema is not valid JSON`:                                                                                            mcpkit.NewTool("x", asMap).Input(``),
		`input: the schema of arguments has "type": "object" at its root`:                                                                mcpkit.NewTool("x", asMap).Input(`{"type":["object","null"]}`),
		`the schema has the property "limt", for which mcpkit_test.account has no field; add one, or take a map[string]any`:              mcpkit.NewTool("x", func(account) {}).Input(`{"type":"object","properties":{"limt":{}}}`),
		`the schema does not allow the argument "limit", for which mcpkit_test.account has a field; drop one of the two`:                 mcpkit.NewTool("x", func(account) {}).Input(`{"type":"object","additionalProperties":false}`),
		`the argument "token" is or has a secret, which the schema does not say; write "writeOnly": true there`:                          mcpkit.NewTool("x", func(account) {}).Input(object),
		`parameter 1 is a string, but the schema of the arguments is given, so one parameter takes all of them; write a struct, map[str`: mcpkit.NewTool("x", func(string) {}).Input(object),
		`input: the schema does not compile`:                                                                                             mcpkit.NewTool("x", asMap).Input(`{"type":"object","properties":{"a":{"pattern":"("}}}`),
		`leads out of the schema`:                                                                                                        mcpkit.NewTool("x", asMap).Input(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`),
		`output: the schema is not valid JSON`:                                                                                           mcpkit.NewTool("x", asMap).Input(object).Output(`{`),
		`parameters 1 (map[string]interface {}) and 2 (json.RawMessage) both take all arguments; there can be one`:                       mcpkit.NewTool("x", func(map[string]any, json.RawMessage) {}).Input(object),
		`parameter 1 is a map[string]string, but the schema of the arguments is given`:                                                   mcpkit.NewTool("x", func(map[string]string) {}).Input(object),
		`the params tag names "args", but the schema of the arguments is given; remove one of the two`:                                   mcpkit.NewTool("x", asJSON).Input(object).Params("args"),
		`parameter 1 (json.RawMessage) can take all arguments, but nothing says what they are`:                                           mcpkit.NewTool("x", asJSON),
	} {
		err := newServer(t, nil, rawSchemas).Add(tool)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "whole_test.go:", "the error says where it was built")
	}
	require.NoError(t, newServer(t, nil).Add(mcpkit.NewTool("x", asJSON).Params("value")), "with a name, it is one argument of any kind")
}

func TestSchemasByHandNeedAnOption(t *testing.T) {
	const advice = `: schemas that are written by hand need the option mcpkit.RawSchemas(rawschema.Compile) of the server, with the package github.com/mcpkit/mcpkit-go/reflectx/rawschema`
	srv := newServer(t, nil)
	require.ErrorContains(t, srv.Add(mcpkit.NewTool("x", asMap).Input(`{"type":"object"}`)), "input"+advice)
	require.ErrorContains(t, srv.Add(mcpkit.NewTool("x", func() string { return "" }).Output(`{"type":"object"}`)), "output"+advice)
	none := func(context.Context, *mcpkit.Call) (any, error) { return "fine", nil }
	require.NoError(t, srv.Add(mcpkit.NewTool("x", none)), "a tool without schemas takes no arguments")
	p := modern(t, srv)
	require.Contains(t, p.result("tools/call", `{"name":"x","arguments":{"a":1}}`), "/a: unknown")
}

func TestInputsThatClientsRefuseAreLoggedAtTheStart(t *testing.T) {
	var log strings.Builder
	srv := newServer(t, nil, rawSchemas, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))), mcpkit.Over(stdio.NewIO(strings.NewReader(""), io.Discard, nil)))
	require.NoError(t, srv.Add(mcpkit.NewTool("x", asMap).Desc("Is.").Input(`{"type":"object","oneOf":[{}]}`)))
	require.NoError(t, srv.Serve(t.Context()))
	require.Contains(t, log.String(), `msg="mcpkit: clients refuse the whole list for an input schema with oneOf at its root; move it to a property" tool=x`)
}
