package reflectx_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

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
