package jsonrpc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func TestParamsOfNotificationsThatAreNotAnObjectAreIgnored(t *testing.T) {
	for _, params := range []string{`[]`, `[1]`, `7`, `"x"`, `true`} {
		m, bad := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","method":"m","params":` + params + `}`))
		require.Nil(t, bad, params)
		require.True(t, m.Request.IsNotification())
		require.Equal(t, "m", m.Request.Method)
		require.Nil(t, m.Request.Params)
	}
}

func TestDecodeReadsRequests(t *testing.T) {
	for _, test := range []struct {
		name, data string
		id         jsonrpc.ID
		method     string
		params     string
	}{
		{name: "request", data: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, id: jsonrpc.NumberID(1), method: "ping"},
		{name: "notification", data: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, method: "notifications/initialized"},
		{name: "members in any order", data: `{"params":{"a":1},"method":"m","id":"x","jsonrpc":"2.0"}`, id: jsonrpc.StringID("x"), method: "m", params: `{"a":1}`},
		{name: "white space", data: " {\t\"jsonrpc\" : \"2.0\" ,\r\n\"id\" : 7 , \"method\" : \"m\" , \"params\" : { \"a\" : 1 } } \n", id: jsonrpc.NumberID(7), method: "m", params: `{ "a" : 1 }`},
		{name: "null params are absent", data: `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, id: jsonrpc.NumberID(1), method: "m"},
		{name: "empty params", data: `{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, id: jsonrpc.NumberID(1), method: "m", params: `{}`},
		{name: "unknown members", data: `{"jsonrpc":"2.0","id":1,"method":"m","trace":{"id":2},"metho":1}`, id: jsonrpc.NumberID(1), method: "m"},
		{name: "names with escapes", data: `{"\u006asonrpc":"2\u002e0","\u0069d":1,"meth\u006fd":"a\/b","p\u0061rams":{"a":1}}`, id: jsonrpc.NumberID(1), method: "a/b", params: `{"a":1}`},
		{name: "largest id", data: `{"jsonrpc":"2.0","id":9223372036854775807,"method":"m"}`, id: jsonrpc.NumberID(1<<63 - 1), method: "m"},
		{name: "smallest id", data: `{"jsonrpc":"2.0","id":-9223372036854775808,"method":"m"}`, id: jsonrpc.NumberID(-1 << 63), method: "m"},
		{name: "empty string id", data: `{"jsonrpc":"2.0","id":"","method":"m"}`, id: jsonrpc.StringID(""), method: "m"},
		{name: "id with escapes", data: `{"jsonrpc":"2.0","id":"\u0041\/\n\ud83d\ude00","method":"m"}`, id: jsonrpc.StringID("A/\n😀"), method: "m"},
		{name: "minus zero", data: `{"jsonrpc":"2.0","id":-0,"method":"m"}`, id: jsonrpc.NumberID(0), method: "m"},
		{name: "names that differ by case in params", data: `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"A":2}}`, id: jsonrpc.NumberID(1), method: "m", params: `{"a":1,"A":2}`},
		{name: "deepest", data: nested(128), id: jsonrpc.NumberID(1), method: "m", params: `{"a":` + strings.Repeat("[", 126) + strings.Repeat("]", 126) + `}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, bad := jsonrpc.Decode([]byte(test.data))
			require.Nil(t, bad)
			require.Nil(t, m.Response)
			require.NotNil(t, m.Request)
			require.Equal(t, test.id, m.Request.ID)
			require.Equal(t, test.method, m.Request.Method)
			require.Equal(t, test.params, string(m.Request.Params))
			require.Equal(t, !test.id.IsValid(), m.Request.IsNotification())
		})
	}
}

// nested returns a request with the given number of levels, including the message and its params.
func nested(levels int) string {
	return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` +
		strings.Repeat("[", levels-2) + strings.Repeat("]", levels-2) + `}}`
}

func TestDecodeReadsResponses(t *testing.T) {
	for _, test := range []struct {
		name, data string
		want       jsonrpc.Response
	}{
		{name: "result", data: `{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}`,
			want: jsonrpc.Response{ID: jsonrpc.NumberID(1), Result: json.RawMessage(`{"a":[1]}`)}},
		{name: "result of any kind", data: `{"jsonrpc":"2.0","id":"x","result":null}`,
			want: jsonrpc.Response{ID: jsonrpc.StringID("x"), Result: json.RawMessage(`null`)}},
		{name: "error", data: `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no \"x\"","data":{"a":1},"more":0}}`,
			want: jsonrpc.Response{ID: jsonrpc.NumberID(1), Error: &jsonrpc.Error{Code: -32601, Message: `no "x"`, Data: json.RawMessage(`{"a":1}`)}}},
		{name: "error to nobody", data: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}`,
			want: jsonrpc.Response{Error: &jsonrpc.Error{Code: -32700}}},
		{name: "error without id", data: `{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`,
			want: jsonrpc.Response{Error: &jsonrpc.Error{Code: -32700, Message: "m"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, bad := jsonrpc.Decode([]byte(test.data))
			require.Nil(t, bad)
			require.Nil(t, m.Request)
			require.Equal(t, &test.want, m.Response)
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	const request = jsonrpc.CodeInvalidRequest
	const parse = jsonrpc.CodeParseError
	one, none := jsonrpc.NumberID(1), jsonrpc.ID{}
	for _, test := range []struct {
		data string
		id   jsonrpc.ID
		code int
		err  string
	}{
		{``, none, parse, `invalid JSON: unexpected EOF`},
		{`{"jsonrpc":"2.0","id":1,"method":"m"`, none, parse, `invalid JSON: unexpected EOF after offset 36`},
		{`{"jsonrpc":"2.0","id":1,"method":"m"}{}`, none, parse, `invalid JSON: invalid character '{' after top-level value after offset 37`},
		{`hello`, none, parse, ``},
		{"{\"method\":\"a\nb\"}", none, parse, ``},
		{"{\"method\":\"a\xff\"}", none, parse, ``},
		{"\xef\xbb\xbf{}", none, parse, ``},
		{`{"method":"\ud800"}`, none, parse, ``},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"n"}`, none, parse, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"m","x":1,"\u0078":2}`, none, parse, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":[{"a":1,"\u0061":3}]}}`, none, parse, ``},
		{strings.Repeat("[", 1_000_000), none, parse, ``},

		{`[]`, none, request, `invalid message: a message is a JSON object`},
		{`null`, none, request, `invalid message: a message is a JSON object`},
		{`{}`, none, request, `invalid message: jsonrpc must be "2.0"`},
		{`{"id":1,"method":"m"}`, one, request, `invalid message: jsonrpc must be "2.0"`},
		{`{"jsonrpc":"1.0","id":1,"method":"m"}`, one, request, `invalid message: jsonrpc must be "2.0"`},
		{`{"jsonrpc":"2.0","id":1}`, one, request, `invalid message: it has no method`},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, one, request, `invalid message: method must be a string that is not empty`},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, one, request, `invalid message: method must be a string that is not empty`},
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, none, request, `invalid message: id must be a string or a 64-bit integer`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, none, request, `invalid message: id must be a string or a 64-bit integer`},
		{`{"jsonrpc":"2.0","id":[1],"method":"m"}`, none, request, `invalid message: id must be a string or a 64-bit integer`},
		{`{"jsonrpc":"2.0","id":9223372036854775808,"method":"m"}`, none, request, `invalid message: id must be a string or a 64-bit integer`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, one, request, `invalid message: params must be an object`},
		{`{"jsonrpc":"2.0","id":1,"Method":"m"}`, one, request, `invalid message: member "Method" differs from "method" only by case`},
		{`{"jsonrpc":"2.0","ID":1,"method":"m"}`, none, request, `invalid message: member "ID" differs from "id" only by case`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","param\u017f":{}}`, one, request, `invalid message: member "paramſ" differs from "params" only by case`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, one, request, `invalid message: it has a method and a result or an error`},
		{nested(129), one, request, `invalid message: nested deeper than 128 levels`},
	} {
		t.Run(fmt.Sprintf("%.60q", test.data), func(t *testing.T) {
			m, bad := jsonrpc.Decode([]byte(test.data))
			require.Equal(t, jsonrpc.Message{}, m)
			require.NotNil(t, bad)
			require.Contains(t, bad.Error.Message, test.err)
			require.Equal(t, test.code, bad.Error.Code)
			require.Equal(t, test.id, bad.ID)
		})
	}
}

// The response to a malformed response has no ID, which the peer would take for one of its own. The
// caller that waits for the response still gets an error.
func TestDecodeRefusesMalformedResponses(t *testing.T) {
	for _, test := range []struct {
		data string
		id   jsonrpc.ID
		err  string
	}{
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, jsonrpc.NumberID(1), `it has a result and an error`},
		{`{"jsonrpc":"2.0","id":1,"error":"x"}`, jsonrpc.NumberID(1), `error must be an object with an integer code and a string message`},
		{`{"jsonrpc":"2.0","id":1,"error":{"message":""}}`, jsonrpc.NumberID(1), `error must be an object with an integer code and a string message`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}`, jsonrpc.NumberID(1), `error must be an object with an integer code and a string message`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, jsonrpc.NumberID(1), `error must be an object with an integer code and a string message`},
		{`{"id":1,"result":{}}`, jsonrpc.NumberID(1), `jsonrpc must be "2.0"`},
		{`{"jsonrpc":"2.0","id":1,"Error":1,"result":{}}`, jsonrpc.NumberID(1), `member "Error" differs from "error" only by case`},
		{`{"jsonrpc":"2.0","result":{}}`, jsonrpc.ID{}, `a result must have the id of its request`},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, jsonrpc.ID{}, `a result must have the id of its request`},
		{`{"jsonrpc":"2.0","id":1.5,"result":{}}`, jsonrpc.ID{}, `id must be a string or a 64-bit integer`},
	} {
		t.Run(test.data, func(t *testing.T) {
			m, bad := jsonrpc.Decode([]byte(test.data))
			require.Nil(t, m.Request)
			require.NotNil(t, bad)
			require.Equal(t, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid message: " + test.err}, bad.Error)
			require.Equal(t, jsonrpc.ID{}, bad.ID)
			if !test.id.IsValid() {
				require.Nil(t, m.Response)
				return
			}
			require.Equal(t, &jsonrpc.Response{ID: test.id, Error: &jsonrpc.Error{
				Code: jsonrpc.CodeInvalidRequest, Message: "malformed response: " + test.err}}, m.Response)
		})
	}
}

func TestParamFindsMembers(t *testing.T) {
	many := `{"m0":0,"m1":1,"m2":2,"m3":3,"m4":4,"m5":5,"m6":{"m7":1},"m7":7}`
	decode := func(params string) *jsonrpc.Request {
		m, bad := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":` + params + `}`))
		require.Nil(t, bad)
		return m.Request
	}
	for _, test := range []struct {
		name string
		r    *jsonrpc.Request
		find string
		want string
	}{
		{"first", decode(many), "m0", "0"},
		{"last", decode(many), "m7", "7"},
		{"object", decode(many), "m6", `{"m7":1}`},
		{"absent", decode(many), "m", ""},
		{"absent, longer than the object", decode(`{"a":1}`), strings.Repeat("a", 100), ""},
		{"a name that would run into the value", decode(`{"a":"b","c":1}`), `a":"b`, ""},
		{"null", decode(`{"a":null}`), "a", "null"},
		{"escaped", decode(`{"\u0061":1,"b":2}`), "a", "1"},
		{"beside an escaped one", decode(`{"\u0061":1,"b":2}`), "b", "2"},
		{"with a quote", decode(`{"a\"b":1}`), `a"b`, "1"},
		{"empty name", decode(`{"":1}`), "", "1"},
		{"white space", decode("{ \"a\" :\n 1 }"), "a", "1"},
		{"no params", &jsonrpc.Request{Method: "m"}, "a", ""},
		{"made by hand", &jsonrpc.Request{Method: "m", Params: json.RawMessage(` {"a":1}`)}, "a", "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, string(test.r.Param(test.find)))
		})
	}

	t.Run("appending to a value does not write over its neighbour", func(t *testing.T) {
		r := decode(`{"a":1,"b":2}`)
		_ = append(r.Param("a"), 'x')
		require.Equal(t, `{"a":1,"b":2}`, string(r.Params))
	})
}

