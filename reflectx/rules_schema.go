package reflectx

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// schemaWords are the keys of a jsonschema tag that are supported, with the types that they fit.
var schemaWords = map[string]string{
	"title": "*", "description": "*", "required": "*", "readOnly": "*", "writeOnly": "*", "default": "*", "example": "*",
	"enum": "sni", "minLength": "s", "maxLength": "s", "pattern": "s", "format": "s",
	"minimum": "ni", "maximum": "ni", "exclusiveMinimum": "ni", "exclusiveMaximum": "ni", "multipleOf": "ni",
	"minItems": "a", "maxItems": "a", "uniqueItems": "a",
}

func schemaWordList() []string { return slices.Sorted(maps.Keys(schemaWords)) }

// kindLetter returns the letter of the shape in schemaWords.
func kindLetter(s shape) string {
	switch s {
	case shapeString, shapeText:
		return "s"
	case shapeInt, shapeUint:
		return "i"
	case shapeFloat:
		return "n"
	case shapeSlice, shapeArray:
		return "a"
	}
	return "-"
}

// schemaTag compiles the keywords from a jsonschema tag into checks, so that the schema promises
// only what is enforced.
func (c *compiler) schemaTag(f *field) {
	n := f.spec
	letters := kindLetter(n.shape)
	if letters == "a" {
		letters += kindLetter(n.elem.shape) // keys that do not fit the array apply to its elements
	}
	numbers := true
	for _, word := range splitEscaped(f.sf.Tag.Get("jsonschema")) {
		key, value, _ := strings.Cut(word, "=")
		fits, known := schemaWords[key]
		switch {
		case !known:
			c.errorf("jsonschema: %q is not enforced here%s", key, hintOr(key, schemaWordList(), "write one of "+strings.Join(schemaWordList(), ", ")))
		case fits != "*" && !strings.ContainsAny(fits, letters):
			c.errorf("jsonschema: %q does not fit %s", key, typeText(f.Type))
		case key == "required":
			c.require(f)
		case key == "default":
			f.Default = textJSON(n.node, value)
			n.kw.Default = nil
		case key == "example":
			f.example = textJSON(n.node, value)
			n.kw.Examples = nil
		case key == "minLength" || key == "maxLength" || key == "minItems" || key == "maxItems":
			if _, err := strconv.ParseUint(value, 10, 32); err != nil {
				c.errorf("jsonschema: %s is %q; write a number of 0 or more", key, value)
			}
		case fits == "ni":
			if !jsonx.Valid([]byte(value)) || jsonx.Kind([]byte(value)) != '0' {
				c.errorf("jsonschema: %s is %q; write a number", key, value)
				numbers = false
			} else if !isModest(value) {
				c.errorf("jsonschema: %s is %q, which no number of this program is near; write a smaller exponent", key, value)
				numbers = false
			}
		}
	}
	if !numbers {
		return // comparing numbers with huge exponents would take too long
	}
	c.enforce(n)
	if n.elem != nil {
		c.enforce(n.elem)
	}
}

