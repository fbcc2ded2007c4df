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

// A rule is one rule of a validate tag: "min=1".
type rule struct {
	text  string // as written in the tag
	tag   string
	param string // with the escapes 0x2C and 0x7C decoded
}

func parseRule(text string) rule {
	tag, param, _ := strings.Cut(text, "=")
	return rule{text: text, tag: tag, param: ruleEscapes.Replace(param)}
}

var ruleEscapes = strings.NewReplacer("0x2C", ",", "0x7C", "|")

// rules compiles the validate tag of f: the rules for its value, then, after each dive, those for
// its elements.
func (c *compiler) rules(f *field) {
	tag := f.validate
	if tag == "" || tag == "-" {
		return
	}
	parts := strings.Split(tag, ",")
	n, top := f.spec, true
	c.lendChecks(n)
	for i := 0; i < len(parts); i++ {
		switch part := parts[i]; part {
		case "dive":
			if n.elem == nil {
				c.errorf("rule %q does not fit %s; it is for arrays, slices and maps", part, typeText(f.Type))
				return
			}
			if i+1 < len(parts) && parts[i+1] == "keys" {
				if i = c.keyRules(f, n, parts, i+2); i < 0 {
					return
				}
			}
			n, top = n.elem, false
		case "keys", "endkeys":
			c.errorf("rule %q stands alone; write dive,keys,...,endkeys", part)
			return
		case "omitempty", "omitnil", "omitzero":
			f.optional = f.optional || top
		case "structonly", "nostructlevel":
		case "required":
			if top {
				c.require(f)
			} else {
				c.requiredElem(n)
			}
		default:
			c.before = ""
			if i > 0 {
				c.before = parts[i-1]
			}
			c.rule(f, n, part, top)
		}
	}
}

// lendChecks keeps some checks of n only until the input is compiled, to check its example and its
// defaults. This applies if the program's own validator checks the rules during calls. Rules for
// the text of a type, which that validator sees as a struct, and for values of any type, at which
// it panics, are checked one by one and stay.
func (c *compiler) lendChecks(n *spec) {
	for ; n != nil && c.o.Validate != nil; n = n.elem {
		n.lendChecks()
		if n.key != nil {
			n.key.lendChecks()
		}
	}
}

func (n *spec) lendChecks() {
	if n.shape != shapeText && n.shape != shapeURL && n.shape != shapeAny {
		n.keep = len(n.checks)
		n.keepTexts = len(n.texts)
	}
}

// require makes the member required by an explicit rule. Null then counts as absent; the schema
// must say so if the type allows null.
func (c *compiler) require(f *field) {
	if f.Required {
		return
	}
	f.Required = true
	if n := f.spec; n.nullOK {
		f.notNull = true
		refuse(n.kw, &jsonschema.Schema{Type: "null"})
		n.phrases = append(n.phrases, "other than null")
	}
}

// keyRules compiles the rules between keys and endkeys for the keys of the map n, and returns the
// index of endkeys.
func (c *compiler) keyRules(f *field, n *spec, parts []string, i int) int {
	if n.key == nil {
		c.errorf("rule \"keys\" does not fit %s; it is for maps", typeText(f.Type))
		return -1
	}
	for ; i < len(parts); i++ {
		switch part := parts[i]; part {
		case "endkeys":
			return i
		case "omitempty":
		case "required":
			c.requiredElem(n.key)
		default:
			c.rule(f, n.key, part, false)
		}
	}
	c.errorf("rule \"keys\" has no \"endkeys\"; write dive,keys,...,endkeys")
	return -1
}

// requiredElem compiles `required` for elements: they must not be the zero value.
func (c *compiler) requiredElem(n *spec) {
	switch n.shape {
	case shapeString:
		c.compare(n, rule{text: "required", tag: "min", param: "1"})
	case shapeInt, shapeUint, shapeFloat:
		c.compare(n, rule{text: "required", tag: "ne", param: "0"})
	case shapeBool:
		c.compare(n, rule{text: "required", tag: "eq", param: "true"})
	}
}

