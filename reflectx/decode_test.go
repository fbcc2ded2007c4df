package reflectx_test

import (
	"context"
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
)

// violations decodes args, which must be wrong, and returns one line for each violation.
func violations[T any](t testing.TB, in *reflectx.Input, args string) []string {
	t.Helper()
	_, err := decode[T](t, in, args)
	require.IsType(t, &reflectx.ArgumentError{}, err, "%s", args)
	var lines []string
	for _, v := range err.(*reflectx.ArgumentError).Violations {
		lines = append(lines, v.String())
	}
	return lines
}

func TestIntegersAreExact(t *testing.T) {
	type input struct {
		I int64  `json:"i,omitempty"`
		U uint64 `json:"u,omitempty"`
		B int8   `json:"b,omitempty"`
	}
	in := newInput[input](t)
	for _, test := range []struct {
		args string
		want input
	}{
		{`{"i":9007199254740993}`, input{I: 1<<53 + 1}},
		{`{"i":9223372036854775807}`, input{I: math.MaxInt64}},
		{`{"i":-9223372036854775808}`, input{I: math.MinInt64}},
		{`{"i":9.223372036854775807e18}`, input{I: math.MaxInt64}},
		{`{"i":-0}`, input{}},
		{`{"i":2.0}`, input{I: 2}},
		{`{"i":1e2}`, input{I: 100}},
		{`{"i":1200e-2}`, input{I: 12}},
		{`{"u":18446744073709551615}`, input{U: math.MaxUint64}},
		{`{"u":1844674407370955161.5e1}`, input{U: math.MaxUint64}},
		{`{"u":-0.0}`, input{}},
		{`{"b":-128}`, input{B: -128}},
	} {
		got, err := decode[input](t, in, test.args)
		require.NoError(t, err, test.args)
		require.Equal(t, test.want, got, test.args)
	}
	for _, args := range []string{
		`{"i":9223372036854775808}`, `{"i":-9223372036854775809}`, `{"i":0.5}`, `{"i":1e-1}`, `{"i":1e19}`, `{"i":1e999999999999999999999}`, `{"i":5e-999999999999999999999}`,
		`{"u":18446744073709551616}`, `{"u":-1}`, `{"u":1e20}`, `{"b":128}`, `{"b":1e3}`, `{"i":"1"}`, `{"i":true}`, `{"i":[1]}`,
	} {
		require.Len(t, violations[input](t, in, args), 1, args)
	}
}

func TestValuesOfEveryShape(t *testing.T) {
	type input struct {
		Any   any                `json:"any,omitempty"`
		Raw   json.RawMessage    `json:"raw,omitempty"`
		Bytes []byte             `json:"bytes,omitempty"`
		Time  time.Time          `json:"time,omitempty"`
		Took  time.Duration      `json:"took,omitempty"`
		URL   url.URL            `json:"url,omitempty"`
		Addr  *netip.Addr        `json:"addr"`
		Big   *big.Int           `json:"big"`
		Num   json.Number        `json:"num,omitempty"`
		Array [2]bool            `json:"array,omitempty"`
		Map   map[string][]int   `json:"map,omitempty"`
		Keys  map[int8]string    `json:"keys,omitempty"`
		Deep  **string           `json:"deep"`
		Float float32            `json:"float,omitempty"`
		Text  string             `json:"text,omitempty"`
		Addrs map[netip.Addr]int `json:"addrs,omitempty"`
	}
	in := newInput[input](t)
	got, err := decode[input](t, in, `{"any":{"a":[1,null]},"raw": {"x" : 1} ,"bytes":"aGk=","time":"2006-01-02T15:04:05.5Z","took":"1h0m0.5s","url":"https://example.com/a?b",
		"addr":"::1","big":123456789012345678901234567890,"num":1.50,"array":[true,false],"map":{"a\"\\b":[1,2],"":[]},"keys":{"-1":"x"},"deep":"d","float":0.1,
		"text":"\u00e9\ud83d\ude00\n\t\"\\\/\b\f\rx","addrs":{"1.2.3.4":1}}`)
	require.NoError(t, err)
	deep := "d"
	pointer := &deep
	addr := netip.MustParseAddr("::1")
	n, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	require.Equal(t, input{
		Any: map[string]any{"a": []any{1.0, nil}}, Raw: json.RawMessage(`{"x" : 1}`), Bytes: []byte("hi"),
		Time: time.Date(2006, 1, 2, 15, 4, 5, 500_000_000, time.UTC), Took: time.Hour + 500*time.Millisecond,
		URL: url.URL{Scheme: "https", Host: "example.com", Path: "/a", RawQuery: "b"}, Addr: &addr, Big: n, Num: "1.50", Array: [2]bool{true, false},
		Map: map[string][]int{`a"\b`: {1, 2}, "": {}}, Keys: map[int8]string{-1: "x"}, Deep: &pointer, Float: 0.1,
		Text: "é😀\n\t\"\\/\b\f\rx", Addrs: map[netip.Addr]int{netip.MustParseAddr("1.2.3.4"): 1},
	}, got)

	require.Equal(t, []string{
		`/bytes: got "?", want a base64 string of at most 1 MiB`,
		`/time: got "today", want a date-time such as "2006-01-02T15:04:05Z"`,
		`/took: got 5, want a duration such as "1h30m"`,
		`/url: got "/x", want an absolute URL such as "https://example.com/"`,
		`/big: got 1.5, want an integer`,
		`/num: got "1", want a number`,
		`/array: got [true], want an array of exactly 2 elements`,
		`/map/a~1~0: got 5, want an array`,
		`/map/b/1: got 0.5, want an integer`,
		`/float: got 1e39, want a number; must fit in float32`,
		`/text: got {}, want a string`,
	}, violations[input](t, in, `{"bytes":"?","time":"today","took":5,"url":"/x","addr":"x","big":1.5,"num":"1","array":[true],
		"map":{"a/~":5,"b":[1,0.5]},"keys":{"128":""},"deep":null,"float":1e39,"text":{}}`))
}