// isModest reports whether the JSON number is within the range of float64.
func isModest(number string) bool {
	x, err := strconv.ParseFloat(number, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	return err == nil && (x != 0 || !strings.ContainsAny(mantissa, "123456789"))
}

// splitEscaped splits at commas that are not preceded by a backslash.
func splitEscaped(s string) []string {
	var out []string
	begin := 0
	for i := range len(s) {
		if s[i] == ',' && (i == 0 || s[i-1] != '\\') {
			out, begin = append(out, s[begin:i]), i+1
		}
	}
	return append(out, s[begin:])
}

// enforce compiles the keywords that a jsonschema tag added to n.
func (c *compiler) enforce(n *spec) {
	kw := n.kw
	switch n.shape {
	case shapeString, shapeText:
		c.enforceText(n)
	case shapeInt, shapeUint, shapeFloat:
		for _, b := range []struct {
			tag   string
			bound json.Number
		}{{"min", kw.Minimum}, {"max", kw.Maximum}, {"gt", kw.ExclusiveMinimum}, {"lt", kw.ExclusiveMaximum}} {
			if b.bound != "" {
				c.enforceBound(n, b.tag, b.bound)
			}
		}
		if kw.MultipleOf != "" {
			c.multipleOf(n)
		}
	case shapeSlice, shapeArray:
		c.enforceLength(n, kw.MinItems, kw.MaxItems)
		if kw.UniqueItems {
			c.unique(n, rule{text: "unique", tag: "unique"})
		}
	}
	if len(kw.Enum) > 0 {
		n.checks = append(n.checks, oneOf(n.shape, kw.Enum))
	}
}

// enforceLength compiles the limits of a length.
func (c *compiler) enforceLength(n *spec, low, high *uint64) {
	for tag, limit := range map[string]*uint64{"min": low, "max": high} {
		if limit == nil {
			continue
		}
		by, limit := comparisons[tag], int(*limit)
		if n.elem == nil {
			n.texts = append(n.texts, func(s string) bool { return by.holds(cmp.Compare(utf8.RuneCountInString(s), limit)) })
			continue
		}
		n.checks = append(n.checks, against(limit, by.holds, reflect.Value.Len))
	}
}

// enforceBound compiles a limit that may have a fraction even if the type has none.
func (c *compiler) enforceBound(n *spec, tag string, bound json.Number) {
	limit, ok := new(big.Rat).SetString(string(bound))
	if !ok {
		return // schemaTag has recorded this
	}
	by := comparisons[tag]
	n.checks = append(n.checks, func(_ context.Context, v reflect.Value) bool { return by.holds(ratOf(v).Cmp(limit)) })
}

// ratOf returns v as a rational number. A float is its shortest decimal form, not its binary
// expansion: 0.3 is a multiple of 0.1.
func ratOf(v reflect.Value) *big.Rat {
	switch {
	case v.CanInt():
		return new(big.Rat).SetInt64(v.Int())
	case v.CanUint():
		return new(big.Rat).SetUint64(v.Uint())
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	return r
}

func (c *compiler) multipleOf(n *spec) {
	step, ok := new(big.Rat).SetString(string(n.kw.MultipleOf))
	if !ok || step.Sign() <= 0 {
		c.errorf("jsonschema: multipleOf is %q; write a number greater than 0", n.kw.MultipleOf)
		return
	}
	n.checks = append(n.checks, func(_ context.Context, v reflect.Value) bool {
		x := ratOf(v)
		return x.Quo(x, step).IsInt()
	})
}

// formatTags are the formats that a jsonschema tag may have, with the rules that check them.
var formatTags = map[string]string{
	"email": "email", "uri": "url", "uri-reference": "uri", "uuid": "uuid", "hostname": "hostname_rfc1123", "ipv4": "ipv4", "ipv6": "ipv6",
	"date": "datetime=2006-01-02", "date-time": "datetime=2006-01-02T15:04:05Z07:00",
}

func (c *compiler) enforceText(n *spec) {
	kw := n.kw
	c.enforceLength(n, kw.MinLength, kw.MaxLength)
	if kw.Pattern != "" {
		re, err := compiled(kw.Pattern)
		if err != nil {
			c.errorf("jsonschema: the pattern cannot be read: %v", err)
			return
		}
		n.texts = append(n.texts, re.MatchString)
		n.phrases = append(n.phrases, "that matches "+kw.Pattern)
	}
	if kw.Format == "" || n.shape == shapeText {
		return
	}
	tag := formatTags[kw.Format]
	if tag == "" {
		known := slices.Sorted(maps.Keys(formatTags))
		c.errorf("jsonschema: unknown format %q%s", kw.Format, hintOr(kw.Format, known, "write one of "+strings.Join(known, ", ")))
		return
	}
	c.compile(n, parseRule(tag))
}
