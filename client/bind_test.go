package client_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestBoundFunctionsCallTools(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		c := dial(t)
		var shop struct {
			Search  func(ctx context.Context, in SearchInput) ([]Hit, error)      `mcp:"search"`
			Add     func(ctx context.Context, in *AddInput) (int, error)          `mcp:"add"`
			Sum     func(ctx context.Context, in map[string]int) (float64, error) `mcp:"add"`
			Tagline func(ctx context.Context) (string, error)                     `mcp:"tagline"`
			Say     func(ctx context.Context) error                               `mcp:"tagline"`
			Whole   func(ctx context.Context) (*protocol.CallToolResult, error)   `mcp:"tagline"`
			Other   func(ctx context.Context)
			Skipped int `mcp:"-"`
		}
		require.NoError(t, c.Bind(&shop))
		require.Nil(t, shop.Other)
		ctx := t.Context()

		hits, err := shop.Search(ctx, SearchInput{Query: "tea"})
		require.NoError(t, err)
		require.Equal(t, []Hit{{ID: 1 << 60, Title: "tea"}}, hits)
		sum, err := shop.Add(ctx, &AddInput{2, 3})
		require.NoError(t, err)
		require.Equal(t, 5, sum)
		float, err := shop.Sum(ctx, map[string]int{"a": 1, "b": 1})
		require.NoError(t, err)
		require.Equal(t, 2.0, float)
		line, err := shop.Tagline(ctx)
		require.NoError(t, err)
		require.Equal(t, "Everything must go.", line)
		require.NoError(t, shop.Say(ctx))
		whole, err := shop.Whole(ctx)
		require.NoError(t, err)
		require.Len(t, whole.Content, 1)

		_, err = shop.Search(ctx, SearchInput{})
		var toolErr *client.ToolError
		require.ErrorAs(t, err, &toolErr)
	})
}

func TestBindReportsEveryFault(t *testing.T) {
	c := dial(t, shop(t))
	for _, test := range []struct {
		name string
		dst  any
		err  string
	}{
		{"not a pointer", struct{}{}, "client: Bind(struct {}): want a pointer to a struct"},
		{"nil", nil, "client: Bind(<nil>): want a pointer to a struct"},
		{"no tag", &struct{ F func() }{}, "client: Bind: struct { F func() } has no field with the tag mcp"},
		{"a misspelt tool", &struct {
			F func(context.Context) error `mcp:"serch"`
		}{}, `client: Bind: field F: the server has no tool "serch"; did you mean "search"?`},
		{"not a function", &struct {
			F int `mcp:"add"`
		}{}, `client: Bind: field F: its type is int; want func(context.Context, In) (Out, error), where In or Out may be missing`},
	} {
		t.Run(test.name, func(t *testing.T) { require.EqualError(t, c.Bind(test.dst), test.err) })
	}

	type bound struct {
		Search func(context.Context) (int, bool, error) `mcp:"search"`
		Add    func(context.Context, AddInput) error    `mcp:"add"`
		hidden func(context.Context) error              `mcp:"tagline"`
	}
	var dst bound
	require.EqualError(t, c.Bind(&dst), `client: Bind: field Search: its type is func(context.Context) (int, bool, error); want func(context.Context, In) (Out, error), where In or Out may be missing
client: Bind: field hidden: it is not exported`)
	require.Nil(t, dst.Add, "no field is set if one is wrong")
	require.Nil(t, dst.hidden)
}

type misspelt struct{}

func (misspelt) Elicit(context.Context, *protocol.ElicitParams) error { return nil }
func (misspelt) Sampel(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	return nil, nil
}

type onPointer struct{}

func (*onPointer) Log(context.Context, *protocol.LoggingMessageParams) {}

