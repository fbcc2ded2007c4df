package reflectx

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// finish completes the descriptions of n and of everything below, once for each object.
func (c *compiler) finish(n *spec) { c.finishSpec(n, map[*object]bool{}) }

func (c *compiler) finishSpec(n *spec, done map[*object]bool) {
	if n.key != nil {
		c.enums(n.key)
		n.key.want = wantOf(n.key)
		n.key.addNotes()
	}
	if n.elem != nil {
		c.finishSpec(n.elem, done)
		n.elem.addNotes()
	}
	if n.union != nil {
		for _, one := range n.union.specs {
			c.finishSpec(one, done)
		}
	}
	if n.obj != nil && n.obj.known == nil && !done[n.obj] {
		done[n.obj] = true
		for _, f := range n.obj.fields {
			c.finishSpec(f.spec, done)
			c.describe(f)
		}
	}
	c.enums(n)
	n.want = wantOf(n)
	c.wide(n)
}

// wide adds the limits of a 64-bit integer, which are not in its schema.
func (c *compiler) wide(n *spec) {
	if n.shape != shapeInt && n.shape != shapeUint || n.t.Bits() < 64 || n.kw.Const != nil || len(n.kw.Enum) > 0 {
		return
	}
	limited := *n
	limited.kw = c.clone(n.kw)
	kw := limited.kw
	low, high := json.Number(""), json.Number(strconv.FormatUint(math.MaxUint64, 10))
	if n.shape == shapeInt {
		low, high = json.Number(strconv.FormatInt(math.MinInt64, 10)), json.Number(strconv.FormatInt(math.MaxInt64, 10))
	}
	if kw.ExclusiveMinimum == "" {
		kw.Minimum = cmp.Or(kw.Minimum, low)
	}
	if kw.ExclusiveMaximum == "" {
		kw.Maximum = cmp.Or(kw.Maximum, high)
	}
	n.wantWide = wantOf(&limited)
}

// describe completes the description of f.
func (c *compiler) describe(f *field) {
	kw := f.spec.kw
	if hasDeprecation(kw.Description) {
		kw.Deprecated = true
	}
	if c.o.NoSchema {
		f.spec.notes = limitsOf(f)
		if d := kw.Description; len(f.spec.notes) > 0 && d != "" && !strings.ContainsAny(d[len(d)-1:], ".!?") {
			kw.Description += "."
		}
	}
	f.spec.addNotes()
	f.Description, f.Title = kw.Description, kw.Title
	for _, e := range kw.Enum {
		f.Enum = append(f.Enum, enumText(e))
	}
}

// addNotes moves the notes to the description.
func (n *spec) addNotes() {
	for _, note := range n.notes {
		n.kw.Description = strings.TrimSpace(n.kw.Description + " " + note)
	}
	n.notes = nil
}

// limitsOf returns sentences about the allowed values of f and its default, for callers that do not
// see the schema. It returns none if any text is allowed.
func limitsOf(f *field) []string {
	var limits []string
	if f.node.want != "a string" {
		limits = append(limits, "Must be "+f.node.want+".")
	}
	if f.Default != nil {
		limits = append(limits, "Default: "+string(f.Default)+".")
	}
	return limits
}

func enumText(e any) string {
	if s, ok := e.(string); ok {
		return s
	}
	return fmt.Sprint(e)
}

// hasDeprecation reports whether a paragraph of text begins with Go's deprecation marker.
func hasDeprecation(text string) bool {
	for p := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(strings.TrimSpace(p), "Deprecated: ") {
			return true
		}
	}
	return false
}

// enums describes the constants of a named type. They do not restrict the values, since constants
// are often units or well-known examples. With the rules oneof and enum, it describes the allowed
// values.
func (c *compiler) enums(n *spec) {
	if c.o.Descriptions == nil || n.kw.Const != nil || n.t.PkgPath() == "" || n.t.Name() == "" {
		return
	}
	switch n.shape {
	case shapeString, shapeInt, shapeUint, shapeFloat, shapeBool, shapeText:
	default:
		return
	}
	if n.shape == shapeText && len(n.kw.Enum) == 0 {
		return // its text may be anything
	}
	var lines []string
	var seen []any
	texts := false
	for _, e := range c.o.Descriptions.Enum(n.t) {
		v, ok := enumValue(n.shape, e.JSON)
		if !ok || slices.Contains(seen, v) || len(n.kw.Enum) > 0 && !slices.Contains(n.kw.Enum, v) {
			continue
		}
		seen = append(seen, v)
		line := e.JSON
		if e.Text != "" {
			texts = true
			line += ": " + oneLine(e.Text)
		}
		lines = append(lines, line)
	}
	// Values that a oneof lists already need no second list without texts.
	if len(lines) > 0 && (texts || len(n.kw.Enum) == 0) {
		n.kw.Description = strings.TrimSpace(n.kw.Description + "\n" + strings.Join(lines, "\n"))
	}
}

