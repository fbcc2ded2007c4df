package jsonx

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"
)

type (
	plainStruct struct {
		ID     int      `json:"id"`
		Title  string   `json:"title"`
		Score  float64  `json:"score"`
		Half   float32  `json:"half"`
		Tags   []string `json:"tags"`
		Big    uint64   `json:"big"`
		On     bool
		hidden int //lint:ignore U1000 it shows that it is not written
		Not    int `json:"-"`
	}
	omitting struct {
		A int            `json:"a,omitempty"`
		B string         `json:"b,omitempty"`
		C []int          `json:"c,omitempty"`
		D *int           `json:"d,omitempty"`
		E bool           `json:"e,omitempty"`
		F plainStruct    `json:"f,omitzero"`
		G map[string]int `json:"g,omitempty"`
		H struct{}       `json:"h,omitempty"`
		I float64        `json:"i,omitzero"`
		J any            `json:"j,omitempty"`
		K [0]int         `json:"k,omitempty"`
		L [2]int         `json:"l,omitempty"`
		M time.Time      `json:"m,omitzero"`
	}
	nested struct {
		P    *plainStruct             `json:"p"`
		List []omitting               `json:"list"`
		M    map[string][]plainStruct `json:"m"`
		PP   **int                    `json:"pp"`
		Any  []any                    `json:"any"`
	}
	embedding struct {
		plainStruct
		Own int `json:"own"`
	}
	optioned struct {
		N int64 `json:"n,string"`
		A int   `json:"weird name"`
		B []byte
		C [4]byte
		D [3]int
	}
	tree struct {
		Name string  `json:"name"`
		Kids []*tree `json:"kids"`
	}
	byMethods struct {
		T   time.Time       `json:"t"`
		D   time.Duration   `json:"d"`
		IP  netip.Addr      `json:"ip"`
		Raw json.RawMessage `json:"raw"`
		Big *big.Int        `json:"big"`
		N   json.Number     `json:"n"`
		Own valueText       `json:"own"`
		Ptr pointerText     `json:"ptr"`
	}
	valueText   struct{ S string }
	pointerText struct{ S string }
	named       string
	namedList   []named
)

func (v valueText) MarshalText() ([]byte, error)    { return []byte("<" + v.S + ">"), nil }
func (v *pointerText) MarshalJSON() ([]byte, error) { return json.Marshal("*" + v.S) }

// checkSame holds AppendValue to what the library says.
func checkSame(t *testing.T, v any) {
	t.Helper()
	want, wantErr := Append([]byte("before"), v)
	got, err := AppendValue([]byte("before"), reflect.ValueOf(v))
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error())
		require.Equal(t, "before", string(got))
		return
	}
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	text, err := MarshalValue(reflect.ValueOf(v))
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(string(want), "before"), text)
}

func TestCompiledWritersMatchTheLibrary(t *testing.T) {
	n := 7
	p := &n
	now := time.Date(2026, 7, 28, 12, 0, 0, 5, time.UTC)
	for _, v := range []any{
		nil, true, 1, int8(-8), uint64(math.MaxUint64), int64(math.MinInt64), "", "text", named("a\"b"), namedList{"x", "y"}, namedList(nil),
		0.0, math.Copysign(0, -1), 1.5, 1e20, 1e21, 1e-6, 9.9e-7, -1e300, math.MaxFloat64, math.SmallestNonzeroFloat64,
		float32(0.1), float32(1e20), float32(1e21), float32(1e-7), float32(16777216), math.NaN(), math.Inf(1),
		"\x00\b\f\n\r\t\x1f\x7f\"\\/<>&\u2028\u2029 ü 世 \U0001f600", "bad \xff", "\xed\xa0\x80",
		plainStruct{}, plainStruct{Title: "bad \xff"}, &plainStruct{Tags: []string{}}, (*plainStruct)(nil),
		omitting{}, omitting{A: 1, B: "b", C: []int{}, D: p, E: true, F: plainStruct{ID: 1}, G: map[string]int{}, I: 1, J: 0, M: now},
		omitting{C: []int{0}, G: map[string]int{"b": 1, "a": 2}, J: "x", L: [2]int{1, 2}},
		nested{}, nested{P: &plainStruct{ID: 1}, List: []omitting{{}, {A: 1}}, M: map[string][]plainStruct{"z": nil, "a": {{}}}, PP: &p, Any: []any{nil, 1, "x", plainStruct{}}},
		embedding{Own: 1}, optioned{N: 5, B: []byte("bytes"), C: [4]byte{1}}, []byte("bytes"), [2]bool{true, false},
		tree{Name: "root", Kids: []*tree{{Name: "kid"}, nil}},
		byMethods{T: now, D: time.Second, IP: netip.MustParseAddr("::1"), Raw: json.RawMessage(`{"a": 1}`), Big: big.NewInt(12), N: "12", Own: valueText{"o"}, Ptr: pointerText{"p"}},
		byMethods{}, []pointerText{{"a"}}, map[string]int{"b": 1, "a": 2}, []any{}, struct{}{}, make(chan int), func() {}, []func(){nil}, 1i,
		[]*valueText{nil, {"x"}}, [][]string{nil, {}, {"a"}}, []json.RawMessage{nil, json.RawMessage(`[1 ,2]`)}, []json.RawMessage{json.RawMessage(`{`)},
	} {
		checkSame(t, v)
	}
	checkSame(t, reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	})).Elem().Interface())
	cycle := &tree{Name: "a"}
	cycle.Kids = []*tree{cycle}
	checkSame(t, cycle)
}

func TestCompiledWritersMatchTheLibraryOnRandomValues(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for _, typ := range []reflect.Type{
		reflect.TypeFor[*omittingRandom](), reflect.TypeFor[[]nestedRandom](),
		reflect.TypeFor[optioned](), reflect.TypeFor[[]float64](), reflect.TypeFor[[]float32](), reflect.TypeFor[[]string](),
	} {
		for range 300 {
			v, ok := quick.Value(typ, random)
			require.True(t, ok)
			checkSame(t, v.Interface())
		}
	}
}

// The types above less what testing/quick cannot make.
type (
	omittingRandom struct {
		A int            `json:"a,omitempty"`
		B string         `json:"b,omitempty"`
		C []int          `json:"c,omitempty"`
		D *int           `json:"d,omitempty"`
		E bool           `json:"e,omitempty"`
		G map[string]int `json:"g,omitempty"`
		I float64        `json:"i,omitzero"`
	}
	nestedRandom struct {
		S    string           `json:"s"`
		N    int64            `json:"n"`
		O    *omittingRandom  `json:"o"`
		List []omittingRandom `json:"list"`
		PP   **uint8          `json:"pp"`
		F    []float32
	}
)

func BenchmarkAppendValue(b *testing.B) {
	var hits []plainStruct
	for i := range 10 {
		hits = append(hits, plainStruct{ID: 1000 + i, Title: "A note about benchmarks", Score: 0.5 + float64(i)/256, Tags: []string{"go", "speed"}})
	}
	v := reflect.ValueOf(hits)
	var dst []byte
	b.Run("compiled", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = AppendValue(dst[:0], v)
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = Append(dst[:0], hits)
		}
	})
	require.True(b, strings.HasPrefix(string(dst), "["))
}
