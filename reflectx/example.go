package reflectx

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// exampleOf returns a value that the schema accepts, made of examples, defaults, constants and
// limits.
func (c *compiler) exampleOf(s *jsonschema.Schema) (json.RawMessage, bool) {
	c.depth++
	defer func() { c.depth-- }()
	switch {
	case len(s.Examples) > 0:
		return json.RawMessage(jsonText(s.Examples[0])), true
	case s.Default != nil:
		return json.RawMessage(jsonText(s.Default)), true
	case s.Const != nil:
		return json.RawMessage(jsonText(s.Const)), true
	case len(s.Enum) > 0:
		return json.RawMessage(jsonText(s.Enum[0])), true
	case s.Ref != "":
		def := c.done[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if def == nil || c.depth > 16 {
			return nil, false
		}
		return c.exampleOf(def)
	}
	switch s.Type {
	case "object":
		return c.exampleObject(s)
	case "array":
		return c.exampleArray(s)
	case "boolean":
		return c.firstOf(s, "true", "false")
	case "integer", "number":
		return c.exampleNumber(s)
	case "string":
		return c.exampleText(s)
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		if raw, ok := c.exampleOf(one); ok {
			return raw, true
		}
	}
	return c.firstOf(s, `"text"`, "1", "{}", "[]", "true")
}

func (c *compiler) exampleNumber(s *jsonschema.Schema) (json.RawMessage, bool) {
	between := ""
	low, err := cmp.Or(s.Minimum, s.ExclusiveMinimum).Float64()
	if high, err2 := cmp.Or(s.Maximum, s.ExclusiveMaximum).Float64(); err == nil && err2 == nil {
		between = strconv.FormatFloat(low/2+high/2, 'f', -1, 64)
	}
	return c.firstOf(s, "1", string(s.Minimum), string(s.Maximum), nextTo(s.ExclusiveMinimum, 1), nextTo(s.ExclusiveMaximum, -1),
		string(s.MultipleOf), "0", "2", "10", between)
}

func nextTo(limit json.Number, by float64) string {
	x, err := limit.Float64()
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(x+by, 'f', -1, 64)
}

// firstOf returns the first of the values that s accepts.
func (c *compiler) firstOf(s *jsonschema.Schema, values ...string) (json.RawMessage, bool) {
	n := c.nodes[s]
	for _, raw := range values {
		if raw != "" && n != nil && n.valid([]byte(raw)) && c.decodes(s, raw) {
			return json.RawMessage(raw), true
		}
	}
	return nil, false
}

// decodes reports whether the value is one for the Go type, which may parse it itself, and for the
// rules that only the validator knows.
func (c *compiler) decodes(s *jsonschema.Schema, raw string) bool {
	h := c.hints[s]
	if h == nil || h.t == nil {
		return true
	}
	v := reflect.New(h.t)
	if jsonx.Unmarshal([]byte(raw), v.Interface()) != nil {
		return false
	}
	for _, rule := range h.checks {
		failed := false
		if panics(func() { failed = c.validate.Var(v.Elem().Interface(), rule) != nil }) || failed {
			return false
		}
	}
	return true
}

// exampleTexts are tried in turn for strings.
var exampleTexts = []string{
	"text", "a", "1", "10", "1.2.3", "user@example.com", "https://example.com/", "www.example.com", "192.0.2.1", "2001:db8::1", "192.0.2.0/24",
	"123e4567-e89b-42d3-a456-426614174000", "0190163d-8694-739b-aea5-966c26f8ad91", "+4912345678", "2006-01-02", "2006-01-02T15:04:05Z",
	"15:04", "#ff8800", "TEXT", "aGVsbG8=", "1h30m", "1s", "10ms", "ff", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "507f1f77bcf86cd799439011",
	"00000000-0000-3000-8000-000000000000", "00000000-0000-5000-8000-000000000000", "CVE-2024-12345", "DEUTDEFF", "a.b.c",
	strings.Repeat("0", 32), strings.Repeat("0", 64), strings.Repeat("0", 96), strings.Repeat("0", 128),
}

// exampleText also tries the parts that rules demand, and longer and shorter texts.
func (c *compiler) exampleText(s *jsonschema.Schema) (json.RawMessage, bool) {
	try := slices.Clone(exampleTexts)
	all := ""
	if h := c.hints[s]; h != nil {
		for _, p := range h.phrases {
			if i := strings.IndexByte(p, '"'); i >= 0 {
				part := jsonx.String([]byte(p[i:]))
				all += part
				try = append(try, part, part+"text", "text"+part, all)
			}
		}
	}
	for _, text := range slices.Clone(try) {
		if low := s.MinLength; low != nil && *low <= 1024 && uint64(len(text)) < *low {
			try = append(try, text+strings.Repeat("x", int(*low)-len(text)), strings.Repeat(text, int(*low)))
		}
		if high := s.MaxLength; high != nil && uint64(len(text)) > *high {
			try = append(try, text[:*high])
		}
	}
	for i, text := range try {
		try[i] = quoteJSON(text)
	}
	return c.firstOf(s, append(try, `""`)...)
}

func (c *compiler) exampleArray(s *jsonschema.Schema) (json.RawMessage, bool) {
	length := 1
	if s.MinItems != nil {
		length = int(max(1, min(*s.MinItems, 64)))
	}
	if s.MaxItems != nil {
		length = min(length, int(*s.MaxItems))
	}
	if s.Items == nil {
		return json.RawMessage("[]"), true
	}
	elem, ok := c.exampleOf(s.Items)
	if !ok {
		return json.RawMessage("[]"), s.MinItems == nil
	}
	out := []byte{'['}
	for i := range length {
		out = append(jsonx.AppendComma(out), c.another(s, elem, i)...)
	}
	return append(out, ']'), true
}

// another returns the element i of an example, which differs from the others if it has to and can.
func (c *compiler) another(s *jsonschema.Schema, elem json.RawMessage, i int) []byte {
	switch {
	case !s.UniqueItems || i == 0:
	case i < len(s.Items.Enum):
		return []byte(jsonText(s.Items.Enum[i]))
	case s.Items.Type == "string":
		return []byte(quoteJSON(jsonx.String(elem) + strconv.Itoa(i)))
	case s.Items.Type == "integer":
		x, _ := strconv.ParseInt(string(elem), 10, 64)
		return strconv.AppendInt(nil, x+int64(i), 10)
	}
	return elem
}

// exampleObject has the required members, and those with an example or a default.
func (c *compiler) exampleObject(s *jsonschema.Schema) (json.RawMessage, bool) {
	out := []byte{'{'}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			if p.Value.Default == nil && len(p.Value.Examples) == 0 && !slices.Contains(s.Required, p.Key) {
				continue
			}
			raw, ok := c.exampleOf(p.Value)
			if !ok {
				return nil, false
			}
			out = append(append(jsonx.AppendString(jsonx.AppendComma(out), p.Key), ':'), raw...)
		}
	}
	if elem := s.AdditionalProperties; elem != nil && elem != jsonschema.FalseSchema {
		length := 1
		if s.MinProperties != nil {
			length = int(max(1, min(*s.MinProperties, 64)))
		}
		raw, ok := c.exampleOf(elem)
		for i := 0; i < length && ok; i++ {
			var name string
			if name, ok = c.exampleName(s, i, raw); ok {
				out = append(append(jsonx.AppendString(jsonx.AppendComma(out), name), ':'), raw...)
			}
		}
	}
	return append(out, '}'), true
}

// exampleName returns the name of the member i of a map whose values are like raw.
func (c *compiler) exampleName(s *jsonschema.Schema, i int, raw json.RawMessage) (string, bool) {
	n := strconv.Itoa(i + 1)
	try := append([]string{"name" + n, n}, exampleTexts...)
	if i == 0 {
		try = append([]string{"name"}, try...)
	}
	if keys := s.PropertyNames; keys != nil && i < len(keys.Enum) {
		try = []string{enumText(keys.Enum[i])}
	}
	for _, name := range try {
		keys := c.nodes[s].keys
		if (keys == nil || keys.valid([]byte(quoteJSON(name)))) && c.decodes(s, "{"+quoteJSON(name)+":"+string(raw)+"}") {
			return name, true
		}
	}
	return "", false
}
