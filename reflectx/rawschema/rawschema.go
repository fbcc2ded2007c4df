// Package rawschema validates by JSON Schemas written by hand. A server that has such schemas takes
// it as an option:
//
//	mcpkit.New(&Reports{}, mcpkit.RawSchemas(rawschema.Compile))
//
// It is a package of its own because the validator that it wraps compiles all versions of JSON
// Schema when a program starts, which takes longer than the rest of a small server's start.
package rawschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A schema is a compiled JSON Schema.
type schema struct{ compiled *jsonschema.Schema }

// Compile compiles a schema (2020-12 unless it declares another version). References are only
// resolved within it: Compile never reads a file or a network address.
func Compile(raw json.RawMessage) (reflectx.RawSchema, error) {
	if !jsonx.Valid(raw) {
		return nil, errors.New("the schema is not valid JSON")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("the schema does not parse: %w", err)
	}
	const name = "mcpkit:schema"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("the schema does not compile: %w", err)
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("the schema does not compile: %w", err)
	}
	return schema{compiled}, nil
}

// noLoader refuses references to other schemas.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref %q leads out of the schema; put what it names into $defs", url)
}

// Validate implements [reflectx.RawSchema].
func (s schema) Validate(value json.RawMessage) error {
	var wrong reflectx.ArgumentError
	if !jsonx.Valid(value) { // two readers of the same bytes could choose different duplicates
		wrong.Add(value, nil, "an object without duplicate names")
		return &wrong
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return fmt.Errorf("rawschema: value to validate: %w", err)
	}
	err = s.compiled.Validate(doc)
	invalid, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return err
	}
	collect(&wrong, invalid, value)
	return &wrong
}

var english = message.NewPrinter(language.English)

// collect turns the leaves of the validator's tree into violations: they say what is wrong, the
// branches only where.
func collect(wrong *reflectx.ArgumentError, invalid *jsonschema.ValidationError, value json.RawMessage) {
	if len(invalid.Causes) == 0 {
		wrong.Add(value, invalid.InstanceLocation, "what the schema says: "+invalid.ErrorKind.LocalizedString(english))
		return
	}
	for _, cause := range invalid.Causes {
		collect(wrong, cause, value)
	}
}
