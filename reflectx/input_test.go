package reflectx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

type searchInput struct {
	Query string   `json:"query" validate:"required,min=2" example:"go"`
	Limit int      `json:"limit,omitempty" default:"10" validate:"min=1,max=50"`
	Tags  []string `json:"tags,omitempty" validate:"max=5,dive,alphanum"`
	Exact bool     `json:"exact,omitempty"`
	Near  *place   `json:"near,omitempty"`
}

type place struct {
	Lat float64 `json:"lat" validate:"required,min=-90,max=90"`
	Lon float64 `json:"lon" validate:"required,min=-180,max=180"`
}

// newInput compiles T, which must be right.
func newInput[T any](t testing.TB) *reflectx.Input {
	t.Helper()
	in, err := reflectx.NewInput("Test", reflect.TypeFor[T](), reflectx.InputOptions{})
	require.NoError(t, err)
	return in
}

// decode decodes args into a new T.
func decode[T any](t testing.TB, in *reflectx.Input, args string) (T, error) {
	t.Helper()
	var v T
	err := in.Decode(context.Background(), json.RawMessage(args), reflect.ValueOf(&v).Elem())
	return v, err
}

func TestSearchInput(t *testing.T) {
	in := newInput[searchInput](t)
	require.Equal(t, `{"type":"object","properties":{`+
		`"query":{"type":"string","minLength":2,"examples":["go"]},`+
		`"limit":{"type":"integer","minimum":1,"maximum":50,"default":10},`+
		`"tags":{"type":"array","maxItems":5,"items":{"type":"string","pattern":"^[a-zA-Z0-9]+$"}},`+
		`"exact":{"type":"boolean"},`+
		`"near":{"type":"object","properties":{"lat":{"type":"number","minimum":-90,"maximum":90},"lon":{"type":"number","minimum":-180,"maximum":180}},`+
		`"required":["lat","lon"],"additionalProperties":false}},`+
		`"required":["query"],"additionalProperties":false}`, string(in.Schema()))

	got, err := decode[searchInput](t, in, `{"query":"go","tags":["a","b"],"near":{"lat":1.5,"lon":0}}`)
	require.NoError(t, err)
	require.Equal(t, searchInput{Query: "go", Limit: 10, Tags: []string{"a", "b"}, Near: &place{Lat: 1.5}}, got)

	_, err = decode[searchInput](t, in, `{"qurey":"go","limit":500,"tags":["a","-"],"limit":1,"exact":null,"near":{"lat":91}}`)
	require.EqualError(t, err, `7 problems with the arguments:
/qurey: unknown; did you mean "query"?
/limit: got 500, want an integer between 1 and 50
/tags/1: got "-", want a string that matches ^[a-zA-Z0-9]+$
/limit: got 1, want the name only once
/near/lat: got 91, want a number between -90 and 90
/near/lon: missing, want a number between -180 and 180
/query: missing, want a string of at least 2 characters`)
}

const typicalArgs = `{"query":"structured logging","limit":25,"tags":["go","log"],"exact":true,"near":{"lat":52.5,"lon":13.4}}`

type list []map[string]list

// field returns a struct with a field A that has the tag, and a field B of the type b.
func field[A any](tag reflect.StructTag, b ...reflect.Type) reflect.Type {
	fields := []reflect.StructField{{Name: "A", Type: reflect.TypeFor[A](), Tag: tag}}
	for _, typ := range b {
		fields = append(fields, reflect.StructField{Name: "B", Type: typ})
	}
	return reflect.StructOf(fields)
}

