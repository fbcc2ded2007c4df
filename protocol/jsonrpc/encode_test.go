package jsonrpc_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func TestIDsKeepTheirText(t *testing.T) {
	for _, test := range []struct {
		raw  string
		want jsonrpc.ID
		text string
	}{
		{`0`, jsonrpc.NumberID(0), `0`},
		{`-0`, jsonrpc.NumberID(0), `0`},
		{`-7`, jsonrpc.NumberID(-7), `-7`},
		{`9007199254740993`, jsonrpc.NumberID(9007199254740993), `9007199254740993`},
		{`9223372036854775807`, jsonrpc.NumberID(1<<63 - 1), `9223372036854775807`},
		{`-9223372036854775808`, jsonrpc.NumberID(-1 << 63), `-9223372036854775808`},
		{`""`, jsonrpc.StringID(""), `""`},
		{`"7"`, jsonrpc.StringID("7"), `"7"`},
		{`"a\u0062\/"`, jsonrpc.StringID("ab/"), `"ab/"`},
		{`"é\u00e9\ud83d\ude00"`, jsonrpc.StringID("éé😀"), `"éé😀"`},
		{`"\u0022\u005C\u000a\u0001"`, jsonrpc.StringID("\"\\\n\x01"), `"\"\\\n\u0001"`},
	} {
		t.Run(test.raw, func(t *testing.T) {
			id, ok := jsonrpc.ParseID([]byte(test.raw))
			require.True(t, ok)
			require.Equal(t, test.want, id)
			require.Equal(t, test.text, id.String())
			require.True(t, id.IsValid())
			var back, written jsonrpc.ID
			require.NoError(t, json.Unmarshal([]byte(test.raw), &back))
			require.Equal(t, test.want, back)
			text, err := json.Marshal(id)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &written))
			require.Equal(t, test.want, written)
		})
	}
	require.NotEqual(t, jsonrpc.NumberID(7), jsonrpc.StringID("7"))
	require.Equal(t, jsonrpc.StringID("a\uFFFD"), jsonrpc.StringID("a\xff"))
}

func TestInvalidIDsAreRefused(t *testing.T) {
	for _, raw := range []string{``, `null`, `1.0`, `1e3`, `1E3`, `-`, `--1`, `+1`, `01`, `-01`, `true`, `[]`, `{}`, `"`, `9223372036854775808`, `-9223372036854775809`, `10000000000000000000`, `99999999999999999999`, "\"\xff\"", `"\ud800"`} {
		t.Run(raw, func(t *testing.T) {
			id, ok := jsonrpc.ParseID([]byte(raw))
			require.False(t, ok)
			require.Equal(t, jsonrpc.ID{}, id)
			require.False(t, id.IsValid())
			require.Empty(t, id.String())
		})
	}
	var id jsonrpc.ID
	require.EqualError(t, id.UnmarshalJSON([]byte(`1.5`)), "jsonrpc: id must be a string or a 64-bit integer")
	require.NoError(t, id.UnmarshalJSON([]byte(`null`)))
	require.False(t, id.IsValid())
	text, err := json.Marshal(jsonrpc.ID{})
	require.NoError(t, err)
	require.Equal(t, `null`, string(text))
}

