package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// An OutputError reports that the structured content of a result violates the output schema of the
// tool (2025-06-18, server/tools, "Output Schema"). The fault is in the server, not in the
// arguments.
type OutputError struct {
	Tool   string
	Faults []string // the first 5, each with its JSON pointer into the content
	Result *protocol.CallToolResult
}

// Error returns the tool and the faults.
func (e *OutputError) Error() string {
	return fmt.Sprintf("client: tool %q: the output violates its schema: %s", e.Tool, strings.Join(e.Faults, "; "))
}

// Limits of the check of outputs. An output beyond them is not checked: schemas come from the
// server, which must not be able to make the check expensive.
const (
	maxOutputSchema = 1 << 20 // bytes
	maxOutputSteps  = 1 << 18 // values of one output, and schemas that all of them are checked against
	itemsPerStep    = 16      // items of an enum or of required that count as a step
	maxOutputFaults = 5
	maxNumberLength = 64 // digits; a number with a large exponent could fill the memory
	maxExponent     = 400
)

// An outputSchema checks outputs against the schema of a tool. It compiles on first use.
type outputSchema struct {
	raw      []byte
	patterns bool // are checked
	compile  sync.Once
	compiled *jsonschema.Schema // nil if it does not compile
	fault    error              // why it does not compile
	longest  int                // items of its longest list
	ignored  bool               // has patterns that are not checked
	negating bool               // has keywords that a pattern which accepts all values can violate

	mu    sync.Mutex
	steps int // of the current check; guarded by mu
}

// errSteps ends a check that exceeds maxOutputSteps.
var errSteps = errors.New("the check takes too long")

// step adds a stepCounter to every schema, and notes its patterns, and its lists, which are searched
// for each value.
func (s *outputSchema) step(_ *jsonschema.CompilerContext, schema map[string]any) (jsonschema.SchemaExt, error) {
	s.ignored = s.ignored || !s.patterns && (schema["pattern"] != nil || schema["patternProperties"] != nil)
	for _, keyword := range []string{"not", "if", "oneOf", "contains", "patternProperties"} {
		s.negating = s.negating || schema[keyword] != nil
	}
	for _, keyword := range []string{"enum", "const", "required", "dependentRequired", "dependencies"} {
		s.longest = max(s.longest, countItems(schema[keyword]))
	}
	return stepCounter{s}, nil
}

// eachValue calls f with v and all values in it.
func eachValue(v any, f func(any)) {
	f(v)
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			eachValue(element, f)
		}
	case map[string]any:
		for _, member := range v {
			eachValue(member, f)
		}
	}
}

// countItems counts the values in v.
func countItems(v any) (n int) {
	eachValue(v, func(any) { n++ })
	return n
}

type stepCounter struct{ s *outputSchema }

// Validate counts a step. Only a panic can stop the validator; check recovers it.
func (c stepCounter) Validate(*jsonschema.ValidatorContext, any) {
	if c.s.steps++; c.s.steps > maxOutputSteps {
		panic(errSteps)
	}
}

// prepare compiles the schema.
func (s *outputSchema) prepare() (*jsonschema.Schema, error) {
	if len(s.raw) > maxOutputSchema {
		return nil, fmt.Errorf("it is larger than %d bytes", maxOutputSchema)
	}
	doc, err := decodeChecked(s.raw)
	if err != nil {
		return nil, err
	}
	const name, vocabulary = "mcpkit:output", "mcpkit:steps"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if !s.patterns {
		c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) { return ignoredPattern(pattern), nil })
	}
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: vocabulary, Compile: s.step})
	c.AssertVocabs()
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(name)
	if err == nil && s.ignored && s.negating {
		err = errors.New("it combines patterns with other keywords, and patterns of servers are ignored; see CheckPatterns")
	}
	return compiled, err
}

// An ignoredPattern stands for the pattern of a server, which may cost any amount of memory and time. It
// accepts all values.
type ignoredPattern string

