package form

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Check validates content, the answer to a form, by the schema of the form, as arguments are by that
// of a tool. Content for a schema that cannot be read is not validated. The error is an
// [*reflectx.ArgumentError].
func Check(schema, content json.RawMessage) error {
	form, err := reflectx.CompileSchema(schema)
	if err != nil {
		return nil
	}
	return form.Validate(content)
}
