package reflectx_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

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