func TestInvalidHandlersAreRefused(t *testing.T) {
	for _, test := range []struct {
		h   any
		err string
	}{
		{nil, "client: Handlers(nil): want a value with methods"},
		{(*onPointer)(nil), "client: Handlers(nil): want a value with methods"},
		{onPointer{}, "client: Handlers: client_test.onPointer has none of the methods; if they have a pointer receiver, pass a pointer"},
		{misspelt{}, `client: Handlers: client_test.misspelt.Elicit is a func(context.Context, *protocol.ElicitParams) error; want func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error)
client: Handlers: client_test.misspelt.Sampel has the signature of Sample; rename it`},
	} {
		_, err := dialing(t, shop(t), client.Handlers(test.h))
		require.EqualError(t, err, test.err)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, test := range []struct {
		opt client.DialOption
		err string
	}{
		{client.Version("2099-01-01"), `client: Version("2099-01-01"): unknown version; known are ["2026-07-28" "2025-11-25" "2025-06-18" "2025-03-26" "2024-11-05"]`},
		{client.MaxMessageBytes(0), "client: MaxMessageBytes(0): the minimum is 1"},
		{client.MaxRounds(-1), "client: MaxRounds(-1): the minimum is 0"},
		{client.LogLevel("loud"), `client: LogLevel("loud"): no such level`},
	} {
		_, err := dialing(t, shop(t), test.opt)
		require.EqualError(t, err, test.err)
	}
}

func TestOutputsAreDecodedIntoTheTypeOfTheCaller(t *testing.T) {
	const wrapped = `{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}`
	for _, test := range []struct {
		name, schema, output string
		check                func(t *testing.T, c *client.Client)
	}{
		{"a wrapped list, as the schema says", wrapped, `{"result":[1,2]}`, gives([]int{1, 2})},
		{"any type, as the schema says", wrapped, `{"result":[1]}`, gives[any]([]any{1.0})},
		{"an object that happens to have that member", `{"type":"object","properties":{"result":{},"other":{}}}`, `{"result":1}`, gives(map[string]int{"result": 1})},
		{"no schema, into a list", "", `{"result":[1,2]}`, gives([]int{1, 2})},
		{"no schema, into a map", "", `{"result":1}`, gives(map[string]int{"result": 1})},
		{"no schema, into a struct with that field", "", `{"result":1}`, gives(struct {
			Result int `json:"result"`
		}{1})},
		{"null", "", `null`, gives[*int](nil)},
		{"a scalar", "", `7`, gives(7)},
	} {
		t.Run(test.name, func(t *testing.T) {
			schema := ""
			if test.schema != "" {
				schema = `,"outputSchema":` + test.schema
			}
			f := newFake(t, map[string]answer{
				"tools/list": result(`{"tools":[{"name":"x","inputSchema":{"type":"object"}` + schema + `}]}`),
				"tools/call": result(`{"resultType":"complete","content":[],"structuredContent":` + test.output + `}`),
			})
			c := dial(t, f.URL)
			if test.schema != "" {
				list(t, c)
			}
			test.check(t, c)
		})
	}
	f := newFake(t, map[string]answer{"tools/call": result(`{"content":[{"type":"text","text":" {\"id\":5} "}]}`)})
	c := dial(t, f.URL)
	gives(Hit{ID: 5})(t, c)
	gives(` {"id":5} `)(t, c)
	_, err := client.Call[[]int](t.Context(), c, "x", nil)
	require.EqualError(t, err, `client: tools/call "x": the output does not decode: json: cannot unmarshal JSON object into Go []int`)
	_, err = client.Call[int](t.Context(), c, "x", []int{1})
	require.EqualError(t, err, `client: tools/call "x": the arguments must be a JSON object; []int does not encode as one`)
	f.on["tools/call"] = raw("application/json", done("hm"))
	_, err = client.Call[int](t.Context(), c, "x", nil)
	require.EqualError(t, err, `client: tools/call "x": the tool returned neither structured content nor JSON to decode into int, but "hm"`)
	f.on["tools/call"] = status(http.StatusTeapot, "")
	_, err = client.Call[int](t.Context(), c, "x", nil)
	require.EqualError(t, err, `client: tools/call "x": the server responded with HTTP status 418 I'm a teapot`)
}

// gives checks that the tool x returns want.
func gives[T any](want T) func(t *testing.T, c *client.Client) {
	return func(t *testing.T, c *client.Client) {
		t.Helper()
		got, err := client.Call[T](t.Context(), c, "x", nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestOutputsAreCheckedAgainstTheirSchema(t *testing.T) {
	const bad = `{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":"one","more":{}}}`
	listed := func(schema string) answer {
		return result(`{"tools":[{"name":"x","inputSchema":{"type":"object"},"outputSchema":` + schema + `}]}`)
	}
	const strict = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n","m"]}`
	for _, test := range []struct {
		name   string
		schema string
		opts   []client.CallOption
		err    string
	}{
		{"valid", `{"type":"object","properties":{"n":{"type":"string"}}}`, nil, ""},
		{"invalid", strict, nil, `client: tool "x": the output violates its schema: at "": missing property 'm'; at "/n": got string, want integer`},
		{"invalid, but not checked", strict, []client.CallOption{client.UncheckedOutput()}, ""},
		{"a schema that refers to another document", `{"$ref":"https://evil.example.com/schema"}`, nil, ""},
		{"an invalid schema", `{"type":7}`, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, map[string]answer{"tools/list": listed(test.schema), "tools/call": result(bad)})
			c := dial(t, f.URL)
			require.Len(t, list(t, c), 1)
			r, err := c.CallTool(t.Context(), "x", nil, test.opts...)
			require.NotNil(t, r, "the result is returned in any case")
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.err)
			var wrong *client.OutputError
			require.ErrorAs(t, err, &wrong)
			require.Same(t, r, wrong.Result)
		})
	}

	t.Run("a pattern, which only CheckPatterns checks", func(t *testing.T) {
		f := newFake(t, map[string]answer{
			"tools/list": listed(`{"type":"object","properties":{"n":{"pattern":"^t"}}}`), "tools/call": result(bad),
		})
		c := dial(t, f.URL, client.CheckPatterns())
		require.Len(t, list(t, c), 1)
		_, err := c.CallTool(t.Context(), "x", nil)
		require.EqualError(t, err, `client: tool "x": the output violates its schema: at "/n": 'one' does not match pattern '^t'`)
	})

	t.Run("the schema has changed", func(t *testing.T) {
		f := newFake(t, map[string]answer{
			"tools/list": inTurn(listed(strict), listed(`{"type":"object"}`)), "tools/call": result(bad),
		})
		c := dial(t, f.URL)
		require.Len(t, list(t, c), 1)
		_, err := c.CallTool(t.Context(), "x", nil)
		require.NoError(t, err)
		require.Equal(t, 2, f.count("tools/list"))
	})
}

// deaf has no method for URLs.
type deaf struct{}

func (deaf) Progress(context.Context, *protocol.ProgressParams) {}

func TestCallsAreRetriedAfterTheUserVisitedTheURL(t *testing.T) {
	needed := func(mode, url string) answer {
		return rpcError(-32042, "log in first", `{"elicitations":[{"mode":"`+mode+`","elicitationId":"e1","message":"Log in.","url":"`+url+`"}]}`)
	}
	for _, test := range []struct {
		name    string
		first   answer
		handler any
		calls   int
		err     string
	}{
		{"visited", needed("url", "https://bank.example.com/login"), &clicker{}, 2, ""},
		{"a client that cannot visit URLs", needed("url", "https://bank.example.com/login"), deaf{}, 1, "log in first (code -32042)"},
		{"a form", needed("form", "https://bank.example.com/login"), &clicker{}, 1, "not in URL mode"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newLegacyFake(t, map[string]answer{"tools/call": inTurn(test.first, raw("application/json", done("paid")))})
			text, err := client.Call[string](t.Context(), dial(t, f.URL, client.Handlers(test.handler)), "pay", nil)
			require.Equal(t, test.calls, f.count("tools/call"))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "paid", text)
			require.Equal(t, []string{"https://bank.example.com/login"}, test.handler.(*clicker).urls)
		})
	}
}
