package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeaderParams(t *testing.T) {
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	for _, test := range []struct {
		name, schema string
		want         []HeaderParam
		err          string
	}{
		{name: "none", schema: object(`"a":{"type":"string"}`)},
		{name: "each type", schema: object(`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"Method"},"c":{"type":"boolean","x-mcp-header":"c"}`),
			want: []HeaderParam{{"Mcp-Param-A", []string{"a"}, false}, {"Mcp-Param-Method", []string{"b"}, true}, {"Mcp-Param-C", []string{"c"}, false}}},
		{name: "nested", schema: object(`"a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"B"}}}`), want: []HeaderParam{{"Mcp-Param-B", []string{"a", "b"}, false}}},
		{name: "a property of that name", schema: object(`"x-mcp-header":{"type":"string"}`)},
		{name: "a value", schema: object(`"a":{"const":{"x-mcp-header":"A"},"default":{"x-mcp-header":""}}`)},
		{name: "empty", schema: object(`"a":{"type":"string","x-mcp-header":""}`), err: `x-mcp-header of "a" is not a valid header name`},
		{name: "not a string", schema: object(`"a":{"type":"string","x-mcp-header":1}`), err: `x-mcp-header of "a" is not a valid header name`},
		{name: "a blank", schema: object(`"a":{"type":"string","x-mcp-header":"A B"}`), err: `x-mcp-header of "a" is "A B", which is not a valid header name`},
		{name: "a line break", schema: object(`"a":{"type":"string","x-mcp-header":"A\r\nB"}`), err: `x-mcp-header of "a" is "A\r\nB", which is not a valid header name`},
		{name: "a number", schema: object(`"a":{"type":"number","x-mcp-header":"A"}`), err: `x-mcp-header "A" is at "a", which is not a string, integer or boolean`},
		{name: "several types", schema: object(`"a":{"type":["string","null"],"x-mcp-header":"A"}`), err: `x-mcp-header "A" is at "a", which is not a string, integer or boolean`},
		{name: "no type", schema: object(`"a":{"enum":["x"],"x-mcp-header":"A"}`), err: `x-mcp-header "A" is at "a", which is not a string, integer or boolean`},
		{name: "twice", schema: object(`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`), err: `x-mcp-header "a" is declared twice`},
		{name: "at the root", schema: `{"type":"string","x-mcp-header":"A"}`, err: `x-mcp-header "A" is at "", which is not a property of the arguments`},
		{name: "in items", schema: object(`"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), err: `x-mcp-header "A" is at "a.items", which is not a property of the arguments`},
		{name: "in anyOf", schema: `{"anyOf":[` + object(`"a":{"type":"string","x-mcp-header":"A"}`) + `]}`, err: `x-mcp-header "A" is at "anyOf.a", which is not a property of the arguments`},
		{name: "in $defs", schema: `{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`, err: `x-mcp-header "A" is at "$defs", which is not a property of the arguments`},
		{name: "nested too deeply", schema: strings.Repeat(`{"not":`, 100) + `{"x-mcp-header":"A"}` + strings.Repeat("}", 100), err: "the schema is nested too deeply"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(test.schema)))
			got, err := HeaderParams([]byte(test.schema))
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func FuzzHeaderParams(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"anyOf":[{"$ref":"#"}]}}}`))
	f.Add([]byte(`{"properties":[],"items":{"x-mcp-header":1}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		found, err := HeaderParams(schema)
		if err != nil {
			return
		}
		for _, h := range found {
			require.True(t, isToken(h.Header))
			require.NotEmpty(t, h.Path)
		}
	})
}
