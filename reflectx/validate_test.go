package reflectx_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A validator that panics fails the call; the error is not one for the caller.
func TestPanicsOfTheValidatorAreRecovered(t *testing.T) {
	v := validator.New(validator.WithRequiredStructEnabled())
	require.NoError(t, v.RegisterValidation("short", func(fl validator.FieldLevel) bool {
		if fl.Field().Len() > 1 {
			panic("too long")
		}
		return true
	}))
	type input struct {
		Word string `json:"word" validate:"short"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[input](), reflectx.InputOptions{Validate: v})
	require.NoError(t, err)
	_, err = decode[input](t, in, `{"word":"ab"}`)
	require.EqualError(t, err, "reflectx: the validator of reflectx_test.input panics: too long")
	require.NotErrorAs(t, err, new(*reflectx.ArgumentError))
}

// A validator of the program may be stricter than the keyword of a rule.
func TestOwnMeaningOfARule(t *testing.T) {
	v := validator.New(validator.WithRequiredStructEnabled())
	require.NoError(t, v.RegisterValidation("alpha", func(fl validator.FieldLevel) bool { return strings.HasPrefix(fl.Field().String(), "x") }))
	type input struct {
		Word string `json:"word" validate:"alpha,max=5"`
		Zero int    `json:"zero" validate:"required,min=0"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[input](), reflectx.InputOptions{Validate: v})
	require.NoError(t, err)
	_, err = decode[input](t, in, `{"word":"xy","zero":0}`)
	require.NoError(t, err)
	require.Equal(t, []string{`/word: got "yx", want a string of at most 5 characters, that matches ^[a-zA-Z]+$; must satisfy alpha`}, violations[input](t, in, `{"word":"yx","zero":0}`))
}

