package reflectx

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/nearest"
)

// An ArgumentError lists everything that is wrong with the arguments of one call. It is meant for
// the model that wrote them: it is a tool error, not a fault of the server.
type ArgumentError struct {
	// Violations is never empty. It has the order of the arguments, followed by missing members.
	Violations []Violation
	// Example is an arguments object that would have been accepted, or nil if none is known.
	Example json.RawMessage

	more int    // number of violations that are left out
	what string // name of the values in messages; "" means arguments
}

// violationLimit is the most violations that one call reports.
const violationLimit = 100

// A Violation is one thing wrong with the arguments.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the value; "" is the arguments object itself.
	Pointer string
	// Got is the received value as JSON, shortened. It is "" for a missing member and "***" for a
	// secret.
	Got string
	// Want describes the allowed values: "an integer between 1 and 50". It is "" if the member is
	// unknown.
	Want string
	// Hint suggests a correction: `did you mean "limit"?`. It is usually "".
	Hint string
}

// String returns the violation as one line: "/limit: got 500, want an integer between 1 and 50".
func (v Violation) String() string { return v.text("arguments") }

// text is like String, with whole as the name of all the values.
func (v Violation) text(whole string) string {
	var b strings.Builder
	if v.Pointer == "" {
		b.WriteString(whole)
	} else {
		b.WriteString(v.Pointer)
	}
	switch {
	case v.Want == "":
		b.WriteString(": unknown")
	case v.Got == "":
		b.WriteString(": missing, want " + v.Want)
	default:
		b.WriteString(": got " + v.Got + ", want " + v.Want)
	}
	if v.Hint != "" {
		b.WriteString("; " + v.Hint)
	}
	return b.String()
}

// Error returns a first line, one line per violation, and the example if there is one.
func (e *ArgumentError) Error() string {
	var b strings.Builder
	what := cmp.Or(e.what, "arguments")
	if n := len(e.Violations) + e.more; n == 1 {
		b.WriteString("1 problem with the " + what + ":")
	} else {
		b.WriteString(strconv.Itoa(n) + " problems with the " + what + ":")
	}
	for _, v := range e.Violations {
		b.WriteByte('\n')
		b.WriteString(v.text(what))
	}
	if e.more > 0 {
		b.WriteString("\nand " + strconv.Itoa(e.more) + " more")
	}
	if e.Example != nil {
		b.WriteString("\nExample: ")
		b.Write(e.Example)
	}
	return b.String()
}

// Add adds a violation: the part of value that path leads to is not what is wanted. path holds the
// names of members and the indexes of elements.
func (e *ArgumentError) Add(value json.RawMessage, path []string, want string) {
	var pointer []byte
	for _, token := range path {
		pointer = appendPointer(append(pointer, '/'), token)
		value = child(value, token)
	}
	e.add(Violation{Pointer: string(pointer), Got: shorten(value), Want: want})
}

func (e *ArgumentError) add(v Violation) {
	if len(e.Violations) >= violationLimit {
		e.more++
		return
	}
	e.Violations = append(e.Violations, v)
}

// appendPointer escapes one part of a JSON pointer (RFC 6901 section 3).
func appendPointer(dst []byte, name string) []byte {
	return append(dst, strings.NewReplacer("~", "~0", "/", "~1").Replace(name)...)
}

// child returns the member or element of value that a token of a JSON pointer names.
func child(value json.RawMessage, token string) json.RawMessage {
	if jsonx.Kind(value) != '[' {
		return jsonx.Member(value, token)
	}
	i := 0
	for element := range jsonx.Elements(value) {
		if strconv.Itoa(i) == token {
			return element
		}
		i++
	}
	return nil
}

// gotLimit is how many bytes of a wrong value are shown: enough to recognize the value without
// filling the model's context.
const gotLimit = 80

