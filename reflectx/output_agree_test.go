package reflectx_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// The types below are those whose JSON is easy to describe wrongly.
type (
	octet         byte
	textKey       string
	behindPointer struct {
		*Pointers
		Q []string `json:"q"`
	}
	shadowing struct {
		Pointers
		X string `json:"x"`
	}
	named struct {
		Pointers `json:"named"`
	}
	recursive struct {
		N    int                   `json:"n"`
		Kids []recursive           `json:"kids"`
		M    map[string]*recursive `json:"m,omitempty"`
		Next *recursive            `json:"next"`
	}
	generic[T any] struct {
		V T   `json:"v"`
		P *T  `json:"p,omitempty"`
		Z *T  `json:"z,omitzero"`
		L []T `json:"l"`
	}
	oddNames struct {
		A int `json:"a b"`
		B int `json:"$ref"`
		C int `json:"x/y~z"`
		D int `json:"D"`
		E int `json:"d"`
		F int `json:"ü"`
	}
	sometimes struct {
		T time.Time         `json:"t,omitzero"`
		U url.URL           `json:"u,omitzero"`
		D time.Duration     `json:"d,omitempty"`
		N json.Number       `json:"n,omitempty"`
		R json.RawMessage   `json:"r,omitempty"`
		E struct{ A int }   `json:"e,omitempty"`
		A [0]int            `json:"arr,omitempty"`
		K map[textKey]*bool `json:"k,omitempty"`
	}
	selfEmbedding struct {
		*SelfEmbedded
		A int
	}
	// SelfEmbedded is exported because only such types can be embedded by pointer.
	SelfEmbedded struct {
		B int
		C *selfEmbedding
	}
	// Pointers is exported because only such types can be embedded by pointer.
	Pointers struct {
		P *int `json:"p"`
		X int  `json:"x"`
	}
)

func (k textKey) MarshalText() ([]byte, error) { return []byte("k" + string(k)), nil }

func (k *textKey) UnmarshalText(b []byte) error {
	*k = textKey(b[min(1, len(b)):])
	return nil
}

var outputLeaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int64](), reflect.TypeFor[uint8](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[*string](), reflect.TypeFor[**string](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[[4]byte](), reflect.TypeFor[octet](), reflect.TypeFor[[]octet](), reflect.TypeFor[[2]octet](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[url.URL](), reflect.TypeFor[big.Int](), reflect.TypeFor[netip.Addr](),
	reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any](), reflect.TypeFor[textKey](),
	reflect.TypeFor[Pointers](), reflect.TypeFor[behindPointer](), reflect.TypeFor[shadowing](), reflect.TypeFor[named](), reflect.TypeFor[recursive](),
	reflect.TypeFor[generic[int]](), reflect.TypeFor[generic[generic[*string]]](), reflect.TypeFor[oddNames](), reflect.TypeFor[sometimes](), reflect.TypeFor[selfEmbedding](),
	reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[map[textKey]int](), reflect.TypeFor[map[int8]any](), reflect.TypeFor[map[json.Number]json.Number](),
}

// wrapped returns t or a type around it.
func wrapped(r *rand.Rand, t reflect.Type, depth int) reflect.Type {
	if depth == 0 {
		return t
	}
	switch r.IntN(6) {
	case 0:
		t = reflect.PointerTo(t)
	case 1:
		t = reflect.SliceOf(t)
	case 2:
		t = reflect.ArrayOf(r.IntN(3), t)
	case 3:
		t = reflect.MapOf(reflect.TypeFor[string](), t)
	default:
		option := []string{"", ",omitempty", ",omitzero", ",omitempty,omitzero"}[r.IntN(4)]
		t = reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: t, Tag: reflect.StructTag("json:" + strconv.Quote("a"+option))},
			{Name: "B", Type: outputLeaves[r.IntN(len(outputLeaves))], Tag: `json:"b"`},
		})
	}
	return wrapped(r, t, depth-1)
}

// edgeValues are the values of types that fill cannot make from their kinds.
var edgeValues = map[reflect.Type][]any{
	reflect.TypeFor[time.Time](): {time.Time{}, time.Unix(0, 5).UTC(), time.Date(2024, 1, 1, 1, 1, 1, 1, time.FixedZone("", 19800))},
	reflect.TypeFor[url.URL](): {url.URL{}, url.URL{Scheme: "https", Host: "a"}, url.URL{Scheme: "mailto", Opaque: "x"}, url.URL{Path: "a b:c"},
		url.URL{Host: "h", Path: "/%", RawQuery: "q[]={}", Fragment: "ä#"}},
	reflect.TypeFor[big.Int]():         {big.Int{}, *new(big.Int).Lsh(big.NewInt(1), 200)},
	reflect.TypeFor[netip.Addr]():      {netip.Addr{}, netip.MustParseAddr("::1%eth0")},
	reflect.TypeFor[json.Number]():     {json.Number(""), json.Number("0"), json.Number("-0"), json.Number("1e400"), json.Number("1.50")},
	reflect.TypeFor[json.RawMessage](): {json.RawMessage(nil), json.RawMessage("null"), json.RawMessage(` {"a": 1e400} `)},
	reflect.TypeFor[any]():             {nil, "x", 1.5, map[string]any{"a": nil}, []any{}, json.Number("1e400")},
}

