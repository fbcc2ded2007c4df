package reflectx

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

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
	if len(e.Violations) >= violationLimit {
		e.more++
		return
	}
	var pointer []byte
	for _, token := range path {
		pointer = appendPointer(append(pointer, '/'), token)
		value = child(value, token)
	}
	e.Violations = append(e.Violations, Violation{Pointer: string(pointer), Got: shorten(value), Want: want})
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
