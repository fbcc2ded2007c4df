package reflectx

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/invopop/jsonschema"
)

// The rules that are compiled. Each adds a check to the node, keywords to the schema, and text to the
// description.

// compare compiles comparison rules.
func (c *compiler) compare(n *spec, r rule) bool {
	by := comparisons[r.tag]
	switch {
	case n.shape == shapeBool:
		c.equalBool(n, r)
		return true
	case n.shape == shapeString && by.equal:
		c.equalText(n, r)
		return true
	}
	ok, p, err := measure(n.shape, by.holds, r.param)
	if ok == nil {
		return false
	}
	c.badParam(n, r, err)
	n.checks = append(n.checks, ok)
	number := n.shape == shapeInt || n.shape == shapeUint || n.shape == shapeFloat
	switch {
	case !number:
		c.lengthKeyword(n, by, p)
		return true
	case n.isKey:
		n.phrases = append(n.phrases, by.text+string(p))
		n.notes = append(n.notes, "Must be an integer "+by.text+string(p)+".")
		return true
	case r.tag == "ne":
		n.phrases = append(n.phrases, by.text+string(p))
	}
	by.number(n.kw, p)
	return true
}

// measure returns the check that compares a value of the shape, or its length, with the parameter
// of a rule, and the parameter as JSON. It returns nil for shapes that are not compared.
func measure(s shape, holds func(sign int) bool, param string) (ok check, p json.Number, err error) {
	switch s {
	case shapeUint:
		x, err := strconv.ParseUint(param, 0, 64)
		return against(x, holds, reflect.Value.Uint), json.Number(strconv.FormatUint(x, 10)), err
	case shapeFloat:
		x, err := strconv.ParseFloat(param, 64)
		p, ok := floatNumber(x)
		if err == nil && !ok {
			err = strconv.ErrRange
		}
		return against(x, holds, reflect.Value.Float), p, err
	case shapeInt, shapeString, shapeSlice, shapeArray, shapeMap:
		x, err := strconv.ParseInt(param, 0, 64)
		p = json.Number(strconv.FormatInt(x, 10))
		switch s {
		case shapeInt:
			return against(x, holds, reflect.Value.Int), p, err
		case shapeString:
			return against(int(x), holds, characters), p, err
		}
		return against(int(x), holds, reflect.Value.Len), p, err
	}
	return nil, "", nil
}

// against returns a check that compares the result of get with x.
func against[T cmp.Ordered](x T, holds func(sign int) bool, get func(reflect.Value) T) check {
	return func(_ context.Context, v reflect.Value) bool { return holds(cmp.Compare(get(v), x)) }
}

func characters(v reflect.Value) int { return utf8.RuneCountInString(v.String()) }

// lengthKeyword adds the keywords of a rule for a length.
func (c *compiler) lengthKeyword(n *spec, by comparison, param json.Number) {
	kw := n.kw
	p, _ := param.Int64()
	low, high := by.length(p)
	if high < 0 {
		c.errorf("nothing has a length of %d; write 0 or more", high)
		return
	}
	if by.not {
		kw = &jsonschema.Schema{}
		refuse(n.kw, kw)
		n.phrases = append(n.phrases, fmt.Sprintf("of a length %s%d", by.text, p))
	}
	least, most := &kw.MinLength, &kw.MaxLength
	switch n.shape {
	case shapeSlice, shapeArray:
		least, most = &kw.MinItems, &kw.MaxItems
	case shapeMap:
		least, most = &kw.MinProperties, &kw.MaxProperties
	}
	if u := uint64(max(low, 0)); low != anyLength && (*least == nil || **least < u) {
		*least = &u
	}
	if u := uint64(high); high != anyLength && (*most == nil || **most > u) {
		*most = &u
	}
}