// shorten returns raw as a violation shows it.
func shorten(raw []byte) string {
	if len(raw) > 4096 {
		raw = raw[:4096]
	}
	s := strings.Join(strings.Fields(string(raw)), " ")
	if len(s) <= gotLimit {
		return s
	}
	cut := gotLimit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// unknownHint suggests the name that was meant, or else lists all known names.
func unknownHint(name string, known []string) string {
	if k := nearest.Of(name, known); k != "" {
		return "did you mean " + quoteJSON(k) + "?"
	}
	if len(known) == 0 {
		return "there are none"
	}
	const limit = 12 // a longer list costs the model more than it helps
	quoted := make([]string, 0, limit+1)
	for i, k := range known {
		if i == limit {
			quoted = append(quoted, "…")
			break
		}
		quoted = append(quoted, quoteJSON(k))
	}
	return "known: " + strings.Join(quoted, ", ")
}

func quoteJSON(s string) string {
	return string(jsonx.AppendString(nil, s))
}

// nouns are what values are called, where the type of the schema says too little.
var nouns = map[shape]string{
	shapeTime: `a date-time such as "2006-01-02T15:04:05Z"`, shapeDuration: `a duration such as "1h30m"`,
	shapeURL: `an absolute URL such as "https://example.com/"`,
}

// typeNouns are what values are called by the type of their schema.
var typeNouns = map[string]string{
	"boolean": "true or false", "integer": "an integer", "number": "a number", "string": "a string", "array": "an array",
	"object": "an object", "null": "null",
}

// wantOf returns the allowed values of s, for error messages: "an integer between 1 and 50".
func wantOf(s *jsonschema.Schema, h *hint, isKey bool) string {
	var want string
	switch {
	case len(s.Enum) > 0 && s.Const == nil:
		return enumWant(s.Enum)
	case isKey && h.t != nil && h.t.Kind() != reflect.String:
		want = "an integer as name"
	case isKey:
		want = "a name"
	case s.Const != nil:
		return jsonText(s.Const)
	case s.ContentEncoding == "base64":
		want = "a base64 string"
	case len(s.AnyOf)+len(s.OneOf) > 0 && h.noun == "":
		words := make([]string, 0, len(s.AnyOf)+len(s.OneOf))
		for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
			words = append(words, wantOf(one, &hint{}, false))
		}
		want = joinWords(words, "or")
	default:
		want = cmp.Or(h.noun, typeNouns[s.Type], "a value")
	}
	parts := append(bounds(s), h.phrases...)
	if len(h.phrases) == 0 && h.noun == "" && !isKey { // the keywords come from elsewhere than a rule
		if s.Pattern != "" && s.ContentEncoding == "" {
			parts = append(parts, "that matches "+s.Pattern)
		}
		if s.Format != "" {
			parts = append(parts, formatPhrase(s.Format))
		}
	}
	if len(parts) > 0 {
		want += " " + strings.Join(parts, ", ")
	}
	return want
}

func formatPhrase(format string) string {
	for _, tag := range []string{"email", "url", "uri", "uuid", "hostname", "ipv4", "ipv6"} {
		if textRules[tag].format == format {
			return textRules[tag].phrase
		}
	}
	return "of the format " + format
}

func enumText(e any) string {
	text := jsonText(e)
	if jsonx.Kind([]byte(text)) == '"' {
		return jsonx.String([]byte(text))
	}
	return text
}

func enumWant(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = jsonText(v)
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + joinWords(words, "or")
}

// jsonText returns a value of a schema as JSON.
func jsonText(v any) string {
	raw, _ := jsonx.Marshal(v)
	return string(raw)
}

// bounds describes the limits of a schema: "between 1 and 50", "of at least 2 characters".
func bounds(s *jsonschema.Schema) []string {
	var out []string
	if s.Minimum != "" && s.Maximum != "" && s.ExclusiveMinimum == "" && s.ExclusiveMaximum == "" {
		out = append(out, "between "+string(s.Minimum)+" and "+string(s.Maximum))
	} else {
		for _, bound := range []struct {
			text  string
			value json.Number
		}{{"of at least ", s.Minimum}, {"greater than ", s.ExclusiveMinimum}, {"of at most ", s.Maximum}, {"less than ", s.ExclusiveMaximum}} {
			if bound.value != "" {
				out = append(out, bound.text+string(bound.value))
			}
		}
	}
	if s.MultipleOf != "" {
		out = append(out, "that is a multiple of "+string(s.MultipleOf))
	}
	if s.ContentEncoding == "" {
		out = append(out, count(s.MinLength, s.MaxLength, "character")...)
	} else if s.MaxLength != nil && *s.MaxLength == *encodedLen(maxBytes) {
		out = append(out, "of at most 1 MiB")
	} else if s.MaxLength != nil {
		out = append(out, "of at most "+strconv.FormatUint(*s.MaxLength/4*3, 10)+" bytes")
	}
	out = append(out, count(s.MinItems, s.MaxItems, "element")...)
	out = append(out, count(s.MinProperties, s.MaxProperties, "member")...)
	if s.UniqueItems {
		out = append(out, "without equal elements")
	}
	return out
}

