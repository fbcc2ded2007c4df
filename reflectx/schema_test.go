package reflectx_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

var update = flag.Bool("update-schemas", false, "write the golden schemas anew")

type (
	// level is a named type with constants.
	level string

	page[T any] struct {
		Items []T `json:"items"`
		Next  string
	}

	node struct {
		Value int              `json:"value"`
		Left  *node            `json:"left,omitempty"`
		More  map[string]*node `json:"more,omitempty"`
	}

	// hex has an UnmarshalText method.
	hex struct{ b byte }

	// point has a JSONSchema method with a pointer receiver.
	point struct{}

	base struct {
		ID   string `json:"id" validate:"required,uuid"`
		Name string `json:"name" desc:"Overwritten."`
	}

	other struct {
		Name string `json:"name" desc:"As deep as that of base."`
	}
)

func (h *hex) UnmarshalText(b []byte) error { h.b = b[0]; return nil }

func (p *point) UnmarshalJSON([]byte) error { return nil }

func (p *point) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "integer"}, Description: "x and y"}
}

// wide has a field of every kind.
type wide struct {
	Any      any               `json:"any" desc:"Anything."`
	Raw      json.RawMessage   `json:"raw"`
	Bool     bool              `json:"bool"`
	Int      int               `json:"int"`
	Int8     int8              `json:"int8"`
	Uint     uint              `json:"uint"`
	Uint16   uint16            `json:"uint16"`
	Float    float32           `json:"float"`
	String   string            `json:"string" title:"A string"`
	Pointer  **string          `json:"pointer"`
	Bytes    []byte            `json:"bytes"`
	Time     time.Time         `json:"time"`
	Duration time.Duration     `json:"duration" default:"1h30m"`
	URL      *url.URL          `json:"url"`
	IP       net.IP            `json:"ip"`
	Addr     netip.Addr        `json:"addr"`
	Hex      hex               `json:"hex"`
	Point    point             `json:"point" validate:"omitempty"`
	Big      *big.Int          `json:"big"`
	Number   json.Number       `json:"number"`
	Array    [2]int            `json:"array"`
	Matrix   [][]float64       `json:"matrix"`
	Map      map[string]string `json:"map"`
	IntMap   map[int]any       `json:"intMap"`
	Level    level             `json:"level" validate:"required"`
	Levels   []level           `json:"levels"`
	Page     page[base]        `json:"page"`
	Node     node              `json:"node"`
	Nodes    []node            `json:"nodes"`
	Nested   struct {
		A int `json:"a" header:"A" complete:"CompleteA"`
	} `json:"nested"`
	Old     string `json:"old"`
	Pattern string `json:"pattern" validate:"omitempty" jsonschema:"pattern=^a\\,b$,minLength=3,title=Pat"`
	Step    int    `json:"step" jsonschema:"minimum=0,maximum=10,multipleOf=5,enum=0,enum=5"`
	Untagged
	base
	other
	Name   string `json:"name"` // wins over those of base and other
	hidden int
	Hidden string `json:"-"`
}

// Untagged is embedded.
type Untagged struct {
	MaxHits int
}

// descriptions are the comments of a generated file.
type descriptions struct{}

func (descriptions) Text(t reflect.Type, member string) string {
	return map[string]string{
		"wide.":            "wide has a field of every kind.",
		"level.":           "level says how loud.",
		"node.":            "node is a tree.",
		"wide.Old":         "Old is not used.\n\nDeprecated: use new.",
		"Untagged.MaxHits": "How many hits to return.",
		"wide.Levels":      "Which levels.",
		"wide.Any":         "Beaten by the tag.",
	}[t.Name()+"."+member]
}

func (descriptions) Enum(t reflect.Type) []reflectx.EnumValue {
	if t != reflect.TypeFor[level]() {
		return nil
	}
	return []reflectx.EnumValue{{JSON: `"low"`, Text: "hardly\naudible"}, {JSON: `"high"`, Text: "loud"}, {JSON: `"off"`}}
}

func TestSchemaOfAWideStruct(t *testing.T) {
	require.Zero(t, wide{}.hidden, "it is no field of the schema")
	in, err := reflectx.NewInput("T", reflect.TypeFor[wide](), reflectx.InputOptions{Descriptions: descriptions{}})
	require.NoError(t, err)
	requireGolden(t, "wide.json", in.Schema())
	requirePortable(t, in.Schema())
}

