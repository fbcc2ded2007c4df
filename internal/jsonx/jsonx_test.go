package jsonx_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

func TestPlainStructsEncodeAsInEncodingJSON(t *testing.T) {
	type value struct {
		List  []int          `json:"list"`
		Map   map[string]int `json:"map"`
		Zero  int            `json:"zero,omitempty"`
		False bool           `json:"false,omitempty"`
		Empty string         `json:"empty,omitempty"`
		Wait  time.Duration  `json:"wait"`
		HTML  string         `json:"html"`
	}
	const want = `{"list":[],"map":{},"wait":"1s","html":"<&>"}`
	v := value{Wait: time.Second, HTML: "<&>"}
	text, err := jsonx.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, want, string(text))

	text, err = jsonx.MarshalLarge(v)
	require.NoError(t, err)
	require.Equal(t, want, string(text))

	text, err = jsonx.Append([]byte("x"), v)
	require.NoError(t, err)
	require.Equal(t, "x"+want, string(text))
	text, err = jsonx.Append([]byte("x"), map[string]any{"a": 1, "b": func() {}})
	require.Error(t, err)
	require.Equal(t, "x", string(text))

	text, err = jsonx.Marshal(map[string]int{"c": 3, "a": 1, "b": 2})
	require.NoError(t, err)
	require.Equal(t, `{"a":1,"b":2,"c":3}`, string(text))
}

func TestNumbersAndBytesEncodeAsInEncodingJSON(t *testing.T) {
	type octet byte
	type value struct {
		Number  json.Number                 `json:"number"`
		Empty   json.Number                 `json:"empty"`
		Numbers map[json.Number]json.Number `json:"numbers"`
		Any     any                         `json:"any"`
		Sum     [2]byte                     `json:"sum"`
		Octets  []octet                     `json:"octets"`
	}
	v := value{Number: "1.50", Numbers: map[json.Number]json.Number{"1": "1e400"}, Any: map[string]any{"n": json.Number("9007199254740993")}, Sum: [2]byte{1, 2}, Octets: []octet{3}}
	want, err := json.Marshal(v)
	require.NoError(t, err)
	got, err := jsonx.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	_, err = jsonx.Marshal(json.Number("one"))
	require.Error(t, err)

	var back, backByLibrary value
	require.NoError(t, jsonx.Unmarshal(got, &back))
	require.NoError(t, json.Unmarshal(got, &backByLibrary))
	require.Equal(t, backByLibrary.Numbers, back.Numbers)
	require.Equal(t, backByLibrary.Octets, back.Octets)
	var n json.Number
	for _, number := range []string{`2`, `"2"`, `null`} {
		require.NoError(t, jsonx.Unmarshal([]byte(number), &n))
		require.Equal(t, json.Number("2"), n)
	}
	for _, bad := range []string{`"two"`, `true`, `[2]`} {
		require.Error(t, jsonx.Unmarshal([]byte(bad), &n), bad)
	}
}

func TestDurationsAreText(t *testing.T) {
	for text, want := range map[string]time.Duration{`"1h30m"`: 90 * time.Minute, `1000`: time.Microsecond, `null`: 0} {
		var d time.Duration
		require.NoError(t, jsonx.Unmarshal([]byte(text), &d))
		require.Equal(t, want, d)
	}
	for _, bad := range []string{`"soon"`, `true`, `[]`} {
		var d time.Duration
		require.Error(t, jsonx.Unmarshal([]byte(bad), &d), bad)
	}
	text, err := jsonx.Marshal(map[string][]time.Duration{"d": {90 * time.Minute}})
	require.NoError(t, err)
	require.Equal(t, `{"d":["1h30m0s"]}`, string(text))
}

func TestUnmarshalIsStrict(t *testing.T) {
	type value struct {
		A int `json:"a"`
		B struct {
			C []int `json:"c"`
		} `json:"b"`
	}
	for _, test := range []struct {
		name, data string
		pointer    string
		ok         bool
		want       int
	}{
		{name: "exact name", data: `{"a":1}`, ok: true, want: 1},
		{name: "another case", data: `{"A":1}`, ok: true},
		{name: "duplicate", data: `{"a":1,"a":2}`, pointer: "/a", want: 1},
		{name: "trailing data", data: `{"a":1}{}`, want: 1},
		{name: "bad UTF-8", data: "{\"x\":\"\xff\"}", pointer: "/x"},
		{name: "wrong type, deep", data: `{"b":{"c":[1,"x"]}}`, pointer: "/b/c/1"},
		{name: "fraction for an integer", data: `{"a":1.5}`, pointer: "/a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var v value
			err := jsonx.Unmarshal([]byte(test.data), &v)
			if test.ok {
				require.NoError(t, err)
				require.Equal(t, test.want, v.A)
				return
			}
			require.Error(t, err)
			require.Equal(t, test.pointer, jsonx.ErrorPointer(err))
		})
	}
	require.Empty(t, jsonx.ErrorPointer(nil))
}

