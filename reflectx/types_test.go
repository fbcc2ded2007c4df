package reflectx_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

type (
	names  []string
	scores map[string]int
	// shape is an interface field as oneOf.
	shape struct{ Value any }
	size  string
)

func (shape) JSONSchema() *jsonschema.Schema {
	side := func(kind, name string) *jsonschema.Schema {
		props := jsonschema.NewProperties()
		props.Set("kind", &jsonschema.Schema{Type: "string", Const: kind})
		props.Set(name, &jsonschema.Schema{Type: "number", Minimum: "0"})
		return &jsonschema.Schema{Type: "object", Properties: props, Required: []string{"kind", name}, AdditionalProperties: jsonschema.FalseSchema}
	}
	return &jsonschema.Schema{Description: "A circle or a square.", OneOf: []*jsonschema.Schema{side("circle", "radius"), side("square", "width")}}
}

func (s *shape) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &s.Value) }

func (s shape) MarshalJSON() ([]byte, error) { return json.Marshal(s.Value) }

func (size) Values() []size { return []size{"s", "m"} }

// A fixture is a type of an argument: its schema, values that it takes, and values that it refuses.
type fixture struct {
	name   string
	typ    reflect.Type
	tag    string
	schema string
	takes  []string
	not    []string
	// stricter means that the type or the validator refuses some values that the schema accepts.
	stricter string
}

func row[T any](tag, schema string, takes, not []string) fixture {
	return fixture{typ: reflect.TypeFor[T](), tag: tag, schema: schema, takes: takes, not: not}
}

func (f fixture) but(stricter string) fixture {
	f.stricter = stricter
	return f
}

const (
	ownText   = "the type parses its own text"
	formats   = "Go's parser is stricter than the format"
	valueOnly = "no keyword expresses the rule"
	float64s  = "numbers beyond float64 are refused"
)