func TestBatch(t *testing.T) {
	elements := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]" }
	for _, test := range []struct {
		name, data string
		want       []string
		isBatch    bool
		code       int
		err        string
	}{
		{name: "object", data: ` {"a":1}`},
		{name: "garbage", data: `x`},
		{name: "nothing", data: ``},
		{name: "two", data: " [ {\"a\":[1]} ,2 ]\n", want: []string{`{"a":[1]}`, `2`}, isBatch: true},
		{name: "empty", data: `[]`, isBatch: true, code: -32600, err: "invalid message: a batch must not be empty"},
		{name: "malformed", data: `[{},`, isBatch: true, code: -32700, err: "invalid JSON: malformed array"},
		{name: "something after it", data: `[{}]]`, isBatch: true, code: -32700, err: "invalid JSON: malformed array"},
		{name: "too many", data: elements(101), isBatch: true, code: -32600, err: "invalid message: a batch may have 100 messages at most"},
		{name: "too deep", data: strings.Repeat("[", 129) + strings.Repeat("]", 129), isBatch: true, code: -32600, err: "invalid message: nested deeper than 128 levels"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, isBatch, bad := jsonrpc.Batch([]byte(test.data))
			var texts []string
			for _, e := range got {
				texts = append(texts, string(e))
			}
			require.Equal(t, test.want, texts)
			require.Equal(t, test.isBatch, isBatch)
			if test.err == "" {
				require.Nil(t, bad)
				return
			}
			require.Equal(t, &jsonrpc.Error{Code: test.code, Message: test.err}, bad.Error)
			require.False(t, bad.ID.IsValid())
		})
	}
	got, _, bad := jsonrpc.Batch([]byte(elements(100)))
	require.Nil(t, bad)
	require.Len(t, got, 100)
}