// fill sets v to a random value with nil pointers and numbers at their limits.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if edges := edgeValues[v.Type()]; edges != nil {
		if edge := edges[r.IntN(len(edges))]; edge != nil {
			v.Set(reflect.ValueOf(edge))
		}
		return
	}
	if depth > 5 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int64:
		v.SetInt([]int64{0, -1, math.MaxInt64, math.MinInt64, 127, 1<<53 + 1}[r.IntN(6)])
	case reflect.Uint8, reflect.Uint64:
		v.SetUint([]uint64{0, 1, math.MaxUint64, 1<<53 + 1}[r.IntN(4)])
	case reflect.Float32:
		v.SetFloat([]float64{0, math.Copysign(0, -1), math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1, 1e21}[r.IntN(6)])
	case reflect.Float64:
		v.SetFloat([]float64{0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21}[r.IntN(6)])
	case reflect.String:
		v.SetString([]string{"", "a", "\x00\u2028<>&\"\\", "💩"}[r.IntN(4)])
	case reflect.Slice:
		if r.IntN(3) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
			fillElements(r, v, depth)
		}
	case reflect.Array:
		fillElements(r, v, depth)
	case reflect.Map:
		for range r.IntN(3) {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key, depth+1)
			fill(r, elem, depth+1)
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(key, elem)
		}
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(r, f, depth+1)
			}
		}
	}
}

func fillElements(r *rand.Rand, list reflect.Value, depth int) {
	for i := range list.Len() {
		fill(r, list.Index(i), depth+1)
	}
}

func TestEveryOutputMatchesItsSchema(t *testing.T) {
	for seed := range 40 * len(outputLeaves) {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		typ := wrapped(r, outputLeaves[seed%len(outputLeaves)], r.IntN(4))
		schema, err := reflectx.OutputSchema("T", typ, reflectx.InputOptions{})
		require.NoError(t, err, typ)
		compiled := compileSchema(t, schema)
		for range 4 {
			v := reflect.New(typ).Elem()
			fill(r, v, 0)
			if isNil(v) {
				continue // not a result
			}
			text, err := jsonx.Marshal(v.Interface())
			require.NoError(t, err, typ)
			doc, err := schemaValue(text)
			require.NoError(t, err)
			require.NoError(t, compiled.Validate(doc), "%s\n%s\n%s", typ, text, schema)
		}
	}
}

func isNil(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil()
}

func TestOutputsThatTheEncoderRefusesAreMistakes(t *testing.T) {
	type Text string
	type embedsText struct{ Text }
	type embedsTimes struct {
		time.Time
		big.Int
	}
	tagged := func(tag reflect.StructTag) reflect.Type {
		return reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: tag}})
	}
	for want, typ := range map[string]reflect.Type{
		`T: reflectx_test.embedsText embeds reflectx_test.Text, which is not a plain struct; give it a name, such as json:"text", or hide it with json:"-"`: reflect.TypeFor[embedsText](),
		`T: reflectx_test.embedsTimes embeds time.Time, which is not a plain struct; give it a name, such as json:"time", or hide it with json:"-"` + "\n" +
			`T: reflectx_test.embedsTimes embeds big.Int, which is not a plain struct; give it a name, such as json:"int", or hide it with json:"-"`: reflect.TypeFor[embedsTimes](),
		`T, field A: unknown json option ""; write omitempty, omitzero or nothing`:                                    tagged(`json:"a,"`),
		`T, field A: the json name "it's" has a quote or a backslash, which the encoder refuses; choose another name`: tagged(`json:"it's"`),
	} {
		_, err := jsonx.Marshal(reflect.Zero(typ).Interface())
		require.Error(t, err)
		_, err = reflectx.OutputSchema("T", typ, reflectx.InputOptions{})
		require.EqualError(t, err, want)
	}
}

func TestNumbersBeyondFloatsAreNamed(t *testing.T) {
	type args struct {
		V any `json:"v"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[args](), reflectx.InputOptions{})
	require.NoError(t, err)
	_, err = decode[args](t, in, `{"v":[1e400]}`)
	require.ErrorContains(t, err, "/v: got [1e400], want a value with numbers between -1.8e308 and 1.8e308")
}