// What only the type's own method knows comes after what the schema says, one at a time.
func TestValuesThatTheTypeDoesNotDecode(t *testing.T) {
	type input struct {
		Any  any                     `json:"any,omitempty"`
		Addr netip.Addr              `json:"addr,omitzero"`
		Keys map[int8]string         `json:"keys,omitempty"`
		Took time.Duration           `json:"took,omitempty"`
		List []map[string]netip.Addr `json:"list,omitempty"`
		When time.Time               `json:"when,omitzero"`
		Pin  netip.Addr              `json:"pin,omitzero" secret:"true"`
	}
	in := newInput[input](t)
	for args, want := range map[string]string{
		`{"any":[{"a":1,"a":2}]}`:              `/any: got [{"a":1,"a":2}], want each name only once`,
		`{"keys":{"1":"a","1":"b"}}`:           `/keys/1: got "a", want each name only once`,
		`{"addr":"x"}`:                         `/addr: got "x", want a string that netip.Addr can read`,
		`{"pin":"hunter2"}`:                    `/pin: got ***, want a string that netip.Addr can read`,
		`{"keys":{"1":"","128":"x"}}`:          `/keys/128: got "x", want a string`,
		`{"took":"9999999h"}`:                  `/took: got "9999999h", want a duration such as "1h30m" that time.Duration can read`,
		`{"list":[{"a":"::1"},{"b":"wrong"}]}`: `/list/1/b: got "wrong", want a string that netip.Addr can read`,
		`{"when":"2006-01-02t15:04:05z"}`:      `/when: got "2006-01-02t15:04:05z", want a date-time such as "2006-01-02T15:04:05Z"`,
	} {
		require.Equal(t, []string{want}, violations[input](t, in, args), args)
	}
}

func TestDefaults(t *testing.T) {
	type opts struct {
		Depth int `json:"depth" default:"3"`
		Must  int `json:"must" validate:"required"`
	}
	type input struct {
		S     string         `json:"s" default:"a \"b\""`
		Empty string         `json:"empty" default:""`
		N     int            `json:"n" default:"10"`
		F     float64        `json:"f" default:"0.5"`
		B     bool           `json:"b" default:"true"`
		L     []string       `json:"l" default:"[\"x\", \"y\"]"`
		M     map[string]int `json:"m" default:"{\"a\":1}"`
		P     *int           `json:"p" default:"5"`
		D     time.Duration  `json:"d" default:"1m"`
		Inner opts           `json:"inner,omitempty"`
		Outer *opts          `json:"outer"`
		Whole opts           `json:"whole" default:"{\"must\":1}"`
		Level level          `json:"level" jsonschema:"default=low"`
	}
	in := newInput[input](t)
	five := 5
	got, err := decode[input](t, in, `{}`)
	require.NoError(t, err)
	require.Equal(t, input{S: `a "b"`, N: 10, F: 0.5, B: true, L: []string{"x", "y"}, M: map[string]int{"a": 1}, P: &five, D: time.Minute,
		Inner: opts{Depth: 3}, Whole: opts{Depth: 3, Must: 1}, Level: "low"}, got)

	require.Contains(t, string(in.Schema()), `"l":{"type":"array","items":{"type":"string"},"default":["x","y"]}`)
	require.Equal(t, []string{"/inner/must: missing, want an integer"}, violations[input](t, in, `{"inner":{}}`))
	require.JSONEq(t, `"a \"b\""`, string(in.Fields()[0].Default))
}