// badParam records an invalid parameter of a comparison rule, if there is an error.
func (c *compiler) badParam(n *spec, r rule, err error) {
	if err == nil {
		return
	}
	write, example := "a number of 0 or more", "1"
	switch n.shape {
	case shapeInt:
		write = "an integer"
	case shapeUint:
		write = "an integer of 0 or more"
	case shapeFloat:
		write, example = "a number", "0.5"
	case shapeBool:
		write, example = "true or false", "true"
	case shapeDuration:
		write, example = "a duration", "1h30m"
	case shapeTime, shapeAny, shapeStruct, shapeText, shapeURL, shapeBytes, shapeBig, shapeNumber, shapeRaw, shapeCustom:
		c.errorf("rule %q: the parameter %q does not fit %s", r.tag, r.param, typeText(n.t))
		return
	}
	if _, number := err.(*strconv.NumError); number && errors.Is(err, strconv.ErrRange) {
		write += " that fits"
	}
	c.errorf("rule %q: the parameter %q does not fit %s; write %s, such as %s=%s", r.tag, r.param, typeText(n.t), write, r.tag, example)
}

// stricter returns the larger of a and b if sign is 1, the smaller if it is -1. It ignores an empty
// a.
func stricter(a, b json.Number, sign int) json.Number {
	if a == "" {
		return b
	}
	if x, y, ok := integers(a, b); ok {
		if cmp.Compare(y, x) == sign {
			return b
		}
		return a
	}
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	if !okX || okY && y.Cmp(x) == sign {
		return b
	}
	return a
}

// integers returns two numbers if both are written as integers of 64 bits, as most limits are.
func integers(a, b json.Number) (x, y int64, ok bool) {
	x, err := strconv.ParseInt(string(a), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	y, err = strconv.ParseInt(string(b), 10, 64)
	return x, y, err == nil
}

// refuse adds not to kw.
func refuse(kw, not *jsonschema.Schema) {
	if kw.Not == nil {
		kw.Not = not
		return
	}
	kw.AllOf = append(kw.AllOf, &jsonschema.Schema{Not: not})
}

// match adds a pattern to kw.
func match(kw *jsonschema.Schema, pattern string) {
	if kw.Pattern == "" || kw.Pattern == pattern {
		kw.Pattern = pattern
		return
	}
	kw.AllOf = append(kw.AllOf, &jsonschema.Schema{Pattern: pattern})
}

// equalBool compiles eq and ne for bools.
func (c *compiler) equalBool(n *spec, r rule) {
	p, err := strconv.ParseBool(r.param)
	c.badParam(n, r, err)
	p = p != (r.tag == "ne")
	n.checks = append(n.checks, func(_ context.Context, v reflect.Value) bool { return v.Bool() == p })
	n.kw.Const = p
}

// equalText compiles eq and ne for strings.
func (c *compiler) equalText(n *spec, r rule) {
	p := r.param
	if r.tag == "eq" {
		n.texts = append(n.texts, func(s string) bool { return s == p })
		n.kw.Const = p
		return
	}
	n.texts = append(n.texts, func(s string) bool { return s != p })
	refuse(n.kw, &jsonschema.Schema{Const: p})
	n.phrases = append(n.phrases, "other than "+quoteJSON(p))
}

var ruleWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`'[^']*'|\S+`) })

// splitWords splits the parameter of oneof as the validator does.
func splitWords(s string) []string {
	words := ruleWords().FindAllString(s, -1)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "'", "")
	}
	return words
}