// FuzzDecode decodes arbitrary messages: the result is always one of the three.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(toolsCall))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\u0061","error":{"code":-1,"message":"m","data":[1]}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"m"},{}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\"\\","b":[[1]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := string(data)
		m, bad := jsonrpc.Decode(data)
		require.Equal(t, before, string(data))
		switch {
		case bad != nil:
			require.Nil(t, m.Request)
			require.NotNil(t, bad.Error)
		case m.Request != nil:
			require.Nil(t, m.Response)
			again, bad := jsonrpc.Decode(jsonrpc.AppendRequest(nil, m.Request))
			require.Nil(t, bad)
			require.Equal(t, m.Request.ID, again.Request.ID)
			require.Equal(t, m.Request.Method, again.Request.Method)
			for name, value := range jsonx.Members(m.Request.Params) {
				require.Equal(t, string(value), string(m.Request.Param(jsonx.String(name))))
			}
		default:
			again, bad := jsonrpc.Decode(jsonrpc.AppendResponse(nil, m.Response))
			require.Nil(t, bad)
			require.Equal(t, m.Response, again.Response)
		}
		if elements, _, bad := jsonrpc.Batch(data); bad == nil {
			for _, e := range elements {
				require.True(t, json.Valid(e))
			}
		}
	})
}