func TestNamesAreExact(t *testing.T) {
	type input struct {
		MaxHits int    `json:",omitempty"`
		Query   string `json:"query,omitempty"`
		Odd     int    `json:"a/b,omitempty"`
	}
	in := newInput[input](t)
	got, err := decode[input](t, in, `{"MaxHits":1,"\u0071uery":"x"}`)
	require.NoError(t, err)
	require.Equal(t, input{MaxHits: 1, Query: "x"}, got)
	require.Equal(t, []string{`/Query: unknown; did you mean "query"?`, `/maxhits: unknown; did you mean "MaxHits"?`, `/zzzzzzzzzz: unknown; known: "MaxHits", "query", "a/b"`},
		violations[input](t, in, `{"Query":"x","maxhits":1,"zzzzzzzzzz":0}`))
	require.Equal(t, []string{`/query: got "y", want the name only once`}, violations[input](t, in, `{"query":"x","\u0071uery":"y"}`))
}

func TestArgumentsMustBeAnObject(t *testing.T) {
	in := newInput[searchInput](t)
	for args, got := range map[string]string{`[]`: `[]`, `null`: `null`, `"{}"`: `"{}"`, ` 5`: `5`} {
		_, err := decode[searchInput](t, in, args)
		require.EqualError(t, err, "1 problem with the arguments:\narguments: got "+got+", want an object")
	}
	var v searchInput
	require.Error(t, in.Decode(context.Background(), nil, reflect.ValueOf(&v).Elem()), "nil is {}, which lacks the query")
}

func TestManyViolationsAreCounted(t *testing.T) {
	type input struct {
		L []int `json:"l,omitempty"`
	}
	in := newInput[input](t)
	_, err := decode[input](t, in, `{"l":[`+strings.Repeat(`"x",`, 999)+`"x"]}`)
	require.Len(t, err.(*reflectx.ArgumentError).Violations, 100)
	require.True(t, strings.HasPrefix(err.Error(), "1000 problems with the arguments:\n/l/0: got \"x\", want an integer\n"))
	require.True(t, strings.HasSuffix(err.Error(), "\n/l/99: got \"x\", want an integer\nand 900 more"), err.Error())
}

func TestLongValuesAreShortened(t *testing.T) {
	in := newInput[searchInput](t)
	lines := violations[searchInput](t, in, `{"query":"go","limit":"`+strings.Repeat("é", 5000)+`"}`)
	require.Equal(t, []string{`/limit: got "` + strings.Repeat("é", 39) + "…, want an integer between 1 and 50"}, lines)
}