// oneof compiles oneof and noneof.
func (c *compiler) oneof(n *spec, r rule) bool {
	words := splitWords(r.param)
	if len(words) == 0 {
		c.errorf("rule %q lists nothing; write the values with spaces between, such as oneof=a b", r.text)
		return true
	}
	values := make([]any, 0, len(words))
	for _, w := range words {
		var known bool
		switch n.shape {
		case shapeString:
			values = append(values, w)
			continue
		case shapeInt:
			x, err := strconv.ParseInt(w, 10, 64)
			known = err == nil && strconv.FormatInt(x, 10) == w
		case shapeUint:
			x, err := strconv.ParseUint(w, 10, 64)
			known = err == nil && strconv.FormatUint(x, 10) == w
		default:
			return false
		}
		if !known {
			c.errorf("rule %q: %q is not of type %s; write whole numbers that it can hold", r.text, w, typeText(n.t))
			return true
		}
		values = append(values, json.Number(w))
	}
	among := oneOf(n.shape, values)
	if r.tag == "oneof" {
		n.kw.Enum = values
		n.checks = append(n.checks, among)
		return true
	}
	n.checks = append(n.checks, func(ctx context.Context, v reflect.Value) bool { return !among(ctx, v) })
	refuse(n.kw, &jsonschema.Schema{Enum: values})
	n.phrases = append(n.phrases, "other than "+strings.TrimPrefix(enumWant(values), "one of "))
	return true
}

// oneOf returns a check that a value of the shape is one of the values of an enum.
func oneOf(s shape, enum []any) check {
	switch s {
	case shapeString:
		return among(enum, func(e string) (string, bool) { return e, true }, reflect.Value.String)
	case shapeInt:
		return among(enum, func(e string) (int64, bool) { return parseInt([]byte(e)) }, reflect.Value.Int)
	case shapeUint:
		return among(enum, func(e string) (uint64, bool) { return parseUint([]byte(e)) }, reflect.Value.Uint)
	case shapeFloat:
		return among(enum, func(e string) (float64, bool) {
			x, err := strconv.ParseFloat(e, 64)
			return x, err == nil
		}, reflect.Value.Float)
	case shapeBool:
		return among(enum, func(e string) (bool, bool) { return e == "true", true }, reflect.Value.Bool)
	}
	return func(context.Context, reflect.Value) bool { return true }
}

func among[T comparable](enum []any, parse func(string) (T, bool), get func(reflect.Value) T) check {
	allowed := make([]T, 0, len(enum))
	for _, e := range enum {
		if x, ok := parse(enumText(e)); ok {
			allowed = append(allowed, x)
		}
	}
	return func(_ context.Context, v reflect.Value) bool { return slices.Contains(allowed, get(v)) }
}

// isText reports whether the rule only makes sense for text. The validator accepts any type for
// most of these, and compares with the fmt output of the value.
func isText(tag string) bool {
	t, text := textRules[tag]
	_, affix := affixes[tag]
	return text && !t.others || affix
}

// pattern compiles the rules of textRules that have a keyword.
func (c *compiler) pattern(n *spec, r rule) bool {
	if r.tag == "datetime" {
		c.datetime(n, r)
		return true
	}
	t := textRules[r.tag]
	if t.pattern == "" && t.format == "" {
		return false
	}
	if t.format != "" {
		n.kw.Format = t.format
	}
	if t.pattern != "" {
		re, err := compiled(t.pattern)
		if err != nil {
			panic(err) // only if the table is wrong
		}
		if t.format != "uuid" { // the format implies the pattern
			match(n.kw, t.pattern)
		}
		n.texts = append(n.texts, re.MatchString)
	}
	if t.guard != nil {
		n.texts = append(n.texts, t.guard)
	}
	if t.pattern == "" || t.more {
		c.residual(n, r)
		return true
	}
	n.phrases = append(n.phrases, t.phrase)
	return true
}

// datetime compiles a layout of package time.
func (c *compiler) datetime(n *spec, r rule) {
	layout := r.param
	switch layout {
	case time.DateOnly:
		n.kw.Format = "date"
	case time.RFC3339:
		n.kw.Format = "date-time"
	default:
		n.notes = append(n.notes, "Written like "+layout+".")
	}
	n.phrases = append(n.phrases, "written like "+quoteJSON(layout))
	n.texts = append(n.texts, func(s string) bool {
		_, err := time.Parse(layout, s)
		return err == nil
	})
}