const toolsCall = `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"search","arguments":` +
	`{"query":"quarterly report","limit":25,"tags":["finance","2026","draft"],"filter":{"field":"author","op":"eq","value":"someone"}},` +
	`"_meta":{"progressToken":"p-42","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"}}}}`

func TestReadBeginningOfMalformedMessages(t *testing.T) {
	for beginning, want := range map[string]struct {
		id                string
		request, response bool
	}{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"xxxx`:             {"7", true, false},
		`{"jsonrpc":"2.0","method":"tools/call","id":"a","params":{"x`:                  {`"a"`, true, false},
		`{"id":7,"jsonrpc":"2.0","result":{"content":[`:                                 {"7", false, true},
		`{"jsonrpc":"2.0","id":7,"error":{"message":"xx`:                                {"7", false, true},
		`{"result":{"content":[{"type":"text","text":"xxxx`:                             {"", false, true},
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"`:                 {"", true, false},
		`{"params":{"id":5,"method":"x","x":"xxx`:                                       {"", false, false},
		`{"jsonrpc":"2.0","id":[],"method":"x","params":{`:                              {"", true, false},
		`{"jsonrpc":"2.0","id":12`:                                                      {"", false, false},
		`{"jsonrpc":"2.0","id":7}`:                                                      {"7", false, false},
		`[{"jsonrpc":"2.0","id":7`:                                                      {"", false, false},
		`{"jsonrpc":"2.0","id":7,"Result":{}}`:                                          {"7", false, true},
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}":                            {"7", false, true},
		"{\"result\":\"\xff\",\"id\":7}":                                                {"7", false, true},
		`{"id":7,"result":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: {"7", false, true},
		`{"id":7,"result":` + strings.Repeat("[", 20_000):                               {"7", false, true},
		`{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`:                                   {"", false, true},
		`{"jsonrpc":"2.0","id":7,"method":"x","result":{}}`:                             {"7", true, false},
		`xxxxxxxx`: {"", false, false},
		``:         {"", false, false},
	} {
		h := jsonrpc.ReadBeginning([]byte(beginning))
		id := ""
		if h.ID.IsValid() {
			id = h.ID.String()
		}
		require.Equal(t, want.id, id, beginning)
		require.Equal(t, want.request, h.Request, beginning)
		require.Equal(t, want.response, h.Response, beginning)
	}
}

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
