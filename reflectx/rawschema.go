package reflectx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A RawSchema is a JSON Schema written by hand (2020-12 unless it declares another version), ready
// to validate. It is safe for concurrent use.
type RawSchema struct{ compiled *jsonschema.Schema }

// CompileSchema compiles a schema. References are only resolved within it: CompileSchema never
// reads a file or a network address.
func CompileSchema(schema json.RawMessage) (*RawSchema, error) {
	if !jsonx.Valid(schema) {
		return nil, errors.New("the schema is not valid JSON")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
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
	return &RawSchema{compiled}, nil
}

// noLoader refuses references to other schemas.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref %q leads out of the schema; put what it names into $defs", url)
}

// Validate validates value, which is valid JSON, by the schema. The error is an *[ArgumentError]
// with every violation.
func (s *RawSchema) Validate(value json.RawMessage) error {
	if !jsonx.Distinct(value) && !jsonx.Valid(value) { // two readers of the same bytes could choose different duplicates
		return &ArgumentError{Violations: []Violation{{Got: shorten(value), Want: "an object without duplicate names"}}}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return fmt.Errorf("reflectx: value to validate: %w", err)
	}
	err = s.compiled.Validate(doc)
	invalid, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return err
	}
	e := &ArgumentError{}
	e.collect(invalid, value)
	return e
}

var english = message.NewPrinter(language.English)

// collect turns the leaves of the validator's tree into violations: they say what is wrong, the
// branches only where.
func (e *ArgumentError) collect(invalid *jsonschema.ValidationError, value json.RawMessage) {
	if len(invalid.Causes) > 0 {
		for _, cause := range invalid.Causes {
			e.collect(cause, value)
		}
		return
	}
	if len(e.Violations) >= violationLimit {
		e.more++
		return
	}
	at := value
	var pointer strings.Builder
	for _, token := range invalid.InstanceLocation {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
		at = child(at, token)
	}
	e.Violations = append(e.Violations, Violation{
		Pointer: pointer.String(),
		Got:     shorten(at),
		Want:    "what the schema says: " + invalid.ErrorKind.LocalizedString(english),
	})
}

// child is the member or element of value that a token of a JSON pointer names.
func child(value json.RawMessage, token string) json.RawMessage {
	if jsonx.Kind(value) != '[' {
		return jsonx.Member(value, token)
	}
	i := 0
	for element := range jsonx.Elements(value) {
		if fmt.Sprint(i) == token {
			return element
		}
		i++
	}
	return nil
}