// MatchString implements [jsonschema.Regexp].
func (ignoredPattern) MatchString(string) bool { return true }

// String implements [jsonschema.Regexp].
func (p ignoredPattern) String() string { return string(p) }

// noLoader refuses references to other documents.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref %.100q points outside the schema", url)
}

// decodeChecked decodes JSON for the validator, which uses exact numbers, and refuses numbers that
// would be expensive.
func decodeChecked(raw []byte) (any, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	eachValue(doc, func(v any) {
		if number, ok := v.(json.Number); ok && tooLarge(string(number)) {
			err = fmt.Errorf("the number %.40q is too large", string(number))
		}
	})
	return doc, err
}

// tooLarge reports whether a number would be expensive.
func tooLarge(number string) bool {
	_, text, _ := strings.Cut(strings.ToLower(number), "e")
	exponent, err := strconv.Atoi(cmp.Or(text, "0"))
	return err != nil || len(number) > maxNumberLength || exponent > maxExponent || exponent < -maxExponent
}

var english = message.NewPrinter(language.English)

// check validates content and returns its faults. The error says why it could not be checked.
func (s *outputSchema) check(content []byte) (faults []string, err error) {
	s.compile.Do(func() {
		s.compiled, s.fault = s.prepare()
	})
	if s.fault != nil {
		return nil, s.fault
	}
	doc, err := decodeChecked(content)
	if err != nil {
		return nil, err
	}
	if countItems(doc)*(1+s.longest/itemsPerStep) > maxOutputSteps {
		return nil, errSteps
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if e := recover(); e != nil {
			if e != any(errSteps) {
				panic(e)
			}
			err = errSteps
		}
	}()
	s.steps = 0
	if bad, ok := errors.AsType[*jsonschema.ValidationError](s.compiled.Validate(doc)); ok {
		collectFaults(bad, &faults)
	}
	return faults, nil
}

// collectFaults collects the leaves of the error tree, which describe the faults.
func collectFaults(e *jsonschema.ValidationError, faults *[]string) {
	if len(*faults) == maxOutputFaults {
		return
	}
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			collectFaults(cause, faults)
		}
		return
	}
	var at strings.Builder
	for _, token := range e.InstanceLocation {
		at.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	*faults = append(*faults, fmt.Sprintf("at %.100q: %.200s", at.String(), e.ErrorKind.LocalizedString(english)))
}

// checkOutput returns an OutputError if the structured content violates the output schema of a
// listed tool. Before, it refreshes the list in case the server has changed the schema.
func (c *Client) checkOutput(ctx context.Context, name string, r *protocol.CallToolResult) error {
	faults, known := c.outputFaults(name, r)
	if len(faults) == 0 {
		return nil
	}
	if c.refreshTools(ctx) == nil {
		if now, ok := c.tools.get(name); !ok || !bytes.Equal(now.output, known.output) {
			faults, _ = c.outputFaults(name, r)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &OutputError{Tool: name, Faults: faults, Result: r}
}

func (c *Client) outputFaults(name string, r *protocol.CallToolResult) ([]string, *knownTool) {
	t, ok := c.tools.get(name)
	if !ok || t.schema == nil {
		return nil, t
	}
	if r.StructuredContent == nil {
		if c.Version() < protocol.V20250618 {
			return nil, t // it has neither schemas nor structured content
		}
		return []string{"there is no structured content"}, t
	}
	faults, err := t.schema.check(r.StructuredContent)
	if err != nil {
		c.warn("client: the output of a tool could not be checked", "tool", clip(name), "reason", clip(err.Error()))
	}
	return faults, t
}

// newOutputSchema returns the validator of a tool's output, or nil if the tool has no schema.
func newOutputSchema(raw []byte, patterns bool) *outputSchema {
	if raw == nil || jsonx.Kind(raw) == 'n' {
		return nil
	}
	return &outputSchema{raw: raw, patterns: patterns}
}
