package reflectx

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
)

// An ArgumentError lists everything that is wrong with the arguments of one call. It is meant for
// the model that wrote them: it is a tool error, not a fault of the server.
type ArgumentError struct {
	// Violations is never empty. It has the order of the arguments, followed by missing members.
	Violations []Violation

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
	text := cmp.Or(v.Pointer, whole)
	switch {
	case v.Want == "":
		text += ": unknown"
	case v.Got == "":
		text += ": missing, want " + v.Want
	default:
		text += ": got " + v.Got + ", want " + v.Want
	}
	if v.Hint != "" {
		text += "; " + v.Hint
	}
	return text
}

// Error returns a first line, and one line per violation.
func (e *ArgumentError) Error() string {
	what := cmp.Or(e.what, "arguments")
	lines := []string{countOf(uint64(len(e.Violations)+e.more), "problem") + " with the " + what + ":"}
	for _, v := range e.Violations {
		lines = append(lines, v.text(what))
	}
	if e.more > 0 {
		lines = append(lines, "and "+strconv.Itoa(e.more)+" more")
	}
	return strings.Join(lines, "\n")
}

// Add adds a violation: the part of value that path leads to is not what is wanted. path holds the
// names of members and the indexes of elements.
func (e *ArgumentError) Add(value json.RawMessage, path []string, want string) {
	part := []byte(value)
	for _, token := range path {
		part = child(part, token)
	}
	e.add(Violation{Pointer: pointerTo(path), Got: shorten(part), Want: want})
}

func (e *ArgumentError) add(v Violation) {
	if len(e.Violations) >= violationLimit {
		e.more++
		return
	}
	e.Violations = append(e.Violations, v)
}

// pointerTo returns the JSON pointer (RFC 6901) of a path.
func pointerTo(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteString("/" + pointerEscapes.Replace(token))
	}
	return b.String()
}

var (
	pointerEscapes  = strings.NewReplacer("~", "~0", "/", "~1")
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
)

// child returns the member or element of value that a token of a JSON pointer names.
func child(value []byte, token string) []byte {
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
	s := strings.Join(strings.Fields(string(raw[:min(len(raw), 4096)])), " ")
	if len(s) <= gotLimit {
		return s
	}
	return strings.ToValidUTF8(s[:gotLimit], "") + "…"
}

// unknownHint suggests the member that was meant, or else lists the known ones.
func (n *node) unknownHint(name string) string {
	const limit = 12 // a longer list costs the model more than it helps
	var known, quoted []string
	for i, p := range n.props {
		known = append(known, p.name)
		if i < limit {
			quoted = append(quoted, quoteJSON(p.name))
		}
	}
	if len(known) > limit {
		quoted = append(quoted, "…")
	}
	if k := naming.Nearest(name, known); k != "" {
		return "did you mean " + quoteJSON(k) + "?"
	}
	return "known: " + cmp.Or(strings.Join(quoted, ", "), "none")
}

func quoteJSON(s string) string { return string(jsonx.AppendString(nil, s)) }

// A format is a value of the keyword format that is enforced; others are for the reader.
type format struct {
	noun  string
	valid func(string) bool
}

var formats = map[string]format{
	"email":         {"an email address", satisfies("email")},
	"uuid":          {"a UUID", satisfies("uuid_rfc4122")},
	"hostname":      {"a host name", satisfies("hostname_rfc1123")},
	"ipv4":          {"an IPv4 address", isAddr(netip.Addr.Is4)},
	"ipv6":          {"an IPv6 address", isAddr(func(a netip.Addr) bool { return a.Is6() && a.Zone() == "" })},
	"uri":           {`an absolute URL such as "https://example.com/"`, isURL((*url.URL).IsAbs)},
	"uri-reference": {"a URL", isURL(func(*url.URL) bool { return true })},
	"date":          {`a date such as "2006-01-02"`, isTime(time.DateOnly)},
	"date-time":     {`a date-time such as "2006-01-02T15:04:05Z"`, isTime(time.RFC3339)},
}

// satisfies returns whether a string satisfies a rule of the validator.
func satisfies(rule string) func(string) bool {
	return func(s string) bool { return defaultValidate().Var(s, rule) == nil }
}

func isAddr(right func(netip.Addr) bool) func(string) bool {
	return func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && right(a) }
}

