package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// An OutputError says that the structured content of a tool's result is not what the output schema
// of the tool promises (2025-06-18, server/tools, "Output Schema"). The server is at fault, not the
// model.
type OutputError struct {
	Tool   string
	Faults []string // each with the place in the content, as a JSON pointer; the first few
	Result *protocol.CallToolResult
}

// Error names the tool and what is wrong.
func (e *OutputError) Error() string {
	return fmt.Sprintf("client: tool %q: its output is not what its schema says: %s", e.Tool, strings.Join(e.Faults, "; "))
}

// Bounds of the check of outputs. What lies beyond them is not checked: schemas come from the
// server, which must not make checking costly.
const (
	maxOutputSchema = 1 << 20 // bytes
	maxSchemaCost   = 4096    // schemas that one value is held to
	maxOutputSteps  = 1 << 18 // schemas that the values of one output are held to, all together
	maxOutputFaults = 5
	maxNumberLength = 64 // as text; a short exponent can stand for a number that fills the memory
	maxExponent     = 400
)

// An outputSchema holds outputs to the schema of a tool. It compiles when it is first needed.
type outputSchema struct {
	raw      []byte
	compile  sync.Once
	compiled *jsonschema.Schema // nil when it cannot be checked against
	fault    error              // why
	accept   *acceptor          // tells at once that most outputs are right; nil where the schema is unusual

	mu    sync.Mutex
	steps int // of the check that runs; guarded by mu
}

// errSteps ends a check that takes too many steps.
var errSteps = errors.New("checking it takes too long")

// step makes every schema count its steps.
func (s *outputSchema) step(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
	return stepCounter{s}, nil
}

type stepCounter struct{ s *outputSchema }

// Validate counts. The validator has no other way out than a panic, which check takes.
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
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: vocabulary, Compile: s.step})
	c.AssertVocabs()
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	if (schemaCosts{}).of(compiled) > maxSchemaCost {
		return nil, errSteps
	}
	return compiled, nil
}

// noLoader keeps references from leading out of the schema: nothing is ever fetched.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref %.100q leads out of the schema", url)
}

// decodeChecked decodes JSON for the validator, which computes with exact numbers.
func decodeChecked(raw []byte) (any, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return doc, checkNumbers(doc)
}

func checkNumbers(doc any) error {
	switch v := doc.(type) {
	case map[string]any:
		for _, member := range v {
			if err := checkNumbers(member); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := checkNumbers(element); err != nil {
				return err
			}
		}
	case json.Number:
		exponent := 0
		if _, text, ok := strings.Cut(strings.ToLower(string(v)), "e"); ok {
			if _, err := fmt.Sscanf(strings.TrimPrefix(text, "+"), "%d", &exponent); err != nil {
				return fmt.Errorf("the number %.40q is too large", string(v))
			}
		}
		if len(v) > maxNumberLength || exponent > maxExponent || exponent < -maxExponent {
			return fmt.Errorf("the number %.40q is too large", string(v))
		}
	}
	return nil
}

// schemaCosts are how many schemas a value is held to by each schema, at most. Those that refer to
// one another twice and twice again cost more than they look.
type schemaCosts map[*jsonschema.Schema]int

func (m schemaCosts) of(s *jsonschema.Schema) int {
	if s == nil {
		return 0
	}
	if cost, ok := m[s]; ok {
		return cost
	}
	m[s] = 1 // a schema that leads back to itself in one place is refused by the validator
	cost := 1
	add := func(subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			cost = min(cost+m.of(sub), maxSchemaCost+1)
		}
	}
	add(s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		add(s.DynamicRef.Ref)
	}
	add(s.AllOf...)
	add(s.AnyOf...)
	add(s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(sub)
	}
	m[s] = cost
	// What the members and elements are held to counts where they are; here only whether one of
	// them costs too much.
	worst := cost
	look := func(subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			worst = max(worst, m.of(sub))
		}
	}
	look(s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems)
	look(s.PrefixItems...)
	for _, sub := range s.Properties {
		look(sub)
	}
	for _, sub := range s.PatternProperties {
		look(sub)
	}
	for _, sub := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			look(sub)
		}
	}
	if worst > maxSchemaCost {
		m[s] = worst
	}
	return m[s]
}

var english = message.NewPrinter(language.English)

// check holds an output to the schema and returns what is wrong with it. An error says that it
// cannot be checked.
func (s *outputSchema) check(content []byte) (faults []string, err error) {
	s.compile.Do(func() {
		if s.compiled, s.fault = s.prepare(); s.fault == nil {
			s.accept = newAcceptor(s.raw)
		}
	})
	if s.fault != nil {
		return nil, s.fault
	}
	if s.accept != nil && s.accept.accepts(content) {
		return nil, nil
	}
	doc, err := decodeChecked(content)
	if err != nil {
		return nil, err
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

// collectFaults takes the leaves of the validator's tree: they say what is wrong, the branches only
// where.
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

// checkOutput reports structured content that is not what the tool's output schema says, as far as
// the tools were listed. Before it does, it looks whether the server has changed the schema
// meanwhile.
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
			return nil, t // which has neither
		}
		return []string{"there is no structured content"}, t
	}
	faults, err := t.schema.check(r.StructuredContent)
	if err != nil {
		c.warn("client: the output of a tool was not checked", "tool", clip(name), "reason", clip(err.Error()))
	}
	return faults, t
}

// newOutputSchema returns the validator of a tool's output, or nil if the tool has no schema.
func newOutputSchema(raw []byte) *outputSchema {
	if raw == nil || jsonx.Kind(raw) == 'n' {
		return nil
	}
	return &outputSchema{raw: raw}
}