func TestMistakesInTagsAreReported(t *testing.T) {
	type inner struct {
		N int `json:"n" header:"N"`
	}
	type left struct{ X int }
	type Left struct {
		ID string `json:"id"`
	}
	type Right struct {
		ID string `json:"id"`
	}
	text, number := reflect.TypeFor[string](), reflect.TypeFor[int]()
	for _, test := range []struct {
		name string
		typ  reflect.Type
		err  string
	}{
		{"no struct", reflect.TypeFor[[]int](), `T: the input is a []int; write a struct with a field for each argument`},
		{"own UnmarshalJSON", reflect.TypeFor[struct{ time.Time }](), `T: struct{...} has the method UnmarshalJSON, so its fields do not say what it takes; write a plain struct`},
		{"unknown rule", field[string](`validate:"requird"`), `T, field A: unknown rule "requird"; did you mean "required"?`},
		{"keyword as a rule", field[string](`validate:"pattern=^a$"`),
			`T, field A: unknown rule "pattern"; it is a keyword of JSON Schema, so write jsonschema:"pattern=^a$"`},
		{"far from any rule", field[string](`validate:"zzzzzz"`),
			`T, field A: unknown rule "zzzzzz"; write one that github.com/go-playground/validator/v10 knows, or register it; values of oneof have blanks between them`},
		{"rule on the wrong type", field[bool](`validate:"min=1"`), `T, field A: rule "min=1" does not fit bool`},
		{"text rule on a number", field[int](`validate:"alpha"`), `T, field A: rule "alpha" does not fit int; it is for strings`},
		{"parameter that does not parse", field[int](`validate:"min=abc"`), `T, field A: rule "min=abc" does not fit int; write a number that it can hold`},
		{"negative length", field[string](`validate:"max=-1"`), `T, field A: rule "max=-1" does not fit string; write a length of 0 or more`},
		{"empty oneof", field[string](`validate:"oneof="`), `T, field A: rule "oneof=" lists nothing; write the values with spaces between, such as oneof=a b`},
		{"oneof of another type", field[int](`validate:"oneof=1 x"`), `T, field A: rule "oneof=1 x": "x" is not of type int; write whole numbers that it can hold`},
		{"dive into a scalar", field[int](`validate:"dive,min=1"`), `T, field A: rule "dive" does not fit int; it is for arrays, slices and maps`},
		{"keys of a slice", field[[]int](`validate:"dive,keys,min=1,endkeys"`), `T, field A: rule "keys" does not fit []int; write dive,keys,...,endkeys for a map`},
		{"lonely endkeys", field[[]int](`validate:"endkeys"`), `T, field A: rule "endkeys" stands alone; write dive,keys,...,endkeys for a map`},
		{"unique of a scalar", field[string](`validate:"unique"`), `T: the validator does not take struct{...}: Bad field name provided `},
		{"affix without text", field[string](`validate:"startswith="`), `T, field A: rule "startswith" lacks its parameter; write startswith=text`},
		{"unknown sibling", field[string](`validate:"required_with=Bb"`, text),
			`T, field A: rule "required_with=Bb" names the field "Bb", which struct{...} has not; did you mean "B"?`},
		{"sibling of a comparison", field[string](`validate:"eqfield=X"`), `T, field A: rule "eqfield=X" names the field "X", which struct{...} has not; did you mean "A"?`},
		{"a rule that switches others off", field[string](`validate:"skip_unless=B x,min=2"`, text),
			`T, field A: rule "skip_unless=B x" switches others off by the value of another field, which no schema says; check that in the method`},
		{"condition of another type", field[string](`validate:"required_if=B x"`, number),
			`T: the validator does not take struct{...}: strconv.ParseInt: parsing "x": invalid syntax`},
		{"required anyway", field[string](`validate:"required,required_with=B"`, number),
			`T, field A: the field is required, so rule "required_with=B" says nothing or contradicts it; drop one of the two`},
		{"presence of an element", field[[]string](`validate:"dive,required_with=B"`, number),
			`T, field A: rule "required_with=B" is about whether a member is there, so it cannot stand after dive`},

		{"comparison out of reach", reflect.TypeFor[struct{ A []leg }](), `T, field A: the elements have the rule "gtfield=Low", which is asked only where the validate tag says dive; write validate:"dive"`},
		{"key of another library", field[int](`json:"a" min:"3"`), `T, field A: the tag key "min" means nothing here; write validate:"min=3"`},
		{"no key", field[int](`json:a`), `T, field A: the tag "json:a" is not made of key:"value" pairs`},
		{"misspelt key", field[int](`json:"a" validat:"min=1"`), `T, field A: unknown tag key "validat"; did you mean "validate"?`},
		{"misspelt json option", field[int](`json:"a,omitemty"`), `T, field A: unknown json option "omitemty"; did you mean "omitempty"?`},
		{"secret that is no bool", field[int](`secret:"yes"`), `T, field A: secret is "yes"; write secret:"true" or leave it out`},

		{"default of the wrong type", field[int](`default:"ten"`), `T, field A: the default is refused; value: got "ten", want an integer`},
		{"default against its own rules", field[int](`default:"0" validate:"min=1,max=5"`),
			`T, field A: the default is refused; value: got 0, want an integer between 1 and 5`},
		{"default of a list", field[[]string](`default:"a,b"`), `T, field A: the default is refused; value: got "a,b", want an array`},
		{"default with a wrong element", field[[]int](`default:"[1,\"x\"]"`), `T, field A: the default is refused; /1: got "x", want an integer`},
		{"default that is required", field[int](`default:"1" validate:"required"`),
			`T, field A: the field is required and has a default, which can never be used; drop one of the two`},
		{"example against the rules", field[string](`example:"x" validate:"min=2"`),
			`T, field A: the example is refused; value: got "x", want a string of at least 2 characters`},

		{"header that is not a token", field[string](`header:"My Header"`),
			`T, field A: the header name "My Header" is not a token; write letters, digits and - only, such as header:"Region"`},
		{"empty header", field[string](`header:""`), `T, field A: the header name "" is not a token; write letters, digits and - only, such as header:"Region"`},
		{"header of a float", field[float64](`header:"A"`), `T, field A: a header cannot mirror a float64; put it on a string, an integer or a bool`},
		{"header twice", reflect.TypeFor[struct {
			A string `header:"Region"`
			B string `header:"region"`
		}](), `T, field B: the header "region" is taken by the field A; choose another name`},
		{"header of a secret", field[string](`header:"A" secret:"true"`), `T, field A: the field is secret, so no header may carry it; drop one of the two tags`},
		{"header in a list", reflect.TypeFor[struct{ A []inner }](),
			`T, field A.N: the header "N" stands within an array, a map or a type that contains itself, where no client looks; move the field up`},

		{"jsonschema word that is not enforced", field[string](`jsonschema:"oneof_type=string;null"`),
			`T, field A: jsonschema: "oneof_type" is not enforced here; write one of default, description, enum, example, exclusiveMaximum, exclusiveMinimum, format, maxItems, maxLength, maximum, minItems, minLength, minimum, multipleOf, pattern, readOnly, required, title, uniqueItems, writeOnly`},
		{"jsonschema misspelt", field[string](`jsonschema:"minLenght=2"`), `T, field A: jsonschema: "minLenght" is not enforced here; did you mean "minLength"?`},
		{"jsonschema word on the wrong type", field[int](`jsonschema:"minLength=2"`), `T, field A: jsonschema: "minLength=2" does not fit int`},
		{"jsonschema number that is none", field[int](`jsonschema:"minimum=low"`), `T, field A: jsonschema: "minimum=low" does not fit int`},
		{"jsonschema format", field[string](`jsonschema:"format=emial"`), `T, field A: jsonschema: unknown format "emial"; did you mean "email"?`},

		{"func", reflect.TypeFor[struct{ A func() }](),
			`T, field A: the type func() has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`},
		{"interface with methods", reflect.TypeFor[struct{ A error }](),
			`T, field A: the type error has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`},
		{"map with float keys", reflect.TypeFor[struct{ A map[float64]int }](),
			`T, field A: the type map[float64]int has keys that JSON has not; write a map with string or integer keys`},
		{"list of itself", reflect.TypeFor[struct{ A *list }](),
			`T: the schema of struct{...} cannot be made: reflectx_test.list contains itself; put it into a field of a struct, and let the struct contain itself`},
		{"same name twice", reflect.StructOf([]reflect.StructField{
			{Name: "Left", Type: reflect.TypeFor[Left](), Anonymous: true},
			{Name: "Right", Type: reflect.TypeFor[Right](), Anonymous: true},
		}), `T: the fields reflectx_test.Left.ID and reflectx_test.Right.ID are both "id" in JSON; give one another name`},
		{"same name twice in a struct without a name", reflect.TypeFor[struct {
			A int `json:"same"`
			B int `json:"same"` // the mistake
		}](), `T: the fields A and B are both "same" in JSON; give one another name`},
		{"embedded unexported pointer", reflect.TypeFor[struct{ *left }](),
			`T: struct{...} embeds the unexported *reflectx_test.left by pointer, which nobody can fill; embed it by value`},
		{"in a nested struct", reflect.TypeFor[struct {
			In struct {
				List []struct {
					A int `validate:"mim=1"`
				}
			}
		}](), `T, field In.List.A: unknown rule "mim"; did you mean "min"?`},
		{"commas in oneof", field[string](`validate:"required,oneof=a,b"`),
			`T, field A: unknown rule "b"; write one that github.com/go-playground/validator/v10 knows, or register it; values of oneof have blanks between them`},
		{"all at once", reflect.TypeFor[struct {
			A int    `validate:"mim=1"`
			B string `validate:"oneof="`
			C func()
		}](), `T, field A: unknown rule "mim"; did you mean "min"?
T, field B: rule "oneof=" lists nothing; write the values with spaces between, such as oneof=a b
T, field C: the type func() has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`},
		{"all at once, whenever found", reflect.TypeFor[struct {
			A int            `validate:"mim=1" default:"x"`
			C int            `default:"x"`
			D int            `example:"x" default:"1"`
			E map[string]any `default:"[]"`
			F []struct {
				G int `validate:"oneof=a" default:"z"`
				H int `default:"y"`
			} `default:"[{}]"`
			I string `header:"X-Same"`
			J string `header:"X-Same"`
		}](), `T, field A: unknown rule "mim"; did you mean "min"?
T, field F.G: rule "oneof=a": "a" is not of type int; write whole numbers that it can hold
T, field J: the header "X-Same" is taken by the field I; choose another name`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := reflectx.NewInput("T", test.typ, reflectx.InputOptions{})
			require.EqualError(t, err, test.err)
			require.IsType(t, reflectx.Errors{}, err)
		})
	}
}

