package reflectx_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Types that functions of one server share.
type (
	sharedCity struct {
		Name string `json:"name" validate:"min=2" desc:"Its name." example:"Oslo"`
		Zone string `json:"zone,omitempty" default:"UTC" validate:"oneof=UTC CET"`
		At   *struct {
			Lat float64 `json:"lat" validate:"latitude"`
		} `json:"at,omitempty"`
	}
	sharedTrip struct {
		From  sharedCity            `json:"from"`
		Stops []sharedCity          `json:"stops,omitempty" validate:"max=3,dive"`
		By    map[string]sharedCity `json:"by,omitempty"`
	}
	sharedTree struct {
		City sharedCity    `json:"city"`
		Kids []*sharedTree `json:"kids,omitempty"`
	}
	sharedHeader struct {
		Region string `json:"region" header:"Region"`
	}
	sharedRule struct {
		A string     `json:"a,omitempty"`
		B string     `json:"b,omitempty" validate:"required_with=A"`
		C sharedCity `json:"c"`
	}
	sharedCross struct {
		City sharedCity `json:"city"`
		Min  int        `json:"min"`
		Max  int        `json:"max" validate:"gtfield=Min"`
	}
	sharedAll struct {
		Trip   *sharedTrip   `json:"trip,omitempty"`
		Tree   *sharedTree   `json:"tree,omitempty"`
		Header sharedHeader  `json:"header"`
		Rule   *sharedRule   `json:"rule,omitempty"`
		Cross  []sharedCross `json:"cross,omitempty" validate:"dive"`
		City   sharedCity    `json:"city" desc:"The last one."`
	}
)

var sharedTypes = []reflect.Type{
	reflect.TypeFor[sharedAll](), reflect.TypeFor[sharedCity](), reflect.TypeFor[sharedTrip](), reflect.TypeFor[sharedTree](), reflect.TypeFor[sharedHeader](),
	reflect.TypeFor[sharedRule](), reflect.TypeFor[sharedCross](), reflect.TypeFor[sharedTrip](), reflect.TypeFor[sharedAll](),
}

// sharedFacts is what a program sees of the input and the output of a type.
func sharedFacts(t *testing.T, typ reflect.Type, o reflectx.InputOptions) (facts []string) {
	in, err := reflectx.NewInput("T", typ, o)
	require.NoError(t, err)
	out, err := reflectx.OutputSchema("T", typ, o)
	require.NoError(t, err)
	facts = append(facts, string(in.Schema()), string(in.Example()), string(out), fmt.Sprintf("%+v", in.Fields()))
	for _, args := range []string{
		string(in.Example()), `{}`, `{"name":"x"}`, `{"name":"Oslo","at":{"lat":91}}`, `{"from":{"name":"Rome"}}`, `{"from":{"name":"R","zone":"x"},"stops":[{},{},{},{}],"by":{"a":{"nam":1}}}`,
		`{"city":{"name":"Rome"},"kids":[{"city":{"name":"R"}}]}`, `{"city":{"name":"Rome"},"min":2,"max":1}`, `{"a":"x","c":{"name":"Rome"}}`, `{"header":{"region":"eu"},"city":{"name":"Rome"},"cross":[{"city":{},"min":3,"max":2}]}`,
	} {
		v := reflect.New(typ).Elem()
		if err := in.Decode(t.Context(), []byte(args), v); err != nil {
			facts = append(facts, err.Error())
			continue
		}
		b, err := jsonx.Marshal(v.Interface())
		require.NoError(t, err)
		facts = append(facts, string(b))
	}
	return facts
}

func TestTypesInAMemoAreLikeOthers(t *testing.T) {
	descriptions := reflectx.SourceDescriptions()
	for shift := range sharedTypes { // whichever type is first
		memo := new(reflectx.Memo)
		for i := range sharedTypes {
			typ := sharedTypes[(i+shift)%len(sharedTypes)]
			want := sharedFacts(t, typ, reflectx.InputOptions{Descriptions: descriptions})
			require.Equal(t, want, sharedFacts(t, typ, reflectx.InputOptions{Descriptions: descriptions, Memo: memo}), "%s, %d", typ, shift)
		}
	}
}

func TestAMemoIsSafeForConcurrentUse(t *testing.T) {
	memo := new(reflectx.Memo)
	want := sharedFacts(t, reflect.TypeFor[sharedAll](), reflectx.InputOptions{})
	got := make([][]string, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = sharedFacts(t, reflect.TypeFor[sharedAll](), reflectx.InputOptions{Memo: memo}) })
	}
	wg.Wait()
	for _, facts := range got {
		require.Equal(t, want, facts)
	}
}

// The mistake of a type is reported wherever the type is used.
func TestAMemoKeepsNoTypesWithMistakes(t *testing.T) {
	type wrong struct {
		A int `json:"a" validate:"min=x"`
	}
	memo := new(reflectx.Memo)
	for range 2 {
		_, err := reflectx.NewInput("T", reflect.TypeFor[struct {
			City  sharedCity `json:"city"`
			Wrong wrong      `json:"wrong"`
		}](), reflectx.InputOptions{Memo: memo})
		require.ErrorContains(t, err, `T, field Wrong.A: rule "min": the parameter "x" does not fit int`)
	}
}