func TestSchemaOfAnOutput(t *testing.T) {
	type output struct {
		wide
		Optional *int  `json:"optional,omitempty"`
		Nullable *int  `json:"nullable"`
		Nodes    *node `json:"tree"`
	}
	schema, err := reflectx.OutputSchema("T", reflect.TypeFor[output](), reflectx.InputOptions{Descriptions: descriptions{}})
	require.NoError(t, err)
	requireGolden(t, "wide_output.json", schema)
	requirePortable(t, schema)
}

func requireGolden(t *testing.T, name string, schema json.RawMessage) {
	t.Helper()
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, schema, "", "\t"))
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", "schema", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, pretty.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), pretty.String())
}

// requirePortable requires that every client can read the schema.
func requirePortable(t *testing.T, schema json.RawMessage) {
	t.Helper()
	require.True(t, jsonx.Valid(schema), "%s", schema)
	compact, err := jsonx.Compact(bytes.Clone(schema))
	require.NoError(t, err)
	require.Equal(t, string(compact), string(schema), "the schema is compact")
	var root map[string]any
	require.NoError(t, json.Unmarshal(schema, &root))
	require.NotContains(t, root, "$schema")
	require.NotContains(t, root, "$id")
	requirePortableNode(t, "", root)
}

func requirePortableNode(t *testing.T, at string, s map[string]any) {
	t.Helper()
	if typ, ok := s["type"]; ok {
		require.IsType(t, "", typ, at)
		switch typ {
		case "array":
			require.Contains(t, s, "items", at)
		case "object":
			require.Contains(t, s, "properties", at)
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		require.True(t, strings.HasPrefix(ref, "#/$defs/reflectx_test.node"), "%s: only what contains itself is a reference, not %s", at, ref)
	}
	if enum, ok := s["enum"]; ok {
		require.NotEmpty(t, enum, at)
		require.NotContains(t, enum, nil, at)
	}
	if required, ok := s["required"]; ok {
		require.NotEmpty(t, required, at)
	}
	for _, key := range []string{"properties", "$defs"} {
		for name, child := range asObject(s[key]) {
			require.IsType(t, map[string]any{}, child, "%s/%s", at, name)
			requirePortableNode(t, at+"/"+name, asObject(child))
		}
	}
	for _, key := range []string{"items", "propertyNames"} {
		if child, ok := s[key]; ok {
			require.IsType(t, map[string]any{}, child, at)
			requirePortableNode(t, at+"/"+key, asObject(child))
		}
	}
	if child, ok := s["additionalProperties"].(map[string]any); ok {
		requirePortableNode(t, at+"/*", child)
	}
}

func asObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func TestTypesOfTheSameNameHaveTheirOwnDefinitions(t *testing.T) {
	type node struct { // another one than the package's
		Name string  `json:"name"`
		Kids []*node `json:"kids"`
	}
	type both struct {
		A node   `json:"a"`
		B tree   `json:"b"`
		C []node `json:"c"`
	}
	in := newInput[both](t)
	require.Contains(t, string(in.Schema()), `"$defs":{"reflectx_test.node":`)
	require.Contains(t, string(in.Schema()), `"reflectx_test.tree":`)
	compileSchema(t, in.Schema())
	_, err := decode[both](t, in, `{"a":{"name":"x","kids":[{"name":"y","kids":[]}]},"b":{"name":"z"},"c":[]}`)
	require.NoError(t, err)
}

func TestRecursiveRootType(t *testing.T) {
	in := newInput[tree](t)
	require.Equal(t, `{"type":"object","properties":{"name":{"type":"string","minLength":1},`+
		`"kids":{"type":"array","items":{"$ref":"#/$defs/reflectx_test.tree"}}},"required":["name"],"additionalProperties":false,`+
		`"$defs":{"reflectx_test.tree":{"type":"object","properties":{"name":{"type":"string","minLength":1},`+
		`"kids":{"type":"array","items":{"$ref":"#/$defs/reflectx_test.tree"}}},"required":["name"],"additionalProperties":false}}}`, string(in.Schema()))
	_, err := decode[tree](t, in, `{"name":"a","kids":[{"name":"b","kids":[{"name":""}]}]}`)
	require.EqualError(t, err, `1 problem with the arguments:
/kids/0/kids/0/name: got "", want a string of at least 1 character`)
}

func TestEmptyInput(t *testing.T) {
	in := newInput[struct{}](t)
	require.Equal(t, `{"type":"object","properties":{},"additionalProperties":false}`, string(in.Schema()))
	_, err := decode[struct{}](t, in, ``)
	require.NoError(t, err)
	_, err = decode[struct{}](t, in, `{"a":1}`)
	require.EqualError(t, err, "1 problem with the arguments:\n/a: unknown; known: none")
}

func TestOutputSchemasHaveAnyRoot(t *testing.T) {
	for _, test := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[int](), `{"type":"integer"}`},
		{reflect.TypeFor[*bool](), `{"type":"boolean"}`},
		{reflect.TypeFor[[]string](), `{"type":"array","items":{"type":"string"}}`},
		{reflect.TypeFor[map[string]any](), `{"type":"object","properties":{},"additionalProperties":{}}`},
		{reflect.TypeFor[[]*int](), `{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}`},
		{reflect.TypeFor[any](), `{}`},
	} {
		schema, err := reflectx.OutputSchema("T", test.typ, reflectx.InputOptions{})
		require.NoError(t, err)
		require.Equal(t, test.want, string(schema))
	}
	_, err := reflectx.OutputSchema("T", reflect.TypeFor[chan int](), reflectx.InputOptions{})
	require.EqualError(t, err, `T: the type chan int has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`)
	_, err = reflectx.OutputSchema("T", reflect.TypeFor[struct{ Rows []struct{ Err error } }](), reflectx.InputOptions{})
	require.EqualError(t, err, `T, field Rows.Err: an error has no JSON, so that its text would be lost; write a string, or hide the field with json:"-"`)
}