func TestLeniency(t *testing.T) {
	type input struct {
		N int               `json:"n,omitempty" validate:"max=5"`
		F float64           `json:"f,omitempty"`
		B bool              `json:"b,omitempty"`
		L []int             `json:"l,omitempty"`
		O *place            `json:"o"`
		M map[string]string `json:"m,omitempty"`
		S string            `json:"s,omitempty"`
	}
	const byHand = `{"type":"object","properties":{"n":{"type":"integer","maximum":5},"f":{"type":"number"},"b":{"type":"boolean"},
		"l":{"type":"array","items":{"type":"integer"}},"o":{"type":"object","properties":{"lat":{"type":"number"}},"additionalProperties":true},
		"m":{"type":"object","additionalProperties":{"type":"string"}},"s":{"type":"string"}},"additionalProperties":false}`
	check, err := rawschema.Compile([]byte(byHand))
	require.NoError(t, err)
	repairs := 0
	o := reflectx.InputOptions{Repaired: func(ctx context.Context, values int) { require.NotNil(t, ctx); repairs += values }}
	hand := o
	hand.Schema, hand.SchemaText = check, []byte(byHand)
	for _, tt := range []struct {
		word     reflectx.Leniency
		args     string
		want     input
		repairs  int
		onlyHand bool // inputs of Go types always take it
	}{
		{reflectx.LenientScalars, `{"n":"5","f":" 1.5 ","b":"true","s":"5"}`, input{N: 5, F: 1.5, B: true, S: "5"}, 3, false},
		{reflectx.LenientJSON, `{"l":"[1,2]","o":"{\"lat\":1,\"lon\":2}","m":"{\"a\":\"b\"}"}`, input{L: []int{1, 2}, O: &place{1, 2}, M: map[string]string{"a": "b"}}, 3, false},
		{reflectx.LenientLists, `{"l":5}`, input{L: []int{5}}, 1, false},
		{reflectx.LenientUnknown, `{"n":1,"x":{"y":2}}`, input{N: 1}, 1, false},
		{reflectx.LenientNull, `{"n":null,"l":null,"s":"a"}`, input{S: "a"}, 2, true},
	} {
		for _, o := range []reflectx.InputOptions{o, hand} {
			for _, o.Lenient = range [][]reflectx.Leniency{{tt.word}, slices.DeleteFunc(slices.Clone(reflectx.Leniencies), func(w reflectx.Leniency) bool { return w == tt.word })} {
				in, err := reflectx.NewInput("T", reflect.TypeFor[input](), o)
				require.NoError(t, err)
				repairs = 0
				got, err := decode[input](t, in, tt.args)
				if o.Lenient[0] == tt.word && len(o.Lenient) == 1 {
					require.NoError(t, err, tt.args)
					require.Equal(t, tt.want, got)
					require.Equal(t, tt.repairs, repairs, tt.args)
				} else if o.Schema != nil || !tt.onlyHand {
					require.Error(t, err, "%s %s", o.Lenient, tt.args)
					require.Zero(t, repairs, "refused values do not count")
				}
			}
		}
	}

	o.Lenient = reflectx.Leniencies
	in, err := reflectx.NewInput("T", reflect.TypeFor[input](), o)
	require.NoError(t, err)
	require.Equal(t, []string{
		`/n: got 6, want an integer of at most 5`, `/f: got "", want a number`, `/b: got "yes", want true or false`,
		`/o: got "null", want an object`, `/m: got "{\"a\":1,\"a\":2}", want an object`, `/s: got 5, want a string`,
	}, violations[input](t, in, `{"n":"6","f":"","b":"yes","l":"[\"1\"]","o":"null","m":"{\"a\":1,\"a\":2}","s":5}`))
	require.Equal(t, string(newInput[input](t).Schema()), string(in.Schema()))
}

func TestNullable(t *testing.T) {
	type record struct {
		N reflectx.Nullable[int]    `json:"n" validate:"min=2" desc:"How many."`
		S reflectx.Nullable[string] `json:"s" validate:"required,startsnotwith=a"`
		T reflectx.Nullable[*tree]  `json:"t" secret:"true"`
		D reflectx.Nullable[[]int]  `json:"d" default:"[3]" validate:"dive,max=3"`
		C reflectx.Nullable[bool]   `json:"c,omitzero" validate:"required_if=N 5"`
	}
	in := newInput[record](t)
	require.Contains(t, string(in.Schema()), `"n":{"description":"How many.","anyOf":[{"type":"integer","minimum":2},{"type":"null"}]}`)
	require.Contains(t, string(in.Schema()), `"d":{"anyOf":[{"type":"array","items":{"type":"integer","maximum":3}},{"type":"null"}],"default":[3]}`)
	require.Contains(t, string(in.Schema()), `"required":["s"]`)
	three := reflectx.Nullable[[]int]{Set: true, Value: []int{3}}
	for args, want := range map[string]record{
		`{"s":""}`:            {S: reflectx.Nullable[string]{Set: true}, D: three},
		`{"s":null,"n":null}`: {S: reflectx.Nullable[string]{Set: true, Null: true}, N: reflectx.Nullable[int]{Set: true, Null: true}, D: three},
		`{"s":"b","n":2e0}`:   {S: reflectx.Nullable[string]{Set: true, Value: "b"}, N: reflectx.Nullable[int]{Set: true, Value: 2}, D: three},
		`{"s":"b","d":null}`:  {S: reflectx.Nullable[string]{Set: true, Value: "b"}, D: reflectx.Nullable[[]int]{Set: true, Null: true}},
		`{"s":"b","c":false}`: {S: reflectx.Nullable[string]{Set: true, Value: "b"}, C: reflectx.Nullable[bool]{Set: true}, D: three},
		`{"s":"b","t":{"name":"x","kids":[{"name":"y"}]}}`: {S: reflectx.Nullable[string]{Set: true, Value: "b"}, T: reflectx.Nullable[*tree]{Set: true, Value: &tree{Name: "x", Kids: []*tree{{Name: "y"}}}}, D: three},
	} {
		got, err := decode[record](t, in, args)
		require.NoError(t, err, args)
		require.Equal(t, want, got)
	}
	for args, want := range map[string][]string{
		`{"n":1,"d":[4]}`:            {`/n: got 1, want an integer of at least 2 or null`, `/d/0: got 4, want an integer of at most 3`, `/s: missing, want a string or null`},
		`{"s":"ab"}`:                 {`/s: got "ab", want a string or null; must satisfy startsnotwith=a`},
		`{"s":"","n":5}`:             {`/c: missing, want true or false or null; required if n is 5`},
		`{"s":"","t":{"name":null}}`: {`/t/name: got ***, want a string of at least 1 character`},
	} {
		require.Equal(t, want, violations[record](t, in, args))
	}
	text, err := jsonx.Marshal(record{N: reflectx.Nullable[int]{Set: true, Value: 1}})
	require.NoError(t, err)
	require.Equal(t, `{"n":1,"s":null,"t":null,"d":null}`, string(text))
	_, err = reflectx.NewInput("T", fieldOf(reflect.TypeFor[[]reflectx.Nullable[int]](), ""), reflectx.InputOptions{})
	require.EqualError(t, err, "T, field A: the type reflectx.Nullable[int] is for fields, which may be absent; write a pointer here")
}