func TestValid(t *testing.T) {
	for data, want := range map[string]bool{
		`{}`: true, ` [1] `: true, `"\ud83d\ude00"`: true,
		``: false, `{} {}`: false, `{"a":1,"a":1}`: false, `"\ud83d"`: false, "\"\xff\"": false, `01`: false,
	} {
		require.Equal(t, want, jsonx.Valid([]byte(data)), data)
	}
}

func TestCompact(t *testing.T) {
	got, err := jsonx.Compact([]byte("{ \"a b\" :\n[ 1 , 2 ] }\r\n"))
	require.NoError(t, err)
	require.Equal(t, `{"a b":[1,2]}`, string(got))
	_, err = jsonx.Compact([]byte(`{"a"`))
	require.Error(t, err)
}

func TestAppendingMembers(t *testing.T) {
	edit := func(obj string) string {
		return string(jsonx.AppendEdited([]byte("x"), []byte(obj), func(name, value []byte) []byte {
			switch {
			case jsonx.IsString(name, "old"):
				return []byte(`"new"`)
			case jsonx.IsString(name, "gone"):
				return nil
			}
			return value
		}))
	}
	require.Equal(t, `x{}`, edit(`{ "gone" : 1 }`))
	require.Equal(t, `x{"a":"{","old":"new","b":[ ]}`, edit(`{ "gone":1, "a" : "{", "old":{}, "gone":2, "b":[ ] }`))
	require.Equal(t, `[{},[],"["`, string(append(jsonx.AppendComma(append(jsonx.AppendComma([]byte(`[{}`)), "[]"...)), `"["`...)))
	require.Equal(t, `{"a":{"b":1}`, string(append(jsonx.AppendMember([]byte(`{"a":{`), []byte(`"b"`), []byte("1")), '}')))

	const obj = `{"a":1, "\u0062":2}`
	for name, want := range map[string]string{"a": `{"a":3,"\u0062":2}`, "b": `{"a":1,"\u0062":3}`, "c": `{"a":1,"\u0062":2,"c":3}`} {
		require.Equal(t, want, string(jsonx.With([]byte(obj), name, []byte("3"))))
	}
	require.Equal(t, `{"a":1}`, string(jsonx.With([]byte(obj), "b", nil)))
	require.Equal(t, `{"a":3}`, string(jsonx.With(nil, "a", []byte("3"))))
}

func TestWalkingObjects(t *testing.T) {
	const obj = " { \"a\" : [1, {\"b\": \"]}\"}] ,\n\"q\\\"\\\\\":\"x\\\\\",\"\\u0063\":null, \"d\":-1.5e3 }"
	var names, values []string
	for name, value := range jsonx.Members([]byte(obj)) {
		names, values = append(names, string(name)), append(values, string(value))
	}
	require.Equal(t, []string{`"a"`, `"q\"\\"`, `"\u0063"`, `"d"`}, names)
	require.Equal(t, []string{`[1, {"b": "]}"}]`, `"x\\"`, `null`, `-1.5e3`}, values)

	for name, want := range map[string]string{"a": `[1, {"b": "]}"}]`, `q"\`: `"x\\"`, "c": "null", "d": "-1.5e3", "b": "", "": ""} {
		require.Equal(t, want, string(jsonx.Member([]byte(obj), name)), name)
	}
	require.Nil(t, jsonx.Member([]byte(`[{"a":1}]`), "a"))
	require.Nil(t, jsonx.Member(nil, "a"))
	for name := range jsonx.Members([]byte(obj)) {
		require.Equal(t, `"a"`, string(name))
		break
	}
}

func TestWalkingArrays(t *testing.T) {
	for data, want := range map[string][]string{
		`[]`:                         nil,
		" [ 1 ,\"a,]\",[2,3] , {} ]": {`1`, `"a,]"`, `[2,3]`, `{}`},
		`{"a":1}`:                    nil,
		``:                           nil,
	} {
		var got []string
		for e := range jsonx.Elements([]byte(data)) {
			got = append(got, string(e))
		}
		require.Equal(t, want, got, data)
	}
}

func TestStrings(t *testing.T) {
	for raw, want := range map[string]string{
		`"a"`: "a", `""`: "", `"\u0061\n\\"`: "a\n\\", `"é"`: "é", `"\uD83D\uDE00"`: "😀", `1`: "", `null`: "", `"`: "", ``: "",
	} {
		require.Equal(t, want, jsonx.String([]byte(raw)), raw)
		if strings.HasPrefix(raw, `"`) && len(raw) > 1 {
			require.True(t, jsonx.IsString([]byte(raw), want), raw)
		}
		require.False(t, jsonx.IsString([]byte(raw), "other"), raw)
	}
}