// rule compiles one rule for the value at n. top reports whether n is the field's own value.
func (c *compiler) rule(f *field, n *spec, text string, top bool) {
	r := parseRule(text)
	if strings.Contains(text, "|") && n.shape != shapeUnion {
		c.either(n, r)
		return
	}
	switch {
	case r.tag == "":
		c.errorf("the validate tag has an empty rule; write the rules with one comma between")
	case r.tag == "isdefault":
		c.errorf("rule %q allows nothing to be given; hide the field with json:\"-\" instead", r.tag)
	case r.tag == "skip_unless":
		c.errorf("rule %q switches others off by the value of another field, which no schema says; check that in the method", r.text)
	case slices.Contains(presenceTags, r.tag):
		if !top {
			c.errorf("rule %q is about whether a member is there, so it cannot stand after dive", r.text)
			return
		}
		f.rules = append(f.rules, r)
	case isCross(r.tag):
		c.cross(f, n, r)
	case n.shape == shapeUnion:
		c.ruleOfUnion(n, r)
	case r.tag == "enum" && c.ownsEnum():
		c.enum(n)
	case r.tag == "unique":
		c.unique(n, r) // not probed: a probe finds less
	case c.probe(n, r):
		c.compile(n, r)
	}
}

// cross adds the note for a rule that compares with another field.
func (c *compiler) cross(f *field, n *spec, r rule) {
	c.asksAll = true
	if r.tag == "validateFn" {
		return
	}
	name, _, _ := strings.Cut(r.param, ".")
	other, ok := f.owner.FieldByName(name)
	if strings.HasSuffix(r.tag, "csfield") {
		return // its path begins at the root, which is not known here
	}
	if !ok {
		c.errorf("rule %q names the field %q, which %s has not; write the name of the Go field", r.text, name, typeText(f.owner))
		return
	}
	if says := fieldRules[r.tag]; says != "" {
		n.notes = append(n.notes, fmt.Sprintf(says, memberName(other)))
	}
}

func memberName(sf reflect.StructField) string { return jsonFieldName(sf) }

// probe tests whether the validator knows the rule, and whether the rule accepts the type and its
// parameter. Otherwise the validator would panic at the first call.
func (c *compiler) probe(n *spec, r rule) (ok bool) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		text := fmt.Sprint(p)
		switch custom := !isBuiltin(r.tag); {
		case strings.Contains(text, "Undefined validation function"):
			if strings.HasPrefix(c.before, "oneof") {
				c.errorf("unknown rule %q; the values of oneof have blanks between them, so write %s %[1]s", r.text, c.before)
				return
			}
			c.errorf("unknown rule %q%s", r.tag, hintOr(r.tag, validateTags(), "write one that github.com/go-playground/validator/v10 knows, or register it"))
			ok = false
		case custom:
			ok = true // it may fail without the enclosing struct, which is present during calls
		case strings.Contains(text, "Bad field type"):
			c.errorf("rule %q does not fit %s", r.tag, typeText(n.t))
			ok = false
		default:
			c.badParam(n, r, strconv.ErrSyntax)
			ok = false
		}
	}()
	value := sample(n.t)
	if n.asText(r) {
		value = "a"
	}
	_ = c.validate.Var(value, r.text)
	return true
}

// sample returns a non-zero value of t, if one is easy to make.
func sample(t reflect.Type) any {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.Zero(t.Key()), reflect.Zero(t.Elem()))
	case reflect.String:
		v.SetString("a")
	case reflect.Interface:
		v.Set(reflect.ValueOf("a").Convert(t))
	default:
		switch {
		case v.CanInt():
			v.SetInt(1)
		case v.CanUint():
			v.SetUint(1)
		case v.CanFloat():
			v.SetFloat(1)
		}
	}
	return v.Interface()
}

// probeAll passes a zero value to the validator, which then parses the tags of all fields.
func (c *compiler) probeAll(t reflect.Type) {
	if !c.asksAll && c.o.Validate == nil || len(c.errs) > 0 {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.errorf("the validator does not take %s: %v", typeText(t), p)
		}
	}()
	_ = c.validate.StructCtx(context.Background(), reflect.New(t).Interface())
}

