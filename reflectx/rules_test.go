package reflectx_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

func TestContradictingRulesAreReported(t *testing.T) {
	const (
		limits  = "no number is within both limits; write the smaller one as the least"
		lengths = "the least length is more than the most; write the smaller one as the least"
		values  = "another rule refuses each value that is left; drop one of them"
	)
	for _, test := range []struct {
		typ  reflect.Type
		tag  string
		want string // "" where there is no contradiction
	}{
		{reflect.TypeFor[int](), "min=10,max=5", limits},
		{reflect.TypeFor[int](), "gte=10,lte=5", limits},
		{reflect.TypeFor[int](), "min=5,max=5", ""},
		{reflect.TypeFor[int](), "gt=5,lte=5", limits},
		{reflect.TypeFor[int](), "gt=5,lt=6", limits},
		{reflect.TypeFor[int](), "gt=-2,lt=0", ""},
		{reflect.TypeFor[int](), "gt=-1,lt=0", limits},
		{reflect.TypeFor[float64](), "gt=5,lt=6", ""},
		{reflect.TypeFor[float64](), "gt=0.5,lt=0.5", limits},
		{reflect.TypeFor[float64](), "min=0.5,max=0.5", ""},
		{reflect.TypeFor[uint8](), "min=300", limits},
		{reflect.TypeFor[uint8](), "gt=254", ""},
		{reflect.TypeFor[uint8](), "gt=255", limits},
		{reflect.TypeFor[string](), "min=3,max=2", lengths},
		{reflect.TypeFor[string](), "gt=3,lt=4", lengths},
		{reflect.TypeFor[string](), "len=3,min=5", lengths},
		{reflect.TypeFor[string](), "min=5,len=3", lengths},
		{reflect.TypeFor[string](), "len=3,max=5", ""},
		{reflect.TypeFor[[]int](), "len=3,len=4", lengths},
		{reflect.TypeFor[[]int](), "dive,min=3,max=2", limits},
		{reflect.TypeFor[map[string]int](), "min=2,max=1", lengths},
		{reflect.TypeFor[[2]int](), "min=3", lengths},
		{reflect.TypeFor[int](), "eq=3,min=5", values},
		{reflect.TypeFor[string](), "eq=a,ne=a", values},
		{reflect.TypeFor[string](), "oneof=a b,len=3", values},
		{reflect.TypeFor[string](), "oneof=a abc,len=3", ""},
		{reflect.TypeFor[int](), "oneof=1 2,noneof=1 2", values},
		{reflect.TypeFor[*int](), "omitempty,min=2,max=1", limits},
	} {
		_, err := reflectx.NewInput("T", fieldOf(test.typ, "validate:"+strconv.Quote(test.tag)), reflectx.InputOptions{})
		if test.want == "" {
			require.NoError(t, err, "%s %s", test.typ, test.tag)
			continue
		}
		require.EqualError(t, err, fmt.Sprintf("T, field A: the rules %q allow nothing: %s", test.tag, test.want), "%s", test.typ)
	}
	_, err := reflectx.NewInput("T", fieldOf(reflect.TypeFor[int](), `validate:"max=5" jsonschema:"minimum=5.5"`), reflectx.InputOptions{})
	require.EqualError(t, err, `T, field A: the rules "max=5" allow nothing: `+limits)
}

func TestInvalidRuleParametersAreReported(t *testing.T) {
	for _, test := range []struct {
		typ       reflect.Type
		tag, want string
	}{
		{reflect.TypeFor[int](), "min=few", `rule "min": the parameter "few" does not fit int; write an integer, such as min=1`},
		{reflect.TypeFor[int](), "max=1.5", `rule "max": the parameter "1.5" does not fit int; write an integer, such as max=1`},
		{reflect.TypeFor[uint](), "gt=-1", `rule "gt": the parameter "-1" does not fit uint; write an integer of 0 or more, such as gt=1`},
		{reflect.TypeFor[float64](), "lt=", `rule "lt": the parameter "" does not fit float64; write a number, such as lt=0.5`},
		{reflect.TypeFor[string](), "len=long", `rule "len": the parameter "long" does not fit string; write a number of 0 or more, such as len=1`},
		{reflect.TypeFor[[]int](), "min=", `rule "min": the parameter "" does not fit []int; write a number of 0 or more, such as min=1`},
		{reflect.TypeFor[bool](), "eq=yes", `rule "eq": the parameter "yes" does not fit bool; write true or false, such as eq=true`},
	} {
		_, err := reflectx.NewInput("T", fieldOf(test.typ, "validate:"+strconv.Quote(test.tag)), reflectx.InputOptions{})
		require.EqualError(t, err, "T, field A: "+test.want)
	}
}

func TestErrorsForLargeIntegersContainTheLimits(t *testing.T) {
	type input struct {
		U uint64 `json:"u"`
		I int64  `json:"i"`
		M uint64 `json:"m" validate:"gt=3"`
		L int    `json:"l" validate:"max=5"`
	}
	in := newInput[input](t)
	require.Equal(t, []string{
		`/u: got 18446744073709551616, want an integer between 0 and 18446744073709551615`,
		`/i: got 1e19, want an integer between -9223372036854775808 and 9223372036854775807`,
		`/m: got 99999999999999999999, want an integer of at least 0, greater than 3, of at most 18446744073709551615`,
		`/l: got -9223372036854775809, want an integer between -9223372036854775808 and 5`,
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
	require.EqualError(t, in.Decode(context.Background(), json.RawMessage(`{}`), reflect.New(typ).Elem()), "1 problem with the arguments:\n/a: missing, want a string\nExample: {\"a\":\"x\"}")
}