var fixtures = []fixture{
	row[bool]("", `{"type":"boolean"}`, []string{"true"}, []string{"1", `"true"`, "null"}),
	row[int]("", `{"type":"integer"}`, []string{"5", "5.0", "5e0", "-0"}, []string{"0.5", `"5"`}),
	row[int8]("", `{"type":"integer","minimum":-128,"maximum":127}`, []string{"-128"}, []string{"128"}),
	row[uint16]("", `{"type":"integer","minimum":0,"maximum":65535}`, []string{"65535"}, []string{"-1", "65536"}),
	row[float32]("", `{"type":"number"}`, []string{"0.5", "1e3"}, []string{`"x"`}).but(float64s),
	row[string]("min=2,max=3", `{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"日本語"`}, []string{`"a"`, `"abcd"`}),
	row[names]("max=2", `{"type":"array","maxItems":2,"items":{"type":"string"}}`, []string{`[]`, `["a"]`}, []string{`["a","b","c"]`, `{}`}),
	row[[]int]("unique,dive,min=1", `{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":1}}`, []string{`[1,2]`}, []string{`[1,1]`, `[0]`}),
	row[scores]("", `{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`, []string{`{"a":1}`}, []string{`{"a":"1"}`, `[]`}),
	row[[2]bool]("", `{"type":"array","minItems":2,"maxItems":2,"items":{"type":"boolean"}}`, []string{`[true,false]`}, []string{`[true]`}),
	row[[3]byte]("", `{"type":"array","minItems":3,"maxItems":3,"items":{"type":"integer","minimum":0,"maximum":255}}`, []string{`[1,2,255]`}, []string{`[1,2,256]`, `"AQID"`}),
	row[[]byte]("", `{"type":"string","description":"Base64, at most 1 MiB.","pattern":"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$","maxLength":1398104,"contentEncoding":"base64"}`,
		[]string{`""`, `"aGk="`}, []string{`"?"`, `[1]`}).but(formats),
	row[[]byte]("max=3", `{"type":"string","description":"Must be at most 3 bytes.","pattern":"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$","maxLength":4,"contentEncoding":"base64"}`,
		[]string{`"aGkh"`}, []string{`"aGkhIQ=="`}).but(formats),
	row[time.Duration]("", `{"type":"string","pattern":"^-?([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$"}`, []string{`"5s"`, `"-1h0m0.5s"`}, []string{"5", `"5"`}).but(formats),
	row[time.Time]("", `{"type":"string","format":"date-time"}`, []string{`"2006-01-02T15:04:05Z"`}, []string{`"today"`}).but(formats),
	row[json.Number]("", `{"type":"number"}`, []string{"1.50", "1e400"}, []string{`"1"`}),
	row[big.Int]("", `{"type":"integer"}`, []string{"123456789012345678901234567890", "1e3"}, []string{"1.5"}),
	row[netip.Addr]("", `{"type":"string"}`, []string{`"::1"`}, []string{"1"}).but(ownText),
	row[url.URL]("", `{"type":"string","format":"uri"}`, []string{`"https://example.com/a?b"`}, []string{`"/a"`}).but(formats),
	row[map[int]string]("", `{"type":"object","properties":{},"propertyNames":{"pattern":"^(0|-?[1-9][0-9]*)$"},"additionalProperties":{"type":"string"}}`,
		[]string{`{"-1":"a"}`}, []string{`{"01":"a"}`, `{"x":"a"}`}).but(ownText),
	row[map[netip.Addr]int]("", `{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`, []string{`{"::1":1}`}, []string{`{"::1":"x"}`}).but(ownText),
	row[map[json.Number]json.Number]("", `{"type":"object","properties":{},"additionalProperties":{"type":"number"}}`, []string{`{"1":1e400}`}, []string{`{"1":"1"}`}).but(ownText),
	row[any]("", `{}`, []string{`{"a":[1,null]}`, `"x"`, `null`}, nil).but(float64s),
	row[json.RawMessage]("", `{}`, []string{`{"a": 1}`, `null`}, nil),
	row[size]("enum", `{"type":"string","enum":["s","m"]}`, []string{`"s"`}, []string{`"l"`}),
	row[shape]("", `{"description":"A circle or a square.","oneOf":[{"type":"object","properties":{"kind":{"type":"string","const":"circle"},"radius":{"type":"number","minimum":0}},"required":["kind","radius"],"additionalProperties":false},`+
		`{"type":"object","properties":{"kind":{"type":"string","const":"square"},"width":{"type":"number","minimum":0}},"required":["kind","width"],"additionalProperties":false}]}`,
		[]string{`{"kind":"circle","radius":1}`}, []string{`{"kind":"circle","width":1}`, `{"kind":"square","width":-1}`, `5`}),
	row[*pair]("", `{"type":"object","properties":{"a":{"type":"integer","maximum":3},"b":{"type":"string","pattern":"^[a-zA-Z]+$"}},"required":["a"],"additionalProperties":false}`,
		[]string{`{"a":3,"b":"x"}`}, []string{`{"a":4}`, `{"b":"x"}`, `{"a":1,"c":1}`}),
	row[string]("email", `{"type":"string","format":"email"}`, []string{`"a@b.de"`}, []string{`"a"`}).but(formats),
	row[string]("startswith=a,alpha", `{"type":"string","pattern":"^a","allOf":[{"pattern":"^[a-zA-Z]+$"}]}`, []string{`"ab"`}, []string{`"b"`, `"a1"`}),
	row[string]("email|uuid", `{"type":"string","description":"Must satisfy email or uuid."}`, []string{`"a@b.de"`}, []string{`"a"`}).but(valueOnly),
	row[float64]("gt=0,lt=1.5,ne=1", `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1.5,"not":{"const":1}}`, []string{"0.5", "1.25"}, []string{"0", "1", "1.5"}),
}

// TestTypes holds the reflector, the check and the decoder together: each row has a type that one of
// them could read in another way.
func TestTypes(t *testing.T) {
	for _, f := range fixtures {
		t.Run(f.typ.String()+" "+f.tag, func(t *testing.T) {
			tag := `default:"-"`
			if f.tag != "" {
				tag = `validate:"` + f.tag + `"`
			}
			in, err := reflectx.NewInput("T", fieldOf(f.typ, strings.TrimPrefix(tag, `default:"-"`)), reflectx.InputOptions{})
			require.NoError(t, err)
			require.Equal(t, f.schema, string(jsonx.Member(jsonx.Member(in.Schema(), "properties"), "a")))
			requirePortable(t, in.Schema())
			schema := compileSchema(t, in.Schema())
			for _, value := range f.takes {
				args := `{"a":` + value + `}`
				v := reflect.New(in.Type()).Elem()
				require.NoError(t, in.Decode(t.Context(), []byte(args), v), args)
				require.True(t, schemaTakes(t, schema, args), args)
				back, err := jsonx.Marshal(v.Interface())
				require.NoError(t, err)
				require.NoError(t, in.Decode(t.Context(), back, reflect.New(in.Type()).Elem()), "what it encodes is an argument: %s", back)
			}
			for _, value := range f.not {
				args := `{"a":` + value + `}`
				require.Error(t, in.Decode(t.Context(), []byte(args), reflect.New(in.Type()).Elem()), args)
				require.True(t, f.stricter != "" || !schemaTakes(t, schema, args), "the schema accepts %s", args)
			}
		})
	}
}