// affix compiles the rules of affixes.
func (c *compiler) affix(n *spec, r rule) bool {
	a, ok := affixes[r.tag]
	if !ok {
		return false
	}
	part := r.param
	if part == "" {
		c.errorf("rule %q lacks its parameter; write %s=text", r.tag, r.tag)
		return true
	}
	if strings.HasSuffix(r.tag, "rune") {
		part = string([]rune(part)[:1])
	}
	n.texts = append(n.texts, func(s string) bool { return a.has(s, part) != a.not })
	if a.not {
		refuse(n.kw, &jsonschema.Schema{Pattern: a.pattern(part)})
	} else {
		match(n.kw, a.pattern(part))
	}
	n.phrases = append(n.phrases, a.phrase+quoteJSON(part))
	return true
}

// numeric compiles the rules of numberRules, and boolean for a bool, where it has no effect.
func (c *compiler) numeric(n *spec, r rule) bool {
	between, ok := numberRules[r.tag]
	if !ok || n.shape != shapeInt && n.shape != shapeUint && n.shape != shapeFloat {
		return r.tag == "boolean" && n.shape == shapeBool
	}
	if between.high == "" {
		return true
	}
	if n.shape == shapeUint && between.low[0] == '-' {
		between.low = "0"
	}
	c.compare(n, rule{tag: "min", param: string(between.low)})
	c.compare(n, rule{tag: "max", param: string(between.high)})
	return true
}

// unique compiles unique and unique=Field.
func (c *compiler) unique(n *spec, r rule) {
	elem := n.elem
	switch {
	case elem == nil:
		c.errorf("rule %q does not fit %s; it is for arrays, slices and maps", r.tag, typeText(n.t))
		return
	case r.param != "" && (elem.shape != shapeStruct || !elem.has(r.param)):
		c.errorf("rule %q names a field that the elements of %s have not", r.text, typeText(n.t))
		return
	case r.param == "" && !hashable(elem.t):
		c.errorf("rule %q does not fit %s, whose elements cannot be compared", r.tag, typeText(n.t))
		return
	case r.param != "" && !hashable(fieldType(elem.t, r.param)):
		c.errorf("rule %q does not fit %s, whose elements have a field %s that cannot be compared", r.text, typeText(n.t), r.param)
		return
	case r.param != "":
		n.notes = append(n.notes, "No two elements have the same "+r.param+".")
		n.phrases = append(n.phrases, "whose elements differ in "+r.param)
	case n.shape == shapeMap:
		n.notes = append(n.notes, "No two members have the same value.")
		n.phrases = append(n.phrases, "without equal values")
	default:
		n.kw.UniqueItems = true
	}
	if fast && n.shape == shapeSlice && r.param == "" && n.t == stringsType {
		n.checks = append(n.checks, func(_ context.Context, v reflect.Value) bool {
			return distinct(*v.Addr().Interface().(*[]string))
		})
		return
	}
	n.checks = append(n.checks, c.asked(n, r.text))
}

// hashable reports whether == compares all values of t. It panics for values of an interface that
// hold a slice or a map.
func hashable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return false
	case reflect.Array:
		return hashable(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !hashable(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return t.Comparable()
}

// fieldType returns the type of a field of the struct type t, without a pointer to it.
func fieldType(t reflect.Type, name string) reflect.Type {
	f, _ := t.FieldByName(name)
	if f.Type.Kind() == reflect.Pointer {
		return f.Type.Elem()
	}
	return f.Type
}

// has reports whether the struct at n has the Go field.
func (n *spec) has(name string) bool {
	_, ok := n.t.FieldByName(name)
	return ok
}

func distinct(list []string) bool {
	sorted := slices.Sorted(slices.Values(list))
	return len(slices.Compact(sorted)) == len(list)
}

// regexps holds the compiled patterns, which many types share.
var regexps sync.Map

func compiled(pattern string) (*regexp.Regexp, error) {
	if re, ok := regexps.Load(pattern); ok {
		return re.(*regexp.Regexp), nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	regexps.Store(pattern, re)
	return re, nil
}