// TestRulesThatCompareMembers covers every rule that compares members: each is enforced and in the
// description.
func TestRulesThatCompareMembers(t *testing.T) {
	for _, test := range []struct{ rule, right, wrong string }{
		{"eqfield=A", `"a":"x","b":"x"`, `"a":"x","b":"y"`}, {"nefield=A", `"a":"x","b":"y"`, `"a":"x","b":"x"`},
		{"gtfield=A", `"a":"x","b":"xy"`, `"a":"x","b":"x"`}, {"gtefield=A", `"a":"x","b":"x"`, `"a":"xy","b":"x"`},
		{"ltfield=A", `"a":"xy","b":"x"`, `"a":"x","b":"x"`}, {"ltefield=A", `"a":"x","b":"x"`, `"a":"x","b":"xy"`},
		{"eqcsfield=A", `"a":"x","b":"x"`, `"a":"x","b":"y"`}, {"necsfield=A", `"a":"x","b":"y"`, `"a":"x","b":"x"`},
		{"gtcsfield=A", `"a":"x","b":"xy"`, `"a":"x","b":"x"`}, {"gtecsfield=A", `"a":"x","b":"x"`, `"a":"xy","b":"x"`},
		{"ltcsfield=A", `"a":"xy","b":"x"`, `"a":"x","b":"x"`}, {"ltecsfield=A", `"a":"x","b":"x"`, `"a":"x","b":"xy"`},
		{"fieldcontains=A", `"a":"x","b":"axb"`, `"a":"x","b":"y"`}, {"fieldexcludes=A", `"a":"x","b":"y"`, `"a":"x","b":"axb"`},
		{"postcode_iso3166_alpha2_field=A", `"a":"DE","b":"10115"`, `"a":"DE","b":"x"`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			in, err := reflectx.NewInput("T", reflect.StructOf([]reflect.StructField{
				{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"a"`},
				{Name: "B", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`json:"b" validate:"` + test.rule + `"`)},
			}), reflectx.InputOptions{})
			require.NoError(t, err)
			require.NoError(t, in.Decode(t.Context(), []byte("{"+test.right+"}"), reflect.New(in.Type()).Elem()))
			err = in.Decode(t.Context(), []byte("{"+test.wrong+"}"), reflect.New(in.Type()).Elem())
			require.ErrorContains(t, err, "1 problem with the arguments:\n/b: got ")
		})
	}
}

func TestRulesOfElementsAndKeysAreDescribed(t *testing.T) {
	type args struct {
		Grid    [][]time.Duration `json:"grid" validate:"dive,dive,min=1s"`
		Routes  map[string]string `json:"routes" validate:"dive,keys,mac,endkeys,cidr"`
		Numbers map[int]string    `json:"numbers" validate:"dive,keys,min=1,endkeys"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[args](), reflectx.InputOptions{})
	require.NoError(t, err)
	for _, want := range []string{
		`"items":{"type":"array","items":{"type":"string","description":"Must be at least 1s."`,
		`"propertyNames":{"description":"Must satisfy mac."},"additionalProperties":{"type":"string","description":"Must satisfy cidr."}`,
		`"propertyNames":{"description":"Must be at least 1.","pattern":"^(0|-?[1-9][0-9]*)$"}`,
	} {
		require.Contains(t, string(in.Schema()), want)
	}
}

func TestErrorsForLargeIntegersContainTheLimits(t *testing.T) {
	type input struct {
		U uint64 `json:"u"`
		I int64  `json:"i"`
		M uint64 `json:"m" validate:"gt=3"`
		L int    `json:"l" validate:"max=5"`
		S uint32 `json:"s,omitempty"`
	}
	in := newInput[input](t)
	require.Equal(t, []string{
		`/u: got 18446744073709551616, want an integer of at least 0; must fit in uint64`,
		`/i: got 10000000000000000000, want an integer; must fit in int64`,
		`/m: got 99999999999999999999, want an integer of at least 0, greater than 3; must fit in uint64`,
		`/l: got -9223372036854775809, want an integer of at most 5; must fit in int`,
		`/s: got 4294967296, want an integer of at least 0; must fit in uint32`,
	}, violations[input](t, in, `{"u":18446744073709551616,"i":1e19,"m":99999999999999999999,"l":-9223372036854775809,"s":4294967296}`))
	require.Equal(t, []string{`/u: got 1.5, want an integer of at least 0`, `/i: got 0.5, want an integer`, `/l: got 6, want an integer of at most 5`},
		violations[input](t, in, `{"u":1.5,"i":0.5,"m":4,"l":6}`), "the limits cost words where they are not the trouble")
	require.NotContains(t, string(in.Schema()), "4294967295")
}

// A required member of a form may have a default. The rules apply to what the client sends.
func TestRequiredWithDefaultInForms(t *testing.T) {
	typ := fieldOf(reflect.TypeFor[string](), `validate:"required" default:"x"`)
	_, err := reflectx.NewInput("T", typ, reflectx.InputOptions{})
	require.EqualError(t, err, "T, field A: the field is required and has a default, which can never be used; drop one of the two")
	in, err := reflectx.NewInput("T", typ, reflectx.InputOptions{Form: true})
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"],"additionalProperties":false}`, string(in.Schema()))
	require.EqualError(t, in.Decode(context.Background(), json.RawMessage(`{}`), reflect.New(typ).Elem()), "1 problem with the arguments:\n/a: missing, want a string")
}

type Maybe struct {
	Deep int `json:"deep"`
}

// presenceInput has a field for each tag that makes a member optional, and for tags that do not.
type presenceInput struct {
	Plain    int            `json:"plain"`
	Rule     string         `json:"rule" validate:"min=2"`
	Struct   place          `json:"struct"`
	List     []string       `json:"list" validate:"dive,omitempty,min=2"`
	Whatever any            `json:"whatever"`
	Explicit *int           `json:"explicit,omitempty" validate:"required"`
	Always   bool           `json:"always" validate:"required"`
	Empty    int            `json:"empty,omitempty"`
	Zero     place          `json:"zero,omitzero"`
	Pointer  *int           `json:"pointer"`
	Default  int            `json:"default" default:"7"`
	Other    int            `json:"other" jsonschema:"default=8"`
	Omit     string         `json:"omit" validate:"omitempty,min=2"`
	Nil      map[string]int `json:"nil" validate:"omitnil,min=1"`
	If       string         `json:"if" validate:"required_if=Plain 5"`
	Without  string         `json:"without" validate:"excluded_with=Empty"`
	*Maybe
}

func TestFieldsAreRequiredByDefault(t *testing.T) {
	in := newInput[presenceInput](t)
	var required []string
	for _, f := range in.Fields() {
		if f.Required {
			required = append(required, f.Name)
		}
	}
	want := []string{"plain", "rule", "struct", "list", "whatever", "explicit", "always"}
	require.Equal(t, want, required)
	require.Equal(t, []string{
		"/plain: missing, want an integer", "/rule: missing, want a string of at least 2 characters", "/struct: missing, want an object",
		"/list: missing, want an array", "/whatever: missing, want a value", "/explicit: missing, want an integer", "/always: missing, want true or false",
	}, violations[presenceInput](t, in, `{}`))
	got, err := decode[presenceInput](t, in, `{"plain":1,"rule":"ab","struct":{"lat":1,"lon":2},"list":[],"whatever":null,"explicit":0,"always":false}`)
	require.NoError(t, err, "required asks for presence, not for another value than zero")
	require.Equal(t, 7, got.Default)
	require.Equal(t, 8, got.Other)
}

func TestNullForAnOptionalFieldCountsAsAbsent(t *testing.T) {
	in := newInput[presenceInput](t)
	const rest = `"rule":"ab","struct":{"lat":1,"lon":2},"list":[],"whatever":null,"explicit":3,"always":true`
	got, err := decode[presenceInput](t, in, `{"plain":1,`+rest+`,"empty":null,"zero":null,"pointer":null,"default":null,"omit":null,"nil":null,"if":null,"without":null,"deep":null}`)
	require.NoError(t, err)
	require.Equal(t, 7, got.Default, "the default stands in for null as for what is absent")
	require.Nil(t, got.Pointer)
	require.Nil(t, got.Maybe)

	require.Equal(t, []string{`/if: missing, want a string; required if plain is 5`}, violations[presenceInput](t, in, `{"plain":5,`+rest+`,"if":null}`))
	_, err = decode[presenceInput](t, in, `{"plain":1,`+rest+`,"empty":null,"without":"x"}`)
	require.NoError(t, err, "a rule about another member sees null as absent")
	require.Equal(t, []string{`/omit: got "", want a string of at least 2 characters`}, violations[presenceInput](t, in, `{"plain":1,`+rest+`,"omit":""}`))
	require.Equal(t, []string{`/empty: got 1, want the name only once`}, violations[presenceInput](t, in, `{"plain":1,`+rest+`,"empty":null,"empty":1}`))

	require.Equal(t, []string{"/plain: got null, want an integer", "/explicit: got null, want an integer"},
		violations[presenceInput](t, in, `{"plain":null,"rule":"ab","struct":{"lat":1,"lon":2},"list":[],"whatever":1,"explicit":null,"always":true}`),
		"null is not a value of a required field")
}

func TestBoolInAFormDefaultsToFalse(t *testing.T) {
	type form struct {
		Name  string `json:"name"`
		Agree bool   `json:"agree"`
		Sure  bool   `json:"sure" validate:"required"`
		Yes   bool   `json:"yes" default:"true"`
		Maybe *bool  `json:"maybe"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[form](), reflectx.InputOptions{Form: true})
	require.NoError(t, err)
	require.Equal(t, `{"type":"object","properties":{"name":{"type":"string"},"agree":{"type":"boolean","default":false},"sure":{"type":"boolean","default":false},`+
		`"yes":{"type":"boolean","default":true},"maybe":{"type":"boolean"}},"required":["name","sure"],"additionalProperties":false}`, string(in.Schema()))
	got, err := decode[form](t, in, `{"name":"x","sure":false}`)
	require.NoError(t, err)
	require.Equal(t, form{Name: "x", Yes: true}, got)
}

func TestPresenceRuleMessages(t *testing.T) {
	type input struct {
		Kind string `json:"kind,omitempty" validate:"oneof=file url"`
		Path string `json:"path" validate:"required_if=Kind file"`
		URL  string `json:"url" validate:"required_unless=Kind file,excluded_with=Path"`
		User string `json:"user,omitempty"`
		Pass string `json:"pass" validate:"required_with=User"`
		Seed int    `json:"seed" validate:"required_without_all=User Path"`
	}
	in := newInput[input](t)
	require.Equal(t, []string{`/path: missing, want a string; required if kind is file`, `/pass: missing, want a string; required with user`},
		violations[input](t, in, `{"kind":"file","user":"u"}`))
	require.Equal(t, []string{`/url: got "u", want a string; excluded with path`}, violations[input](t, in, `{"kind":"file","path":"p","url":"u"}`))
	require.Equal(t, []string{`/url: missing, want a string; required unless kind is file`, `/seed: missing, want an integer; required without all user path`}, violations[input](t, in, `{}`))
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, typicalArgs, `{"any":{"a":[1,null]},"raw":[{"b":1,"b":1}],"time":"2006-01-02t15:04:05z","int":1e-5,"map":{"a":"\ud800"}}`,
		`{"int":1e99999999999999999999,"int8":-0.0,"bytes":"aGk=","node":{"left":{"left":{}}},"intMap":{"-1":[]}}`, `[]`, ` null `, `{"":""}`, `{"a\u0000":"\u0000"}`} {
		f.Add([]byte(seed))
	}
	wideInput, err := reflectx.NewInput("T", reflect.TypeFor[wide](), reflectx.InputOptions{Descriptions: descriptions{}, Lenient: reflectx.Leniencies})
	require.NoError(f, err)
	inputs := []*reflectx.Input{wideInput, newInput[searchInput](f), newInput[tree](f), newInput[payloads](f)}
	f.Fuzz(func(t *testing.T, args []byte) {
		if !validJSON(args) {
			return
		}
		for _, in := range inputs {
			v := reflect.New(in.Type()).Elem()
			err := in.Decode(context.Background(), args, v)
			if err == nil {
				continue
			}
			require.NotEmpty(t, err.(*reflectx.ArgumentError).Violations)
			require.NotEmpty(t, err.Error())
		}
	})
}

// payloads has the types that wide lacks.
type payloads struct {
	U64   uint64            `json:"u64" validate:"max=5"`
	Text  string            `json:"text" validate:"email|uuid"`
	Keys  map[uint8][]place `json:"keys" validate:"max=2,dive,keys,max=9,endkeys,unique=Lat"`
	Flags []*bool           `json:"flags" validate:"unique"`
	Deep  [][][]string      `json:"deep" validate:"dive,dive,min=1,dive,alpha"`
}

func TestRuleMessages(t *testing.T) {
	type input struct {
		Took  time.Duration     `json:"took" validate:"min=1s,max=1h"`
		When  time.Time         `json:"when" validate:"lt"`
		Many  []string          `json:"many" validate:"unique"`
		Keys  map[int]bool      `json:"keys" validate:"dive,keys,gt=1,ne=3,endkeys,eq=true"`
		Site  string            `json:"site" validate:"https_url"`
		Mail  string            `json:"mail" validate:"email,endswith=.org"`
		Group map[string]string `json:"group" validate:"max=1,unique"`
		Card  string            `json:"card" validate:"credit_card|uuid"`
		Step  float64           `json:"step" validate:"ne=0,lt=2.5"`
	}
	in := newInput[input](t)
	require.Contains(t, string(in.Schema()), `"description":"Must be at least 1s. Must be at most 1h."`)
	many := `["` + strings.Repeat(`x","`, 16) + `x"]`
	const rest = `,"site":"https://x.y","mail":"a@b.org","step":1}`
	require.Equal(t, []string{
		`/many: got ["x","x","x","x","x","x","x","x","x","x","x","x","x","x","x","x","x"], want an array without equal elements`,
		`/keys/2: got false, want true`,
		`/site: got "http://x.y", want an absolute URL such as "https://example.com/" that matches ^https://`,
		`/mail: got "a@b.de", want an email address that matches \.org$`,
		`/group: got {"a":"x","b":"x"}, want an object of at most 1 member`,
		`/step: got 0, want a number less than 2.5, other than 0`,
	}, violations[input](t, in, `{"took":"2h","when":"2999-01-01T00:00:00Z","many":`+many+`,"keys":{"1":true,"2":false},"site":"http://x.y","mail":"a@b.de",
		"group":{"a":"x","b":"x"},"card":"1","step":0}`), "first what the schema says")
	require.Equal(t, []string{
		`/took: got "2h", want a duration such as "1h30m"; must be at most 1h`,
		`/when: got "2999-01-01T00:00:00Z", want a date-time such as "2006-01-02T15:04:05Z"; must be less than now`,
		`/keys/1: got true, want true; must be greater than 1`,
		`/card: got "1", want a string; must satisfy credit_card or uuid`,
	}, violations[input](t, in, `{"took":"2h","when":"2999-01-01T00:00:00Z","many":["x"],"keys":{"1":true},"group":{"a":"x"},"card":"1"`+rest), "then what the validator says")
}

// Whether such a rule applies is unknown if the value that it compares is wrong.
func TestConditionsOnWrongValuesAreSkipped(t *testing.T) {
	type input struct {
		Kind string `json:"kind" validate:"oneof=file url"`
		Path string `json:"path" validate:"required_unless=Kind url"`
		Port int    `json:"port" validate:"required_with=Path"`
	}
	in := newInput[input](t)
	require.Equal(t, []string{`/kind: got 5, want one of "file" or "url"`}, violations[input](t, in, `{"kind":5}`))
	require.Equal(t, []string{`/path: got 7, want a string`},
		violations[input](t, in, `{"kind":"url","path":7}`), "the validator judges what the schema accepts")
}