// TestSchemaAndServerAgree compares the server with an independent validator of the published
// schema, on random values.
func TestSchemaAndServerAgree(t *testing.T) {
	value := rapid.Custom(func(rt *rapid.T) string { return drawValue(rt, 3) })
	for _, f := range fixtures {
		t.Run(f.typ.String()+" "+f.tag, func(t *testing.T) {
			in, err := reflectx.NewInput("T", fieldOf(f.typ, `validate:"`+f.tag+`"`), reflectx.InputOptions{})
			require.NoError(t, err)
			schema := compileSchema(t, in.Schema())
			rapid.Check(t, func(rt *rapid.T) {
				args := `{"a":` + rapid.OneOf(value, rapid.SampledFrom(append(f.takes, f.not...))).Draw(rt, "value") + `}`
				if rapid.IntRange(0, 9).Draw(rt, "more") == 0 {
					args = strings.TrimSuffix(args, "}") + `,"more":1}`
				}
				if f.typ.Kind() == reflect.Pointer && strings.HasPrefix(args, `{"a":null`) {
					return // null for an optional member counts as absent
				}
				err := in.Decode(t.Context(), []byte(args), reflect.New(in.Type()).Elem())
				doc, bad := schemaValue([]byte(args))
				require.NoError(rt, bad)
				takes := schema.Validate(doc) == nil
				require.False(rt, err == nil && !takes, "the server accepts %s", args)
				require.False(rt, err != nil && takes && f.stricter == "", "the schema accepts %s: %v", args, err)
			})
		})
	}
}

