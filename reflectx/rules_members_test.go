package reflectx_test

import (
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

func TestPresenceRulesAgreeWithTheSchema(t *testing.T) {
	for _, tag := range []string{
		"required_with=A", "required_with=A B", "required_with_all=A B", "required_without=A", "required_without=A B", "required_without_all=A B",
		"excluded_with=A", "excluded_with=A B", "excluded_with_all=A B", "excluded_without=A", "excluded_without=A B", "excluded_without_all=A B",
		"required_if=A x", "required_if=A x B 1", "required_unless=A x", "required_unless=A x B 1", "excluded_if=A x", "excluded_if=A x B 1", "excluded_unless=A x",
		"excluded_unless=A x B 1", "required_if=D on", "excluded_if=D on", "required_if=E true", "required_if=F 2", "required_with=A,excluded_with=B",
	} {
		t.Run(tag, func(t *testing.T) {
			typ := reflect.StructOf([]reflect.StructField{
				{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"a,omitempty"`},
				{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"b,omitempty"`},
				{Name: "C", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`json:"c" validate:"` + tag + `"`)},
				{Name: "D", Type: reflect.TypeFor[string](), Tag: `json:"d" default:"on"`},
				{Name: "E", Type: reflect.TypeFor[bool](), Tag: `json:"e,omitempty"`},
				{Name: "F", Type: reflect.TypeFor[*uint](), Tag: `json:"f"`},
			})
			in, err := reflectx.NewInput("T", typ, reflectx.InputOptions{})
			require.NoError(t, err)
			schema := compileSchema(t, in.Schema())
			require.NotNil(t, in.Example())
			accepted, refused := 0, 0
			for _, args := range combinations("", [][]string{
				{``, `"a":"x"`, `"a":"y"`, `"a":""`}, {``, `"b":1`, `"b":0`, `"b":1.0`}, {``, `"c":"z"`, `"c":""`},
				{``, `"d":"on"`, `"d":"off"`}, {``, `"e":true`, `"e":false`}, {``, `"f":2`, `"f":3`},
			}) {
				err := in.Decode(context.Background(), json.RawMessage(args), reflect.New(typ).Elem())
				if takes := schemaTakes(t, schema, args); takes != (err == nil) {
					t.Fatalf("%s: the schema %s says %t, the decoder %v", args, in.Schema(), takes, err)
				}
				if err == nil {
					accepted++
				} else {
					refused++
				}
			}
			require.Positive(t, accepted)
			require.Positive(t, refused)
		})
	}
}

// combinations returns every object with one of each list of members; an empty one is left out.
func combinations(members string, lists [][]string) []string {
	if len(lists) == 0 {
		return []string{"{" + members + "}"}
	}
	var out []string
	for _, m := range lists[0] {
		comma := ""
		if members != "" && m != "" {
			comma = ","
		}
		out = append(out, combinations(members+comma+m, lists[1:])...)
	}
	return out
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
	require.Equal(t, []string{`/path: missing, want a string when "kind" is "file"`, `/pass: missing, want a string when "user" is there`},
		violations[input](t, in, `{"kind":"file","user":"u"}`))
	require.Equal(t, []string{`/url: got a value, want none when "path" is there`}, violations[input](t, in, `{"kind":"file","path":"p","url":"u"}`))
	require.Equal(t, []string{`/url: missing, want a string unless "kind" is "file"`, `/seed: missing, want an integer when "user" and "path" are missing`}, violations[input](t, in, `{}`))
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, typicalArgs, `{"any":{"a":[1,null]},"raw":[{"b":1,"b":1}],"time":"2006-01-02t15:04:05z","int":1e-5,"map":{"a":"\ud800"}}`,
		`{"int":1e99999999999999999999,"int8":-0.0,"bytes":"aGk=","node":{"left":{"left":{}}},"intMap":{"-1":[]}}`, `[]`, ` null `, `{"":""}`, `{"a\u0000":"\u0000"}`} {
		f.Add([]byte(seed))
	}
	wideInput, err := reflectx.NewInput("T", reflect.TypeFor[wide](), reflectx.InputOptions{Descriptions: descriptions{}, Repair: true})
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
		Site  url.URL           `json:"site" validate:"https_url"`
		Mail  string            `json:"mail" validate:"email,endswith=.org"`
		Group map[string]string `json:"group" validate:"max=1,unique"`
		Card  string            `json:"card" validate:"credit_card|uuid"`
		Step  float64           `json:"step" validate:"ne=0,lt=2.5"`
	}
	in := newInput[input](t)
	require.Contains(t, string(in.Schema()), `"description":"Must be at least 1s. Must be at most 1h."`)
	many := `["` + strings.Repeat(`x","`, 16) + `x"]`
	require.Equal(t, []string{
		`/took: got "2h", want a duration such as "1h30m" of at least 1s, of at most 1h`,
		`/when: got "2999-01-01T00:00:00Z", want a date-time such as "2006-01-02T15:04:05Z" in the past`,
		`/many: got ["x","x","x","x","x","x","x","x","x","x","x","x","x","x","x","x","x"], want an array without equal elements`,
		`/keys/1: got "1", want an integer as name greater than 1, other than 3`,
		`/keys/2: got false, want true`,
		`/site: got "http://x.y", want an absolute URL such as "https://example.com/" that begins with https://`,
		`/mail: got "a@b.de", want a string that is an email address, ending with ".org"`,
		`/group: got {"a":"x","b":"x"}, want an object of at most 1 member, without equal values`,
		`/card: got "1", want a string that satisfies credit_card or uuid`,
		`/step: got 0, want a number less than 2.5, other than 0`,
	}, violations[input](t, in, `{"took":"2h","when":"2999-01-01T00:00:00Z","many":`+many+`,"keys":{"1":true,"2":false},"site":"http://x.y","mail":"a@b.de",
		"group":{"a":"x","b":"x"},"card":"1","step":0}`))
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
	require.Equal(t, []string{`/path: got 7, want a string`, `/port: missing, want an integer when "path" is there`},
		violations[input](t, in, `{"kind":"url","path":7}`), "a wrong value is present")
}