func TestPromotedFields(t *testing.T) {
	type input struct {
		*Untagged
		base
	}
	in := newInput[input](t)
	got, err := decode[input](t, in, `{"MaxHits":3,"id":"123e4567-e89b-12d3-a456-426614174000","name":"n"}`)
	require.NoError(t, err)
	require.Equal(t, input{Untagged: &Untagged{MaxHits: 3}, base: base{ID: "123e4567-e89b-12d3-a456-426614174000", Name: "n"}}, got)
	got, err = decode[input](t, in, `{"id":"123e4567-e89b-12d3-a456-426614174000","name":""}`)
	require.NoError(t, err)
	require.Nil(t, got.Untagged, "nothing of it came")

	output, err := reflectx.OutputSchema("T", reflect.TypeFor[input](), reflectx.InputOptions{})
	require.NoError(t, err)
	require.Contains(t, string(output), `"required":["id","name"]`, "a nil embedded pointer leaves its fields out")
}

// More constants.
type (
	rank  int
	ratio float64
)

// numberDescriptions knows constants that are numbers.
type numberDescriptions struct{ descriptions }

func (numberDescriptions) Enum(t reflect.Type) []reflectx.EnumValue {
	switch t {
	case reflect.TypeFor[rank]():
		return []reflectx.EnumValue{{JSON: "1", Text: "first"}, {JSON: "2"}, {JSON: `"not a rank"`}, {JSON: "1"}}
	case reflect.TypeFor[ratio]():
		return []reflectx.EnumValue{{JSON: "0.5"}, {JSON: "{"}}
	}
	return nil
}

func TestNumericConstants(t *testing.T) {
	type input struct {
		Rank  rank         `json:"rank"`
		Ratio ratio        `json:"ratio"`
		By    map[rank]int `json:"by"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[input](), reflectx.InputOptions{Descriptions: numberDescriptions{}})
	require.NoError(t, err)
	require.Contains(t, string(in.Schema()), `"rank":{"type":"integer","description":"1: first\n2"},"ratio":{"type":"number","description":"0.5"}`)
	_, err = decode[input](t, in, `{"rank":3,"ratio":2,"by":{"7":1}}`)
	require.NoError(t, err, "constants restrict nothing")
}
