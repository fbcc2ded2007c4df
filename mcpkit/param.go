package mcpkit

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A ParamOption configures one parameter that [ToolBuilder.Param] or [PromptBuilder.Param] names.
type ParamOption func(*param)

// A param is what a builder is told about one parameter: the tag that it would have as a field.
type param struct {
	optional bool
	tag      reflect.StructTag
	err      error
}

// Desc sets the description of the parameter: what models and people read about it. It is the tag
// desc of a field.
func Desc(text string) ParamOption { return FieldTag("desc", text) }

// Optional lets callers leave the parameter out: the function then gets the zero value. Parameters
// are required by default, unless they have a pointer type or a [Default].
func Optional() ParamOption { return func(p *param) { p.optional = true } }

// Default is the value of the parameter when callers leave it out. It must be valid for the type
// and the rules of the parameter.
func Default(value any) ParamOption {
	return func(p *param) {
		encoded, err := jsonx.Marshal(value)
		if err != nil {
			p.err = fmt.Errorf("the default does not encode: %w", err)
			return
		}
		text := string(encoded)
		if jsonx.Kind(encoded) == '"' {
			text = jsonx.String(encoded)
		}
		p.tag = appendTag(p.tag, "default", text)
	}
}

// Rules restricts the values of the parameter with the rules of a validate tag, for example
// "min=1,max=50" or "oneof=short long". Rules that begin with pattern= are a regular expression,
// for example "pattern=^[a-z]+$".
func Rules(rules string) ParamOption {
	return func(p *param) { p.tag = appendRules(p.tag, rules) }
}

// FieldTag gives the parameter any tag that a field of an input struct may have, for example
// FieldTag("example", "green tea").
func FieldTag(key, value string) ParamOption {
	return func(p *param) { p.tag = appendTag(p.tag, key, value) }
}

// appendTag appends a pair to a tag.
func appendTag(tag reflect.StructTag, key, value string) reflect.StructTag {
	return reflect.StructTag(strings.TrimSpace(string(tag) + " " + key + ":" + strconv.Quote(value)))
}

// appendRules appends rules to the tag of a parameter. A pattern is a keyword of the schema, since
// the validator has no rule for it.
func appendRules(tag reflect.StructTag, rules string) reflect.StructTag {
	if strings.HasPrefix(rules, "pattern=") {
		return appendTag(tag, "jsonschema", strings.ReplaceAll(rules, ",", `\,`))
	}
	return appendTag(tag, "validate", rules)
}

// setRules reads the rules of plain parameters: "style:oneof=short long; id:min=2".
func setRules(a *annotation, v string) error {
	for entry := range strings.SplitSeq(v, ";") {
		name, rules, ok := strings.Cut(entry, ":")
		name, rules = strings.TrimSpace(name), strings.TrimSpace(rules)
		if !ok || name == "" || rules == "" {
			return fmt.Errorf("%q is not of the form parameter:rules", strings.TrimSpace(entry))
		}
		a.setParamTag(name, appendRules(a.paramTags[name], rules))
	}
	return nil
}

func (a *annotation) setParamTag(name string, tag reflect.StructTag) {
	if a.paramTags == nil {
		a.paramTags = map[string]reflect.StructTag{}
	}
	a.paramTags[name] = tag
}

// param adds the next plain parameter of the function.
func (b *builder) param(name string, opts []ParamOption) {
	fault := func(format string, args ...any) {
		b.faults = append(b.faults, fmt.Sprintf("parameter %q: ", name)+fmt.Sprintf(format, args...))
	}
	var p param
	for _, o := range opts {
		if o == nil {
			fault("an option is nil")
			continue
		}
		o(&p)
	}
	if p.err != nil {
		fault("%v", p.err)
	}
	if strings.ContainsAny(name, ",?") {
		fault("a name has no comma and no question mark; call Param once for each parameter, with Optional() if callers may leave it out")
	}
	if _, twice := b.def.paramTags[name]; twice {
		fault("it is named twice; call Param once for each parameter, in order")
	}
	b.def.setParamTag(name, p.tag)
	if p.optional {
		name += "?"
	}
	b.names = append(b.names, name)
}