func TestTextValues(t *testing.T) {
	type input struct {
		S string    `json:"s" validate:"required,min=2"`
		N int64     `json:"n" default:"7"`
		B bool      `json:"b,omitempty"`
		T time.Time `json:"t,omitempty"`
		L []string  `json:"l,omitempty"`
		I []int     `json:"i,omitempty"`
		O *place    `json:"o"`
		A any       `json:"a,omitempty"`
	}
	in := newInput[input](t)
	from := func(values map[string]string) (input, error) {
		var v input
		err := in.DecodeText(context.Background(), func(name string) (string, bool) {
			s, ok := values[name]
			return s, ok
		}, reflect.ValueOf(&v).Elem())
		return v, err
	}
	got, err := from(map[string]string{"s": `"5"`, "n": "9007199254740993", "b": "true", "t": "2006-01-02T15:04:05Z", "l": "a,b c", "i": "[1, 2]", "o": `{"lat":1,"lon":2}`, "a": "5"})
	require.NoError(t, err)
	require.Equal(t, input{S: `"5"`, N: 1<<53 + 1, B: true, T: time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC), L: []string{"a", "b c"}, I: []int{1, 2}, O: &place{1, 2}, A: "5"}, got)

	got, err = from(map[string]string{"s": "ab", "l": "", "i": "3"})
	require.NoError(t, err)
	require.Equal(t, input{S: "ab", N: 7, L: []string{}, I: []int{3}}, got)

	_, err = from(map[string]string{"n": "ten", "b": "1", "i": "1,x", "o": "{"})
	require.EqualError(t, err, `5 problems with the arguments:
/n: got "ten", want an integer
/b: got 1, want true or false
/i/1: got "x", want an integer
/o: got "{", want an object
/s: missing, want a string of at least 2 characters`)
}

func TestPlainParameters(t *testing.T) {
	f, err := reflectx.Compile(reflect.ValueOf(func(a float64, b []int, c *bool) any { return []any{a, b, c == nil} }), reflectx.FuncOptions{
		Names: []string{"a", " b?", "c"}, Doc: "- a: The \"first\".\n- b: Not used.",
		Tags: map[string]reflect.StructTag{"b": `desc:"The others."`},
	})
	require.NoError(t, err)
	require.Equal(t, `{"type":"object","properties":{"a":{"type":"number","description":"The \"first\"."},`+
		`"b":{"type":"array","description":"The others.","items":{"type":"integer"}},"c":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`, string(f.Input().Schema()))
	for args, want := range map[string][]any{
		`{"a":1.5,"b":[2]}`:         {1.5, []int{2}, true},
		`{"a":1,"b":null,"c":null}`: {1.0, []int(nil), true},
	} {
		v, err := f.Decode(t.Context(), json.RawMessage(args))
		require.NoError(t, err)
		out, err := f.Call(t.Context(), v)
		require.NoError(t, err)
		require.Equal(t, want, out[0].Interface())
	}
}

