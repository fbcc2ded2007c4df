//go:build !mcpkit_plain

package client

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

var acceptedSchemas = []string{
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

// What is accepted without the validator, the validator finds nothing wrong with.
func FuzzAcceptedOutputsAreValid(f *testing.F) {
	for _, schema := range acceptedSchemas {
		for _, output := range someOutputs {
			f.Add([]byte(schema), []byte(output))
		}
	}
	f.Fuzz(func(t *testing.T, schema, output []byte) {
		if !jsonx.Valid(schema) || !jsonx.Valid(output) {
			return
		}
		s := newOutputSchema(schema[jsonx.SkipSpace(schema, 0):])
		if s == nil {
			return
		}
		if _, err := s.check([]byte("0")); s.fault != nil || s.accept == nil || !s.accept.accepts(output) {
			_ = err
			return
		}
		s.accept = nil
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
		no     []string // wrong, or for the validator to look at
	}{
		{"an object", acceptedSchemas[0], []string{`{"sum":42}`, ` { "sum" : -1 } `}, []string{`{}`, `{"sum":1.0}`, `{"sum":1e2}`, `{"sum":1,"x":1}`, `[]`, `{"\u0073um":1}`}},
		{"definitions", acceptedSchemas[1], []string{`{"hits":[{"id":1,"title":"abc","more":{"id":9}}]}`}, []string{`{"hits":[{"title":"a"}]}`, `{"hits":[{"id":0}]}`, `{"hits":[{"id":1,"title":2}]}`}},
		{"one of several", acceptedSchemas[2], []string{`null`, `"x"`, `1.5`, `7`}, []string{`true`, `{}`}},
		{"listed strings", acceptedSchemas[3], []string{`"a"`}, []string{`"c"`, `1`}},
		{"bounds", acceptedSchemas[4], []string{`{"a":true,"n":0.5}`, `{"a":false,"n":1}`}, []string{`{"a":true,"n":1.5}`, `{"n":1}`, `{"a":1}`}},
		{"required but not declared", acceptedSchemas[5], nil, []string{`{"a":1}`, `{"c":1,"a":1}`}},
		{"anything", `{}`, []string{`{"a":[1,{"b":2.5}]}`, `null`}, []string{`{"a":[1e5]}`}},
		{"nothing", `false`, nil, []string{`1`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAcceptor([]byte(test.schema))
			require.NotNil(t, a)
			for _, output := range test.yes {
				require.True(t, a.accepts([]byte(output)), output)
			}
			for _, output := range test.no {
				require.False(t, a.accepts([]byte(output)), output)
			}
		})
	}
}

func TestUnusualSchemasNeedTheValidator(t *testing.T) {
	for _, schema := range []string{
		`{"oneOf":[{"type":"null"}]}`, `{"pattern":"a"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, `{"$ref":"https://example.com/x"}`,
		`{"$ref":"#"}`, `{"$ref":"#/$defs/none"}`, `{"$ref":"#/$defs/a~1b"}`, `{"enum":[1]}`, `{"const":"a"}`, `{"minimum":0.5}`, `{"maximum":1e3}`,
		`{"type":"text"}`, `{"type":[]}`, `{"properties":{"a":{"uniqueItems":true}}}`, `{"$defs":{"a":{"not":{}}},"items":{"$ref":"#/$defs/a"}}`, `{"$id":"x"}`,
		`{"items":[{"type":"null"}]}`, `{"minLength":1}`, `{"maxItems":2}`, `{"allOf":[{}]}`, `7`,
	} {
		require.Nil(t, newAcceptor([]byte(schema)), schema)
	}
	loop := newAcceptor([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`))
	require.NotNil(t, loop)
	require.False(t, loop.accepts([]byte(`1`)), "what leads back to itself ends")
}
