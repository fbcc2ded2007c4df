package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

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