func TestFieldsOfAnInput(t *testing.T) {
	type input struct {
		Query string `json:"query" validate:"required,oneof=a b" desc:"What." title:"Query" header:"Query" complete:"CompleteQuery"`
		Limit int    `json:"limit" default:"10"`
	}
	fields := newInput[input](t).Fields()
	require.Len(t, fields, 2)
	require.Equal(t, reflectx.Field{Name: "query", Type: reflect.TypeFor[string](), Required: true, Description: "What.", Title: "Query",
		Enum: []string{"a", "b"}, Header: "Query", Complete: "CompleteQuery"}, fields[0])
	require.Equal(t, reflectx.Field{Name: "limit", Type: reflect.TypeFor[int](), Default: json.RawMessage("10")}, fields[1])
}

func TestConstantsDescribeAndOneofRestricts(t *testing.T) {
	type input struct {
		Level  level   `json:"level"`
		Levels []level `json:"levels"`
		Only   level   `json:"only" validate:"oneof=low off"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[input](), reflectx.InputOptions{Descriptions: descriptions{}})
	require.NoError(t, err)
	require.Equal(t, []string{`/only: got "high", want one of "low" or "off"`}, violations[input](t, in, `{"level":"loud","levels":["low","x"],"only":"high"}`))
	require.Equal(t, []string{"low", "off"}, in.Fields()[2].Enum)
	require.Contains(t, string(in.Schema()), `"level":{"type":"string","description":"level says how loud.\n\"low\": hardly audible\n\"high\": loud\n\"off\""}`)
	require.Contains(t, string(in.Schema()), `"only":{"type":"string","description":"level says how loud.\n\"low\": hardly audible","enum":["low","off"]}`)
}

// payment has rules that only the validator knows.
type payment struct {
	Amount  int    `json:"amount" validate:"required,even"`
	From    string `json:"from" validate:"required"`
	To      string `json:"to" validate:"required,nefield=From"`
	Note    string `json:"note,omitempty" validate:"even,max=5"`
	Nested  []leg  `json:"nested,omitempty" validate:"dive"`
	Checked bool   `json:"checked,omitempty"`
}

type leg struct {
	Low  int `json:"low"`
	High int `json:"high" validate:"gtfield=Low"`
}

func TestRulesLeftToTheValidator(t *testing.T) {
	v := validator.New(validator.WithRequiredStructEnabled())
	require.NoError(t, v.RegisterValidation("even", func(fl validator.FieldLevel) bool {
		if fl.Field().Kind() == reflect.String {
			return len(fl.Field().String())%2 == 0
		}
		return fl.Field().Int()%2 == 0 && fl.Field().Int() != 0
	}))
	v.RegisterStructValidation(func(sl validator.StructLevel) {
		if p := sl.Current().Interface().(payment); p.Amount > 100 && !p.Checked {
			sl.ReportError(p.Checked, "checked", "Checked", "large", "")
		}
	}, payment{})
	in, err := reflectx.NewInput("T", reflect.TypeFor[payment](), reflectx.InputOptions{Validate: v})
	require.NoError(t, err)
	require.Contains(t, string(in.Schema()), `"amount":{"type":"integer","description":"Must satisfy even."}`)
	require.Contains(t, string(in.Schema()), `"to":{"type":"string","description":"Must be other than from."}`)

	_, err = decode[payment](t, in, `{"amount":2,"from":"a","to":"b"}`)
	require.NoError(t, err)
	for args, want := range map[string][]string{
		`{"amount":3,"from":"a","to":"a"}`:                                                  {"/amount: got 3, want an integer; must satisfy even", `/to: got "a", want a string; must be other than from`},
		`{"amount":0,"from":"a","to":"b"}`:                                                  {"/amount: got 0, want an integer; must satisfy even"},
		`{"amount":102,"from":"a","to":"b"}`:                                                {"/checked: got false, want true or false; must satisfy large"},
		`{"amount":2,"from":"a","to":"b","note":"x"}`:                                       {`/note: got "x", want a string of at most 5 characters; must satisfy even`},
		`{"amount":2,"from":"a","to":"b","nested":[{"low":1,"high":2},{"low":2,"high":1}]}`: {"/nested/1/high: got 1, want an integer; must be greater than low"},
	} {
		require.Equal(t, want, violations[payment](t, in, args), args)
	}
}
