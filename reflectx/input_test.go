package reflectx_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

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

func BenchmarkDecode(b *testing.B) {
	in := newInput[searchInput](b)
	b.ReportAllocs()
	for b.Loop() {
		var v searchInput
		if err := in.Decode(context.Background(), json.RawMessage(typicalArgs), reflect.ValueOf(&v).Elem()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewInput(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reflectx.NewInput("Bench", reflect.TypeFor[searchInput](), reflectx.InputOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
