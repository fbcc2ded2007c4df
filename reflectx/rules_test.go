package reflectx_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

func TestErrorsForLargeIntegersContainTheLimits(t *testing.T) {
	type input struct {
		U uint64 `json:"u"`
		I int64  `json:"i"`
		M uint64 `json:"m" validate:"gt=3"`
		L int    `json:"l" validate:"max=5"`
	}
	in := newInput[input](t)
	require.Equal(t, []string{
		`/u: got 18446744073709551616, want an integer of at least 0; must fit in uint64`,
		`/i: got 10000000000000000000, want an integer; must fit in int64`,
		`/m: got 99999999999999999999, want an integer of at least 0, greater than 3; must fit in uint64`,
		`/l: got -9223372036854775809, want an integer of at most 5; must fit in int`,
	}, violations[input](t, in, `{"u":18446744073709551616,"i":1e19,"m":99999999999999999999,"l":-9223372036854775809}`))
	require.Equal(t, []string{`/u: got 1.5, want an integer of at least 0`, `/i: got 0.5, want an integer`, `/l: got 6, want an integer of at most 5`},
		violations[input](t, in, `{"u":1.5,"i":0.5,"m":4,"l":6}`), "the limits cost words where they are not the trouble")
	require.NotContains(t, string(in.Schema()), "18446744073709551615")
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
