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

// An ArgumentError says everything that is wrong with the arguments of one call. It is meant for
// the model that wrote them: it is a tool error, not a fault of the server.
type ArgumentError struct {
	// Violations are never empty. They stand in the order of the arguments, missing members after
	// the rest.
	Violations []Violation
	// Example is one arguments object that would have been accepted, nil where none is known.
	Example json.RawMessage

	more int    // violations beyond those that are kept
	what string // are wrong; "" means arguments
}

// A Violation is one thing wrong with the arguments.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the value; "" is the arguments object itself.
	Pointer string
	// Got is what came, as JSON, shortened. It is "" where something is missing and "***" for a
	// secret.
	Got string
	// Want is what is wanted instead, "an integer between 1 and 50". It is "" where the member is
	// unknown.
	Want string
	// Hint helps to mend it: `did you mean "limit"?`. Mostly "".
	Hint string
}

// String returns the violation as one line: "/limit: got 500, want an integer between 1 and 50".
func (v Violation) String() string { return v.text("arguments") }

// text is String with what the whole is called.
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

// Error returns a head line, one line a violation, and the example where there is one.
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

// gotLimit is how many bytes of a wrong value are shown: enough to recognize it, too few to fill a
// context.
const gotLimit = 80

// shorten returns raw as it is shown in a violation.
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

// unknownHint names the member that was meant, or else all that are known.
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