// compile turns a rule that passed the probe into a check and keywords.
func (c *compiler) compile(n *spec, r rule) {
	if !isBuiltin(r.tag) {
		c.asksAll = true // registered by the user
		n.notes = append(n.notes, "Must satisfy "+r.text+".")
		return
	}
	if _, ok := comparisons[r.tag]; ok && c.compare(n, r) || (r.tag == "oneof" || r.tag == "noneof") && c.oneof(n, r) {
		return
	}
	if n.shape == shapeString || n.asText(r) {
		if c.affix(n, r) || c.pattern(n, r) {
			return
		}
	} else if c.numeric(n, r) {
		return
	} else if isText(r.tag) && n.shape != shapeAny {
		c.errorf("rule %q does not fit %s; it is for strings", r.tag, typeText(n.t))
		return
	}
	c.residual(n, r)
}

// residual leaves the rule to the validator, and adds it to the description.
func (c *compiler) residual(n *spec, r rule) {
	v, text := c.validate, r.text
	phrase := "that satisfies " + r.text
	note := "Must satisfy " + r.text + "."
	known := textRules[r.tag]
	if p := known.phrase; p != "" {
		phrase = p
		note = "Must be a value " + p + "."
	}
	switch by := comparisons[r.tag]; {
	case n.shape == shapeTime && by.moment != "":
		phrase, note = by.moment, "Must be "+by.moment+"."
	case n.shape == shapeDuration && by.span != "":
		phrase, note = by.span+r.param, "Must be "+strings.TrimPrefix(by.span, "of ")+r.param+"."
	}
	n.phrases = append(n.phrases, phrase)
	if known.pattern == "" && known.format == "" {
		n.notes = append(n.notes, note)
	}
	if n.asText(r) {
		n.texts = append(n.texts, func(s string) bool { return v.Var(s, text) == nil })
		return
	}
	n.checks = append(n.checks, c.asked(n, text))
}

// asked returns a check that asks the validator. If a value of any type has a type that the rule
// does not accept, the validator panics; the check then fails.
func (c *compiler) asked(n *spec, text string) check {
	v := c.validate
	ask := func(ctx context.Context, value reflect.Value) bool {
		return v.VarCtx(ctx, value.Interface(), text) == nil
	}
	if n.shape != shapeAny {
		return ask
	}
	return func(ctx context.Context, value reflect.Value) (ok bool) {
		defer func() {
			if recover() != nil {
				ok = false
			}
		}()
		return ask(ctx, value)
	}
}

// asText reports whether the rule applies to the text of a type that is decoded from text. The
// validator would compare with the fmt output of the value.
func (n *spec) asText(r rule) bool {
	return (n.shape == shapeText || n.shape == shapeURL) && isText(r.tag)
}

// either compiles "a|b".
func (c *compiler) either(n *spec, r rule) {
	var kws []*jsonschema.Schema
	var words []string
	exact := true
	for text := range strings.SplitSeq(r.text, "|") {
		one := parseRule(text)
		if !c.probe(n, one) {
			return
		}
		if isCross(one.tag) || slices.Contains(presenceTags, one.tag) || !isBuiltin(one.tag) || one.tag == "enum" {
			c.errorf("rule %q cannot be one of several; write it without |", one.text)
			return
		}
		scratch := &spec{node: &node{t: n.t, shape: n.shape}, elem: n.elem, key: n.key, kw: &jsonschema.Schema{}, isKey: n.isKey}
		c.compile(scratch, one)
		exact = exact && len(scratch.notes) == 0
		kws = append(kws, scratch.kw)
		words = append(words, one.text)
	}
	says := "that satisfies " + joinWords(words, "or")
	if exact {
		n.kw.AllOf = append(n.kw.AllOf, &jsonschema.Schema{AnyOf: kws})
	} else {
		n.notes = append(n.notes, "Must satisfy "+joinWords(words, "or")+".")
	}
	n.phrases = append(n.phrases, says)
	n.checks = append(n.checks, c.asked(n, r.text))
}

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
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	if !okX || okY && y.Cmp(x) == sign {
		return b
	}
	return a
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

var ruleWords = regexp.MustCompile(`'[^']*'|\S+`)

// splitWords splits the parameter of oneof as the validator does.
func splitWords(s string) []string {
	words := ruleWords.FindAllString(s, -1)
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
	case r.param == "" && (!elem.t.Comparable() || elem.shape == shapeUnion):
		c.errorf("rule %q does not fit %s, whose elements cannot be compared", r.tag, typeText(n.t))
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