func TestOutputsThatContainThemselvesWithoutAStructAreRefused(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[list](), reflect.TypeFor[struct{ A []list }]()} {
		_, err := reflectx.OutputSchema("T", typ, reflectx.InputOptions{})
		require.ErrorContains(t, err, "reflectx_test.list contains itself")
	}
}

func TestMistakesInParameters(t *testing.T) {
	_, err := reflectx.Compile(reflect.ValueOf(func([]chan int) {}), reflectx.FuncOptions{Site: "T", Names: []string{"a"}})
	require.EqualError(t, err, `T, parameter "a": the type chan int has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`)
}

func TestTagKeysOfOtherLibrariesAreIgnored(t *testing.T) {
	type row struct {
		ID   int    `json:"id" db:"id" xml:"id,attr" yaml:"id" form:"id" query:"id" param:"id" bson:"_id" toml:"id" mapstructure:"id" gorm:"primaryKey"`
		Desc string `json:"desc" desc:"What it is." env:"DESC" long:"desc" headers:"x-desc" wholly:"unknown"`
	}
	_, err := reflectx.NewInput("T", reflect.TypeFor[row](), reflectx.InputOptions{})
	require.EqualError(t, err, `T, field Desc: unknown tag key "headers"; did you mean "header"?`)
}

// compileSchema compiles a published schema with an independent implementation.
func compileSchema(t testing.TB, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("mem:///schema.json", doc))
	s, err := c.Compile("mem:///schema.json")
	require.NoError(t, err, "%s", schema)
	return s
}

func schemaValue(args []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(args)) }

func validJSON(b []byte) bool { return jsonx.Valid(b) }

// schemaTakes reports whether the schema accepts the JSON.
func schemaTakes(t testing.TB, s *jsonschema.Schema, args string) bool {
	t.Helper()
	v, err := schemaValue([]byte(args))
	require.NoError(t, err, args)
	return s.Validate(v) == nil
}

type tree struct {
	Name string  `json:"name" validate:"required,min=1"`
	Kids []*tree `json:"kids,omitempty"`
}

type pair struct {
	A int    `json:"a" validate:"required,max=3"`
	B string `json:"b,omitempty" validate:"alpha"`
}

// fieldOf returns a struct type with one field, A.
func fieldOf(t reflect.Type, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "A", Type: t, Tag: reflect.StructTag(`json:"a" ` + tag)}})
}