// drawValue draws a JSON value without duplicate names.
func drawValue(rt *rapid.T, depth int) string {
	limit := 7
	if depth == 0 {
		limit = 5
	}
	switch rapid.IntRange(0, limit).Draw(rt, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(rt, "word")
	case 1, 2:
		return rapid.SampledFrom([]string{"0", "1", "2.0", "-1", "1e2", "0.5", "127", "128", "255", "256", "-129", "65536", "1.5", "9007199254740993", "3"}).Draw(rt, "number")
	case 3, 4, 5:
		return `"` + rapid.SampledFrom([]string{"", "a", "ab", "abcd", "5s", "1", "-1", "aGk=", "é", "a@b.de", "s", "::1", "https://x.y/", "2006-01-02T15:04:05Z", "circle"}).Draw(rt, "text") + `"`
	case 6:
		list := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string { return drawValue(rt, depth-1) }), 0, 3).Draw(rt, "list")
		return "[" + strings.Join(list, ",") + "]"
	}
	var members []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "1", "-1", "kind", "radius"}), 0, 3, rapid.ID).Draw(rt, "names") {
		members = append(members, `"`+name+`":`+drawValue(rt, depth-1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Nothing of one caller reaches the next: defaults are decoded anew, and results do not share slices,
// maps and pointers.
func TestCallersShareNothing(t *testing.T) {
	type inner struct {
		Tags []string `json:"tags" default:"[\"x\"]"`
	}
	type input struct {
		List  []string       `json:"list" default:"[\"a\",\"b\"]"`
		Map   map[string]int `json:"map" default:"{\"a\":1}"`
		Ptr   *int           `json:"ptr" default:"5"`
		Any   any            `json:"any" default:"{\"k\":[1]}"`
		Inner inner          `json:"inner,omitzero"`
		Given []string       `json:"given,omitempty"`
	}
	in := newInput[input](t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 200 {
				var v input
				if err := in.Decode(t.Context(), json.RawMessage(`{"given":["y"]}`), reflect.ValueOf(&v).Elem()); err != nil {
					t.Error(err)
					return
				}
				if v.List[0] != "a" || v.Map["a"] != 1 || *v.Ptr != 5 || v.Inner.Tags[0] != "x" || v.Given[0] != "y" || v.Any.(map[string]any)["k"].([]any)[0] != 1.0 {
					t.Errorf("another call changed the value: %+v", v)
				}
				v.List[0], v.Map["a"], *v.Ptr, v.Inner.Tags[0], v.Given[0] = "changed", 9, 9, "changed", "changed"
				v.Any.(map[string]any)["k"].([]any)[0] = 9.0
			}
		})
	}
	wg.Wait()
}

// A place with a secret below it shows its kind only: it may be a misspelt or misplaced secret.
func TestPlacesAroundASecretShowTheirKind(t *testing.T) {
	type login struct {
		User  string `json:"user"`
		Token string `json:"token" secret:"true" validate:"len=4"`
	}
	type input struct {
		Login login    `json:"login"`
		More  []login  `json:"more,omitempty" validate:"max=1"`
		Keys  []string `json:"keys,omitempty" secret:"true" validate:"dive,len=4"`
	}
	in := newInput[input](t)
	for args, want := range map[string]string{
		`{"login":"hunter2"}`:                                      `/login: got a string, want an object`,
		`{"login":{"user":"a","tokn":"hunter2"}}`:                  `/login/tokn: unknown; did you mean "token"?`,
		`{"login":{"user":7,"token":"1234"}}`:                      `/login/user: got 7, want a string`,
		`{"login":{"user":"a","token":"hunter2"}}`:                 `/login/token: got ***, want a string of exactly 4 characters`,
		`{"login":{"user":"a","token":["hunter2"]}}`:               `/login/token: got ***, want a string of exactly 4 characters`,
		`{"login":{"user":"a","token":"1234","token":"hunter2"}}`:  `/login/token: got ***, want the name only once`,
		`{"login":{"user":"a","token":"1234"},"keys":["hunter2"]}`: `/keys/0: got ***, want a string of exactly 4 characters`,
	} {
		lines := violations[input](t, in, args)
		require.Equal(t, want, lines[0], args)
	}
	_, err := decode[input](t, in, `["hunter2"]`)
	require.ErrorContains(t, err, "got an array, want an object")
	_, err = decode[input](t, in, `{"login":{"user":"a","tokn":"hunter2","token":"1234"}}`)
	require.Equal(t, "a string", err.(*reflectx.ArgumentError).Violations[0].Got)
}

func TestFreeTextInTheJSONSchemaTagIsTheDescription(t *testing.T) {
	type input struct {
		A string `json:"a" jsonschema:"the name, or a part of it"`
		B string `json:"b" jsonschema:"required"`
		C string `json:"c" jsonschema:"minLength=2,title=Cee"`
	}
	require.Equal(t, `{"type":"object","properties":{"a":{"type":"string","description":"the name, or a part of it"},"b":{"type":"string"},"c":{"type":"string","title":"Cee","minLength":2}},"required":["a","b","c"],"additionalProperties":false}`, string(newInput[input](t).Schema()))
}

type (
	conditional struct{}
)

func (conditional) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{If: &jsonschema.Schema{}}
}
func (*conditional) UnmarshalJSON([]byte) error { return nil }

func TestSchemasThatCannotBePublished(t *testing.T) {
	_, err := reflectx.NewInput("T", fieldOf(reflect.TypeFor[conditional](), ""), reflectx.InputOptions{})
	require.ErrorContains(t, err, "the schema has one of the keywords if, contains")
}

// A rule of the program that panics is found when the type is registered, however deep it stands.
func TestRulesThatPanicAreFoundAtRegistration(t *testing.T) {
	v := validator.New(validator.WithRequiredStructEnabled())
	require.NoError(t, v.RegisterValidation("boom", func(validator.FieldLevel) bool { panic("boom") }))
	type deep struct {
		Maps []map[string]*struct {
			A int `json:"a" validate:"boom"`
		} `json:"maps" validate:"dive,dive"`
	}
	_, err := reflectx.NewInput("T", reflect.TypeFor[deep](), reflectx.InputOptions{Validate: v})
	require.ErrorContains(t, err, "the validator does not take reflectx_test.deep: boom")
}