// enumValue returns the constant as a schema value, or false if it does not have the shape.
func enumValue(s shape, text string) (any, bool) {
	raw := []byte(text)
	if !jsonx.Valid(raw) {
		return nil, false
	}
	switch k := jsonx.Kind(raw); {
	case (s == shapeString || s == shapeText) && k == '"':
		return jsonx.String(raw), true
	case s == shapeBool && (k == 't' || k == 'f'):
		return k == 't', true
	case (s == shapeInt || s == shapeUint || s == shapeFloat) && k == '0':
		return json.Number(text), true
	}
	return nil, false
}

// oneLine joins the lines of a comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// wantOf returns the allowed values of n, for violations: "an integer between 1 and 50".
func wantOf(n *spec) string {
	kw := n.kw
	var want string
	switch {
	case n.isKey:
		want = "a name"
		if n.shape == shapeInt || n.shape == shapeUint {
			want = "an integer as name"
		}
	case kw.Const != nil:
		return jsonText(kw.Const)
	case len(kw.Enum) > 0:
		return enumWant(kw.Enum)
	default:
		want = noun(n)
	}
	parts := bounds(n)
	parts = append(parts, n.phrases...)
	if len(parts) > 0 {
		want += " " + strings.Join(parts, ", ")
	}
	return want
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
	return string(appendValue(nil, v))
}

func noun(n *spec) string {
	switch n.shape {
	case shapeBool:
		return "true or false"
	case shapeInt, shapeUint, shapeBig:
		return "an integer"
	case shapeFloat, shapeNumber:
		return "a number"
	case shapeString:
		return "a string"
	case shapeBytes:
		return "a base64 string"
	case shapeTime:
		return `a date-time such as "2006-01-02T15:04:05Z"`
	case shapeDuration:
		return `a duration such as "1h30m"`
	case shapeURL:
		return `an absolute URL such as "https://example.com/"`
	case shapeText:
		return "the text of a " + n.t.Name()
	case shapeCustom:
		return "a " + n.t.Name()
	case shapeSlice, shapeArray:
		return "an array"
	case shapeMap, shapeStruct:
		return "an object"
	case shapeUnion:
		words := make([]string, len(n.union.Cases))
		for i, one := range n.union.Cases {
			words[i] = quoteJSON(one.Name)
		}
		return "an object whose " + quoteJSON(n.union.Discriminator) + " is " + joinWords(words, "or")
	}
	return "a value"
}

// bounds describes the numeric keywords of a node: "between 1 and 50", "of at least 2 characters".
func bounds(n *spec) []string {
	kw := n.kw
	var out []string
	switch n.shape {
	case shapeInt, shapeUint, shapeFloat, shapeNumber, shapeBig:
		switch {
		case kw.Minimum != "" && kw.Maximum != "" && kw.ExclusiveMinimum == "" && kw.ExclusiveMaximum == "":
			out = append(out, "between "+string(kw.Minimum)+" and "+string(kw.Maximum))
		default:
			for _, bound := range []struct {
				text  string
				value json.Number
			}{{"of at least ", kw.Minimum}, {"greater than ", kw.ExclusiveMinimum}, {"of at most ", kw.Maximum}, {"less than ", kw.ExclusiveMaximum}} {
				if bound.value != "" {
					out = append(out, bound.text+string(bound.value))
				}
			}
		}
		if kw.MultipleOf != "" {
			out = append(out, "that is a multiple of "+string(kw.MultipleOf))
		}
		return out
	case shapeSlice, shapeArray:
		out = count(kw.MinItems, kw.MaxItems, "element")
	case shapeMap:
		out = count(kw.MinProperties, kw.MaxProperties, "member")
	default:
		out = count(kw.MinLength, kw.MaxLength, "character")
	}
	if kw.UniqueItems {
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