func TestCheckSaysWhere(t *testing.T) {
	for data, want := range map[string]string{
		`{"a":1,"a":2}`: `/a`, `{"a":1,"b":[{"x":1`: `/b/0`, `{"a":1}{}`: ``, "{\"a\":1,\"b\":\"\xff\"}": `/b`, ``: ``,
	} {
		err := jsonx.Check([]byte(data))
		require.Error(t, err, data)
		require.Equal(t, want, jsonx.ErrorPointer(err), data)
	}
}

func TestIsDeeper(t *testing.T) {
	for data, depth := range map[string]int{``: 0, `1`: 0, `"[["`: 0, `[]`: 1, ` {"a":[{}],"b":["{[\"["]}`: 3, `[[],[[`: 3} {
		require.False(t, jsonx.IsDeeper([]byte(data), depth), data)
		require.True(t, jsonx.IsDeeper([]byte(data), depth-1), data)
	}
}

func TestKind(t *testing.T) {
	for raw, want := range map[string]byte{`{}`: '{', `[]`: '[', `"a"`: '"', `true`: 't', `false`: 'f', `null`: 'n', `-1`: '0', `7`: '0', ``: 0} {
		require.Equal(t, string(want), string(jsonx.Kind([]byte(raw))), raw)
	}
}

func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		"":                       `""`,
		"plain é 😀 <&>\u2028":    "\"plain é 😀 <&>\u2028\"",
		"\"\\\n\r\t\x00\x1f\x7f": "\"\\\"\\\\\\n\\r\\t\\u0000\\u001f\x7f\"",
		"sixteen bytes...\n":     `"sixteen bytes...\n"`,
		"a\xffb\xc0\x80":         "\"a\uFFFDb\uFFFD\uFFFD\"",
		"cut \xf0\x9f\x98":       "\"cut \uFFFD\uFFFD\uFFFD\"",
	} {
		require.Equal(t, want, string(jsonx.AppendString(nil, s)))
	}
}

// The walk sees what encoding/json sees, and stays in bounds on anything.
func FuzzWalk(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[{}]}`, `[1,"\"",{"a":"}"}]`, `["","a","\"","\\","\\\"","a\"b\"","\\\\","x"]`, `{"a" : "\\" , "\u0062":null}`, `{`, `["`, `{"a":`, `{"a"x`, `{"\`, `{"a":1,"a":2}`, `[}`, `{x`, `[1`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]string{}
		for name, value := range jsonx.Members(data) {
			got[jsonx.String(name)] = string(value)
		}
		var elements []string
		for e := range jsonx.Elements(data) {
			elements = append(elements, string(e))
		}
		jsonx.IsDeeper(data, 0)
		if !jsonx.Valid(data) {
			return
		}
		var obj map[string]json.RawMessage
		if json.Unmarshal(data, &obj) == nil {
			require.ElementsMatch(t, slices.Collect(maps.Keys(obj)), slices.Collect(maps.Keys(got)))
			for name, value := range obj {
				require.Equal(t, string(value), got[name])
				require.Equal(t, string(value), string(jsonx.Member(data, name)))
			}
		}
		var arr []json.RawMessage
		if json.Unmarshal(data, &arr) == nil {
			require.Len(t, elements, len(arr))
			for i, e := range arr {
				require.Equal(t, string(e), elements[i])
			}
		}
	})
}

func TestURLsAreText(t *testing.T) {
	u, err := url.Parse("https://example.com/a?b=c")
	require.NoError(t, err)
	type value struct {
		URL  url.URL  `json:"url"`
		Ptr  *url.URL `json:"ptr"`
		None *url.URL `json:"none"`
	}
	const want = `{"url":"https://example.com/a?b=c","ptr":"https://example.com/a?b=c","none":null}`
	text, err := jsonx.Marshal(value{URL: *u, Ptr: u})
	require.NoError(t, err)
	require.Equal(t, want, string(text))
	var back value
	require.NoError(t, jsonx.Unmarshal([]byte(want), &back))
	require.Equal(t, value{URL: *u, Ptr: u}, back)
	require.Error(t, jsonx.Unmarshal([]byte(`{"url":5}`), &back))
	require.Error(t, jsonx.Unmarshal([]byte(`{"url":"http://[::1"}`), &back))
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	v := map[string][]string{"a\xff": {"b\xffc"}}
	const want = `{"a�":["b�c"]}`
	text, err := jsonx.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
	var s string
	require.Error(t, jsonx.Unmarshal([]byte("\"a\xff\""), &s), "what peers send is read strictly")
}
