//go:build !mcpkit_plain

package client

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

var usualSchemas = []string{
	`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`,
	`{"type":"object","properties":{"hits":{"type":"array","items":{"$ref":"#/$defs/Hit"},"x-n":2}},` +
		`"$defs":{"Hit":{"type":"object","properties":{"id":{"type":"integer","minimum":1,"maximum":9},"title":{"type":"string"},` +
		`"more":{"$ref":"#/$defs/Hit"}},"required":["id"]}}}`,
	`{"anyOf":[{"type":"null"},{"type":["string","number"]}],"title":"t","description":"d","x-own":1}`,
	`{"type":"string","enum":["a","b"],"format":"date"}`,
	`{"type":"object","required":["a"],"additionalProperties":{"type":"boolean"},"properties":{"n":{"type":"number","minimum":-1,"maximum":1}}}`,
	`{"type":"object","required":["a"],"additionalProperties":false,"properties":{"b":true,"c":false}}`,
	`{"items":{"type":"boolean"}}`,
	`{}`, `true`, `false`,
}

var someOutputs = []string{
	`{"sum":42}`, `{"sum":1.0}`, `{"sum":"x"}`, `{}`, `{"sum":42,"x":1}`, `{"\u0073um":1}`, `{"sum":1e400}`,
	`{"hits":[{"id":1,"title":"abc","more":{"id":2}}]}`, `{"hits":[{"id":10}]}`, `{"hits":[]}`, `{"hits":[{"id":1},{"id":2},{"id":3}]}`, `{"hits":[{"title":"\u00e9"}]}`,
	`null`, `"a"`, `"c"`, `1`, `1.5`, `true`, `{"a":true}`, `{"a":true,"n":0.5}`, `{"a":true,"n":1}`, `{"a":true,"n":1.0000000000000001}`, `{"a":1}`,
	`{"b":1}`, `{"c":1}`, `[true,false]`, `[1]`, `{"a":[{"b":1e999999999}]}`, `"abcd"`,
}

// compile returns the schema, whether an acceptance can check outputs, and whether it compiles.
func compile(schema []byte) (s *outputSchema, usual, ok bool) {
	s = newOutputSchema(schema[jsonx.SkipSpace(schema, 0):])
	if s == nil {
		return nil, false, false
	}
	_, _ = s.check([]byte("0"))
	return s, s.usual, s.fault == nil
}

func (s *outputSchema) accepts(output string) bool {
	return new(acceptance).accepts(s.compiled, []byte(output), 0)
}

func FuzzAcceptedOutputsAreValid(f *testing.F) {
	for _, schema := range usualSchemas {
		for _, output := range someOutputs {
			f.Add([]byte(schema), []byte(output))
		}
	}
	f.Fuzz(func(t *testing.T, schema, output []byte) {
		if !jsonx.Valid(schema) || !jsonx.Valid(output) {
			return
		}
		s, usual, ok := compile(schema)
		if !ok || !usual || !s.accepts(string(output[jsonx.SkipSpace(output, 0):])) {
			return
		}
		s.usual = false
		faults, err := s.check(output)
		require.NoError(t, err)
		require.Empty(t, faults)
	})
}

func TestUsualOutputsAreAcceptedWithoutTheValidator(t *testing.T) {
	for _, test := range []struct {
		name   string
		schema string
		yes    []string
		no     []string // invalid, or for the validator to judge
	}{
		{"an object", usualSchemas[0], []string{`{"sum":42}`, `{ "sum" : -1 }`}, []string{`{}`, `{"sum":1.0}`, `{"sum":1e2}`, `{"sum":1,"x":1}`, `[]`, `{"\u0073um":1}`}},
		{"definitions", usualSchemas[1], []string{`{"hits":[{"id":1,"title":"abc","more":{"id":9}}]}`}, []string{`{"hits":[{"title":"a"}]}`, `{"hits":[{"id":0}]}`, `{"hits":[{"id":1,"title":2}]}`}},
		{"one of several", usualSchemas[2], []string{`null`, `"x"`, `1.5`, `7`}, []string{`true`, `{}`}},
		{"an enum", usualSchemas[3], []string{`"a"`}, []string{`"c"`, `1`, `"\u0061"`}},
		{"bounds", usualSchemas[4], []string{`{"a":true,"n":0.5}`, `{"a":false,"n":1}`}, []string{`{"a":true,"n":1.5}`, `{"n":1}`, `{"a":1}`, `{"a":true,"n":1.0000000000000001}`}},
		{"required but not declared", usualSchemas[5], nil, []string{`{"a":1}`, `{"c":1,"a":1}`}},
		{"any value", `{}`, []string{`{"a":[1,{"b":2.5}]}`, `null`}, []string{`{"a":[1e5]}`}},
		{"no value", `false`, nil, []string{`1`}},
		{"a schema that refers to itself", `{"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, []string{`{"next":{"next":{}}}`}, []string{`{"next":{"x":1}}`}},
		{"a reference without end", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, nil, []string{`1`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, usual, ok := compile([]byte(test.schema))
			require.True(t, ok)
			require.True(t, usual)
			for _, output := range test.yes {
				require.True(t, s.accepts(output), output)
			}
			for _, output := range test.no {
				require.False(t, s.accepts(output), output)
			}
		})
	}
}

func TestOutputsOfUnusualSchemasNeedTheValidator(t *testing.T) {
	for _, schema := range []string{
		`{"oneOf":[{"type":"null"}]}`, `{"pattern":"a"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`,
		`{"const":"a"}`, `{"properties":{"a":{"uniqueItems":true}}}`, `{"$defs":{"a":{"not":{}}},"items":{"$ref":"#/$defs/a"}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}]}`, `{"minLength":1}`, `{"maxItems":2}`, `{"allOf":[{}]}`,
		`{"anyOf":[{"exclusiveMinimum":1}]}`, `{"additionalProperties":{"multipleOf":2}}`,
	} {
		_, usual, ok := compile([]byte(schema))
		require.True(t, ok, schema)
		require.False(t, usual, schema)
	}
}
