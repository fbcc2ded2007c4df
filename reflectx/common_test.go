package reflectx_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// compileSchema compiles a published schema with an independent implementation.
func compileSchema(t testing.TB, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("mem:///schema.json", doc))
	s, err := c.Compile("mem:///schema.json")
	require.NoError(t, err, "%s", schema)
	return s
}

func schemaValue(args []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(args)) }

func validJSON(b []byte) bool { return jsonx.Valid(b) }

// schemaTakes reports whether the schema accepts the JSON.
func schemaTakes(t testing.TB, s *jsonschema.Schema, args string) bool {
	t.Helper()
	v, err := schemaValue([]byte(args))
	require.NoError(t, err, args)
	return s.Validate(v) == nil
}

type tree struct {
	Name string  `json:"name" validate:"required,min=1"`
	Kids []*tree `json:"kids,omitempty"`
}

type pair struct {
	A int    `json:"a" validate:"required,max=3"`
	B string `json:"b,omitempty" validate:"alpha"`
}

// fieldOf returns a struct type with one field, A.
func fieldOf(t reflect.Type, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "A", Type: t, Tag: reflect.StructTag(`json:"a" ` + tag)}})
}