func count(low, high *uint64, what string) []string {
	plural := func(n uint64) string {
		if n == 1 {
			return "1 " + what
		}
		return strconv.FormatUint(n, 10) + " " + what + "s"
	}
	switch {
	case low == nil && high == nil:
		return nil
	case high == nil:
		return []string{"of at least " + plural(*low)}
	case low == nil || *low == 0 && *high > 0:
		return []string{"of at most " + plural(*high)}
	case *low == *high:
		return []string{"of exactly " + plural(*low)}
	}
	return []string{fmt.Sprintf("of %d to %s", *low, plural(*high))}
}

// joinWords returns "a, b or c".
func joinWords(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// describeEnum describes the constants of a named type in the description of an input. They do not
// restrict the values, since constants are often units or well-known examples; with the rules oneof
// and enum, it describes the allowed values, which the schema lists.
func (c *compiler) describeEnum(n position) {
	if c.dir == forOutput || c.o.Descriptions == nil || n.s.Const != nil || n.t.PkgPath() == "" || n.t.Name() == "" {
		return
	}
	sh := shapeOf(n.t, c.dir)
	if !slices.Contains([]shape{shapeString, shapeInt, shapeUint, shapeFloat, shapeBool}, sh) && len(n.s.Enum) == 0 {
		return
	}
	var lines, seen []string
	for _, e := range c.o.Descriptions.Enum(n.t) {
		listed := slices.ContainsFunc(n.s.Enum, func(v any) bool { return jsonText(v) == e.JSON })
		text := strings.Join(strings.Fields(e.Text), " ")
		switch {
		case slices.Contains(seen, e.JSON), !fitsType(n.s.Type, e.JSON), len(n.s.Enum) > 0 && !listed:
			continue
		case strings.EqualFold(strings.Trim(text, ".!"), strings.Trim(e.JSON, `"`)): // says nothing more
			text = ""
		}
		seen = append(seen, e.JSON)
		if text != "" {
			lines = append(lines, e.JSON+": "+text)
		} else if len(n.s.Enum) == 0 {
			lines = append(lines, e.JSON)
		}
	}
	n.s.Description = strings.TrimSpace(n.s.Description + "\n" + strings.Join(lines, "\n"))
}

// fitsType reports whether the JSON of a constant has the type of its schema.
func fitsType(typ, raw string) bool {
	if !jsonx.Valid([]byte(raw)) {
		return false
	}
	switch jsonx.Kind([]byte(raw)) {
	case '"':
		return typ == "string"
	case 't', 'f':
		return typ == "boolean"
	case '0':
		return typ == "integer" || typ == "number"
	}
	return false
}

// enumRule folds the rule enum: the value is one of those that the method Values of its type
// returns, or one of the constants of its type.
func (c *compiler) enumRule(n position) {
	switch {
	case n.t.Name() == "" || n.t.PkgPath() == "":
		c.errorf("rule \"enum\" does not fit a %s; it is for a named type with constants", typeText(n.t))
		return
	case len(n.s.Enum) > 0:
		c.errorf("the rules \"oneof\" and \"enum\" both list values; drop one of them")
		return
	}
	var values []string // as JSON
	if m, ok := reflect.PointerTo(n.t).MethodByName("Values"); ok && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 && m.Type.Out(0) == reflect.SliceOf(n.t) {
		list := reflect.New(n.t).MethodByName("Values").Call(nil)[0]
		for i := range list.Len() {
			values = append(values, jsonText(list.Index(i).Interface()))
		}
	} else if c.o.Descriptions != nil {
		for _, e := range c.o.Descriptions.Enum(n.t) {
			values = append(values, e.JSON)
		}
	}
	for i, raw := range values {
		switch {
		case n.isKey:
			n.s.Enum = append(n.s.Enum, enumText(json.RawMessage(raw)))
		case !fitsType(n.s.Type, raw) || slices.Contains(values[:i], raw):
		case n.s.Type == "string":
			n.s.Enum = append(n.s.Enum, jsonx.String([]byte(raw)))
		default:
			n.s.Enum = append(n.s.Enum, json.RawMessage(raw))
		}
	}
	if len(n.s.Enum) == 0 {
		c.errorf("rule \"enum\": the constants of %s are not known, since the program runs without its source; run \"mcpkit gen\" in its package, "+
			"give the type a method Values() []%s, or list the values with oneof", n.t, n.t.Name())
	}
}
