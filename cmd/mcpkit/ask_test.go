package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestChoicesAreReadFromAllVersions(t *testing.T) {
	for _, test := range []struct {
		name, schema string
		answer       string
		want, err    string
		hint         string
	}{
		{"enum", `{"type":"string","enum":["a","b"]}`, "2", `"b"`, "", " [empty for none]"},
		{"enum with names", `{"type":"string","enum":["a","b"],"enumNames":["Ay","Bee"]}`, "bee", `"b"`, "", " [empty for none]"},
		{"titles", `{"type":"string","oneOf":[{"const":"a","title":"Ay"},{"const":"b"}],"default":"a"}`, "Ay", `"a"`, "", ` ["a" when empty]`},
		{"not a choice", `{"type":"string","enum":["a","b"]}`, "3", "", `"3" is not one of the choices`, " [empty for none]"},
		{"a value that looks like a number", `{"type":"string","enum":["2","1"]}`, "2", `"2"`, "", " [empty for none]"},
		{"several", `{"type":"array","items":{"enum":["a","b"]}}`, "2, a,", `["b","a"]`, "", " [numbers, separated by commas, empty for none]"},
		{"several with titles", `{"type":"array","items":{"anyOf":[{"const":"a","title":"Ay"}]}}`, "ay", `["a"]`, "", " [numbers, separated by commas, empty for none]"},
		{"number", `{"type":"number"}`, "1.50", `1.50`, "", " [number, empty for none]"},
		{"not a number", `{"type":"number"}`, `"1"`, "", `"\"1\"" is not a number`, " [number, empty for none]"},
		{"yes", `{"type":"boolean","default":false}`, "Y", `true`, "", " [yes or no, false when empty]"},
		{"text", `{"type":"string"}`, `a "b"`, `"a \"b\""`, "", " [empty for none]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fields, err := formFields(json.RawMessage(`{"type":"object","properties":{"x":` + test.schema + `}}`))
			require.NoError(t, err)
			require.Len(t, fields, 1)
			require.Equal(t, test.hint, fields[0].hint())
			got, err := fields[0].parse(test.answer, fields[0].choices())
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

// Any schema of a server and any input of a user lead to JSON or an error, and to no control
// characters on the screen.
func FuzzForms(f *testing.F) {
	f.Add(`{"type":"object","properties":{"x":{"type":"string","enum":["a"],"enumNames":["A\u001b[0m"]}},"required":["x"]}`, "1")
	f.Add(`{"properties":{"x":{"type":"array","items":{"anyOf":[{"const":"a"}]}}}}`, "1,,2")
	f.Add(`{"properties":{"x":{"type":"integer","default":{}}}}`, "1e400")
	f.Add(`{"properties":{"x":{"type":"boolean"}}}`, "maybe")
	f.Add(`{"properties":[]}`, "")
	f.Fuzz(func(t *testing.T, schema, answer string) {
		fields, err := formFields(json.RawMessage(schema))
		if err != nil {
			return
		}
		for _, field := range fields {
			choices := field.choices()
			for _, shown := range []string{cleanLine(field.label()), field.hint()} {
				require.False(t, strings.ContainsFunc(shown, unicode.IsControl), "%q", shown)
			}
			if value, err := field.parse(answer, choices); err == nil {
				require.True(t, json.Valid(value), string(value))
				_ = field.schema.Validate(value)
			}
		}
	})
}