func isURL(right func(*url.URL) bool) func(string) bool {
	return func(s string) bool { u, err := url.Parse(s); return err == nil && right(u) }
}

func isTime(layout string) func(string) bool {
	return func(s string) bool { _, err := time.Parse(layout, s); return err == nil }
}

// typeNouns are what values are called by the type of their schema.
var typeNouns = map[string]string{
	"boolean": "true or false", "integer": "an integer", "number": "a number", "string": "a string", "array": "an array",
	"object": "an object", "null": "null",
}

// wantOf returns the values that s allows, for error messages: "an integer between 1 and 50". noun
// is what they are called; "" means by their schema.
func wantOf(s *jsonschema.Schema, noun string) string {
	if options := slices.Concat(s.AnyOf, s.OneOf); len(options) > 0 {
		noun = cmp.Or(noun, alternatives(options, func(s *jsonschema.Schema) string { return wantOf(s, "") }))
	}
	pattern := s.Pattern
	switch {
	case s.Const != nil:
		return jsonText(s.Const)
	case len(s.Enum) > 0:
		return oneOf(s.Enum)
	case s.ContentEncoding == "base64":
		noun, pattern = "a base64 string", ""
	case pattern == durationPattern:
		noun, pattern = `a duration such as "1h30m"`, ""
	}
	parts := []string{}
	add := func(words string, value string) {
		if value != "" {
			parts = append(parts, words+value)
		}
	}
	if low, high := string(s.Minimum), string(s.Maximum); low != "" && high != "" {
		add("between ", low+" and "+high)
	} else {
		add("of at least ", low)
		add("of at most ", high)
	}
	add("greater than ", string(s.ExclusiveMinimum))
	add("less than ", string(s.ExclusiveMaximum))
	add("that is a multiple of ", string(s.MultipleOf))
	if s.ContentEncoding == "" {
		add("of ", countBetween(s.MinLength, s.MaxLength, "character"))
	} else if isAtMost1MiB(s) {
		add("of at most ", "1 MiB")
	} else if s.MaxLength != nil {
		add("of at most ", countOf(*s.MaxLength/4*3, "byte"))
	}
	add("of ", countBetween(s.MinItems, s.MaxItems, "element"))
	add("of ", countBetween(s.MinProperties, s.MaxProperties, "member"))
	if s.UniqueItems {
		add("without ", "equal elements")
	}
	add("that matches ", pattern)
	nots := []*jsonschema.Schema{s.Not}
	for _, all := range s.AllOf {
		add("that matches ", all.Pattern)
		nots = append(nots, all.Not)
	}
	for _, not := range nots {
		switch {
		case not == nil:
		case not.Const != nil:
			add("other than ", jsonText(not.Const))
		case len(not.Enum) > 0:
			add("other than ", oneOf(not.Enum))
		default:
			add("that does not match ", cmp.Or(not.Pattern, not.Type))
		}
	}
	noun = cmp.Or(noun, formats[s.Format].noun, typeNouns[s.Type], "a value")
	return strings.TrimSpace(noun + " " + strings.Join(parts, ", "))
}

// countOf returns "1 character" or "2 characters".
func countOf(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatUint(n, 10) + " " + what + "s"
}

// countBetween returns "2 to 5 characters", "at least 2 characters" and so on, and "" without limits.
func countBetween(low, high *uint64, what string) string {
	switch {
	case low == nil && high == nil:
		return ""
	case high == nil:
		return "at least " + countOf(*low, what)
	case low == nil || *low == 0 && *high > 0:
		return "at most " + countOf(*high, what)
	case *low == *high:
		return "exactly " + countOf(*low, what)
	}
	return fmt.Sprintf("%d to %s", *low, countOf(*high, what))
}

// oneOf returns `one of "a", "b" or "c"`.
func oneOf(values []any) string {
	if len(values) == 1 {
		return jsonText(values[0])
	}
	return "one of " + alternatives(values, jsonText)
}

// jsonText returns a value of a schema as JSON.
func jsonText(v any) string {
	raw, _ := jsonx.Marshal(v)
	return string(raw)
}

// plainText returns a value of a schema as text.
func plainText(v any) string {
	text := jsonText(v)
	if jsonx.Kind([]byte(text)) == '"' {
		return jsonx.String([]byte(text))
	}
	return text
}

// alternatives returns "a, b or c".
func alternatives[T any](values []T, text func(T) string) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = text(v)
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
