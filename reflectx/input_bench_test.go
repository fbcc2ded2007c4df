package reflectx_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

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
