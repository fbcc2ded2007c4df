package reflectx_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// taggedTypes are the types of the field in FuzzTags.
var taggedTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[float64](), reflect.TypeFor[bool](), reflect.TypeFor[*int64](),
	reflect.TypeFor[[]string](), reflect.TypeFor[[]int](), reflect.TypeFor[[2]bool](), reflect.TypeFor[map[string]int](), reflect.TypeFor[map[int][]string](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[place](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[big.Int](), reflect.TypeFor[struct {
		A string `json:"a"`
	}](),
}

// FuzzTags puts any tag on fields of several types. The result is either errors with a text, or an
// input with a valid schema that judges a value.
func FuzzTags(f *testing.F) {
	for _, seed := range []string{
		`json:"v" validate:"required,min=2,max=5"`, `json:"v,omitempty" default:"10" validate:"oneof=1 2 10"`, `validate:"dive,keys,min=1,endkeys,max=3"`,
		`jsonschema:"minimum=1,enum=2,pattern=^a\\,b"`, `header:"Region" secret:"true"`, `validate:"email|uuid"`, `validate:"len=0x2,unique" example:"[1]"`,
		`json:"-," desc:"a" title:"b" complete:"C"`, `validate:"min=-1,gt=99999999999999999999"`, `validate:"datetime=2006-01-02,required_with=V"`, `default:"{\"a\":1}"`,
		`json:"v,string"`, `validate:"min"`, `validate:"oneof='a b' c,noneof=c"`, `validate:"eqfield=V"`, `validate:",,"`, `validate:"min=5,max=1"`, `"`, `a`, `a:"b"c:"d"`,
	} {
		for i := range taggedTypes {
			f.Add(seed, byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, tag string, which byte) {
		typ := reflect.StructOf([]reflect.StructField{{Name: "V", Type: taggedTypes[int(which)%len(taggedTypes)], Tag: reflect.StructTag(tag)}})
		in, err := reflectx.NewInput("Fuzz", typ, reflectx.InputOptions{})
		if err != nil {
			for _, fault := range err.(reflectx.Errors) {
				require.NotEmpty(t, fault.Msg)
				require.True(t, strings.HasPrefix(fault.Site, "Fuzz"), fault.Site)
			}
			return
		}
		require.True(t, json.Valid(in.Schema()), "%s", in.Schema())
		err = in.Decode(context.Background(), []byte(`{"V":1}`), reflect.New(in.Type()).Elem())
		require.True(t, err == nil || errors.As(err, new(*reflectx.ArgumentError)), "%v", err)
		_, err = reflectx.OutputSchema("Fuzz", typ, reflectx.InputOptions{})
		if err != nil {
			require.IsType(t, reflectx.Errors{}, err)
		}
	})
}

// plainArguments has no rules, so that the decoder and encoding/json have to agree on it.
type plainArguments struct {
	S  string             `json:"s"`
	I  int64              `json:"i"`
	U  uint64             `json:"u"`
	I8 int8               `json:"i8"`
	F  float64            `json:"f"`
	B  bool               `json:"b"`
	P  *string            `json:"p"`
	L  []int              `json:"l"`
	M  map[string]float64 `json:"m"`
	A  any                `json:"a"`
	N  *plainArguments    `json:"n"`
	R  json.RawMessage    `json:"r"`
	X  [2]uint16          `json:"x"`
}

// FuzzBind calls a function with a struct of arguments and one with plain parameters. They get the
// same values as encoding/json decodes. encoding/json accepts more: other members, null for
// everything, names in another case, short arrays.
func FuzzBind(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"s":"a\u00e9\ud83d\ude00\n","i":-9007199254740993,"u":18446744073709551615,"i8":-128,"f":1e-7,"b":true,"p":"x","l":[1,2],"m":{"k":0.1},"a":{"b":[null,1.5]},"r":[1, 2],"x":[1,65535]}`,
		`{"n":{"n":{"s":""}}}`, `{"s":"\ud800"}`, `{"i":1.0}`, `{"i":1e3,"u":-0,"f":-0.0}`, `{"i8":128}`, `{"x":[1]}`, `{"p":null}`, `{"S":"a"}`, `{"s":"a","s":"b"}`, ` { "l" : [ ] } `, `{"\u0073":"a"}`,
		`{"a":1e400}`, `{"f":1e400}`, `{"i":9223372036854775808}`, `{"m":{"a":1,"a":2}}`,
	} {
		f.Add([]byte(seed))
	}
	var got plainArguments
	structFunc, err := reflectx.Compile(reflect.ValueOf(func(in plainArguments) { got = in }), reflectx.FuncOptions{})
	require.NoError(f, err)
	plainFunc, err := reflectx.Compile(reflect.ValueOf(func(s *string, i *int64, u *uint64, l []int, m map[string]float64, a any) {
		got = plainArguments{L: l, M: m, A: a}
		if s != nil {
			got.S = *s
		}
		if i != nil {
			got.I = *i
		}
		if u != nil {
			got.U = *u
		}
	}), reflectx.FuncOptions{Names: []string{"s?", "i?", "u?", "l?", "m?", "a?"}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, args []byte) {
		if !validJSON(args) { // what comes from a peer has been checked
			return
		}
		for _, fn := range []*reflectx.Func{structFunc, plainFunc} {
			got = plainArguments{}
			v, err := fn.Decode(context.Background(), args)
			if err != nil {
				require.NotEmpty(t, err.(*reflectx.ArgumentError).Violations)
				continue
			}
			_, err = fn.Call(context.Background(), v)
			require.NoError(t, err)
			var want plainArguments
			if json.Unmarshal(args, &want) == nil { // it refuses 1.0 and 1e2 for integers
				require.Equal(t, asJSON(t, want), asJSON(t, got), "%s", args)
			}
		}
	})
}

func asJSON(t *testing.T, v plainArguments) string {
	t.Helper()
	if v.R != nil { // as it came, and as it was written out, are both right
		var r any
		require.NoError(t, json.Unmarshal(v.R, &r))
		v.R, _ = json.Marshal(r)
	}
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return negativeZero.ReplaceAllString(string(b), "${1}0${2}") // whose sign plainIntegers loses
}

var negativeZero = regexp.MustCompile(`([:,\[])-0([],}])`)