func TestRequestsAreWritten(t *testing.T) {
	type pair struct {
		A int    `json:"a"`
		B string `json:"b,omitempty"`
	}
	for _, test := range []struct {
		name   string
		id     jsonrpc.ID
		params any
		want   string
		a      string // what Param finds
	}{
		{"no params", jsonrpc.NumberID(1), nil, `{"jsonrpc":"2.0","id":1,"method":"m\"\n"}`, ""},
		{"notification", jsonrpc.ID{}, nil, `{"jsonrpc":"2.0","method":"m\"\n"}`, ""},
		{"struct", jsonrpc.StringID("x"), pair{A: 1}, `{"jsonrpc":"2.0","id":"x","method":"m\"\n","params":{"a":1}}`, "1"},
		{"map", jsonrpc.NumberID(1), map[string]any{"a": nil}, `{"jsonrpc":"2.0","id":1,"method":"m\"\n","params":{"a":null}}`, "null"},
		{"raw", jsonrpc.NumberID(1), json.RawMessage(" {\"a\" : [1]}\n"), `{"jsonrpc":"2.0","id":1,"method":"m\"\n","params":{"a":[1]}}`, "[1]"},
		{"raw null", jsonrpc.NumberID(1), json.RawMessage(`null`), `{"jsonrpc":"2.0","id":1,"method":"m\"\n"}`, ""},
		{"raw nothing", jsonrpc.NumberID(1), json.RawMessage(nil), `{"jsonrpc":"2.0","id":1,"method":"m\"\n"}`, ""},
		{"nil pointer", jsonrpc.NumberID(1), (*pair)(nil), `{"jsonrpc":"2.0","id":1,"method":"m\"\n"}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := jsonrpc.NewRequest(test.id, "m\"\n", test.params)
			require.NoError(t, err)
			require.Equal(t, test.want, string(jsonrpc.AppendRequest(nil, r)))
			require.Equal(t, test.a, string(r.Param("a")))
		})
	}
}

func TestInvalidParamsAreRefused(t *testing.T) {
	for _, test := range []struct {
		params any
		err    string
	}{
		{[]int{1}, `jsonrpc: params of "m" must be a JSON object; []int encodes as something else`},
		{json.RawMessage(`[1]`), `jsonrpc: params of "m" must be a JSON object; json.RawMessage encodes as something else`},
		{json.RawMessage(`{"a":}`), `jsonrpc: params of "m": `},
		{json.RawMessage(`{} {}`), `jsonrpc: params of "m": `},
		{json.RawMessage(`{"a":1,"a":2}`), `jsonrpc: params of "m": `},
	} {
		t.Run(test.err, func(t *testing.T) {
			_, err := jsonrpc.NewNotification("m", test.params)
			require.ErrorContains(t, err, test.err)
		})
	}
	_, err := jsonrpc.NewNotification("m", map[string]any{"f": func() {}})
	require.ErrorContains(t, err, `jsonrpc: params of "m": `)
}

func TestResponsesAreWritten(t *testing.T) {
	for _, test := range []struct {
		name string
		r    jsonrpc.Response
		want string
	}{
		{"result", jsonrpc.Response{ID: jsonrpc.NumberID(1), Result: json.RawMessage(`{"a":1}`)}, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{"nothing", jsonrpc.Response{ID: jsonrpc.NumberID(1)}, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"error", jsonrpc.Response{ID: jsonrpc.StringID("x"), Error: jsonrpc.Errorf(-32601, "no %q", "y")}, `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no \"y\""}}`},
		{"error with data", jsonrpc.Response{Error: &jsonrpc.Error{Code: 1, Message: "a\nb", Data: json.RawMessage(`[1]`)}}, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"a\nb","data":[1]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, string(jsonrpc.AppendResponse(nil, &test.r)))
			var out strings.Builder
			require.NoError(t, jsonrpc.WriteResponse(&out, &test.r))
			require.Equal(t, test.want, out.String())
		})
	}
}

func TestStreamsAreWritten(t *testing.T) {
	stream := func(text string, err error) *jsonrpc.Response {
		return &jsonrpc.Response{ID: jsonrpc.NumberID(1), Stream: func(w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return err
		}}
	}
	var out strings.Builder
	require.NoError(t, jsonrpc.WriteResponse(&out, stream(`[1,2]`, nil)))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":[1,2]}`, out.String())

	out.Reset()
	require.EqualError(t, jsonrpc.WriteResponse(&out, stream(`[1,`, errors.New("no more"))), "no more")
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":[1,`, out.String())
}
