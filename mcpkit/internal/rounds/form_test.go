package rounds_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit/internal/rounds"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
)

// fields are the schemas that fields of a form have in the examples of client/elicitation, and
// others with the same keywords.
var fields = []string{
	`{"type":"string","title":"Name","description":"A name","default":"x"}`, `{"type":"string","minLength":2,"maxLength":3}`,
	`{"type":"string","format":"email"}`, `{"type":"string","format":"uri"}`, `{"type":"string","format":"date"}`, `{"type":"string","format":"date-time","minLength":200}`,
	`{"type":"number","minimum":0.5,"maximum":3}`, `{"type":"integer","minimum":-1,"maximum":9007199254740993}`, `{"type":"integer","maximum":1e2}`,
	`{"type":"boolean","default":true}`, `{"type":"string","enum":["a","ä"],"enumNames":["A","B"]}`, `{"type":"string","enum":["a"]}`, `{"enum":[1,true,"x"]}`,
	`{"type":"array","items":{"type":"string","enum":["a","ä"]},"minItems":1,"maxItems":2}`, `{"type":"array","items":{"type":"integer","minimum":2}}`, `{}`,
}

var values = []string{
	`""`, `"a"`, `"\u00e4"`, `"ä"`, `"aä€"`, `"aä€x"`, `"x"`, `0`, `0.5`, `0.4999`, `1`, `1.0`, `10e-1`, `1.5`, `3`, `3.5`, `-1`, `-2`, `100`, `101`, `1e2`, `1E3`,
	`9007199254740992`, `9007199254740993`, `9007199254740994`, `true`, `false`, `{}`, `{"a":1}`, `[]`, `["a"]`, `["a","ä"]`, `["a","b","c"]`, `[1]`, `[2,3]`, `[["a"]]`,
}

func TestAnswersAreValidatedAsByAJSONSchemaValidator(t *testing.T) {
	for _, field := range fields {
		schema := json.RawMessage(`{"type":"object","properties":{"f":` + field + `,"g":{"type":"string"}},"required":["f"]}`)
		reference, err := rawschema.Compile(schema)
		require.NoError(t, err)
		contents := []string{`{}`, `{"g":"x"}`, `{"g":1}`, `[]`, `7`, `"f"`}
		for _, value := range values {
			contents = append(contents, `{"f":`+value+`}`, `{"other":1,"f":`+value+`,"g":7}`)
		}
		for _, content := range contents {
			want := reference.Validate(json.RawMessage(content)) == nil
			require.Equal(t, want, rounds.CheckContent(schema, json.RawMessage(content)) == nil, "%s: %s", field, content)
		}
	}
}

func TestValuesWithTitlesAreOneOfTheOptions(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"one":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},
		"many":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}}}`)
	require.NoError(t, rounds.CheckContent(schema, json.RawMessage(`{"one":"a","many":["b","a"]}`)))
	require.EqualError(t, rounds.CheckContent(schema, json.RawMessage(`{"one":"c","many":["a",1]}`)), `the content of the response does not fit the form: 2 problems with the arguments:
/one: got "c", want "a" or "b"
/many/1: got 1, want "a" or "b"`)
}

func TestContentForAMalformedSchemaIsNotValidated(t *testing.T) {
	for _, schema := range []string{
		``, `null`, `7`, `{}`, `{"type":7}`, `{"type":"other","properties":7,"required":{}}`, `{"properties":{"f":7},"required":"f"}`,
		`{"properties":{"f":{"type":["null"],"minLength":"9"}}}`, `{"properties":{"f":{"pattern":"("}}}`, `{"$ref":"#/$defs/none"}`,
	} {
		for i, value := range values {
			require.NoError(t, rounds.CheckContent(json.RawMessage(schema), json.RawMessage(`{"f":`+value+`}`)), "%s "+strconv.Itoa(i), schema)
		}
	}
}

// A number with a large exponent would fill the memory of an exact validator.
func TestLargeExponentsAreCompared(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"f":{"type":"integer","maximum":5}}}`)
	require.ErrorContains(t, rounds.CheckContent(schema, json.RawMessage(`{"f":1e999999999}`)), "/f: got 1e999999999, want an integer of at most 5")
}
