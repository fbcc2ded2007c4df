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
	"unicode/utf8"

	"github.com/invopop/jsonschema"
)

// A rule is one word of a validate tag: "min=1".
type rule struct {
	text  string // as it stands in the tag
	tag   string
	param string // with the escapes 0x2C and 0x7C undone
}

func parseRule(text string) rule {
	tag, param, _ := strings.Cut(text, "=")
	return rule{text: text, tag: tag, param: ruleEscapes.Replace(param)}
}

var ruleEscapes = strings.NewReplacer("0x2C", ",", "0x7C", "|")

// rules compiles the validate tag of f: what its own value must be, then after each dive what its elements must be.
func (c *compiler) rules(f *field) {
	tag := f.validate
	if tag == "" || tag == "-" {
		return
	}
	parts := strings.Split(tag, ",")
	n, top := f.node, true
	c.lendChecks(f.node)
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

// lendChecks lets what rules of n compile to last until the input is compiled, for its example and its defaults, where the
// program's own validator asks the rules of calls. Rules about the text of a type, which that validator sees as a struct,
// and about values of any type, at which it panics, are asked one by one, and stay.
func (c *compiler) lendChecks(n *node) {
	for ; n != nil && c.o.Validate != nil; n = n.elem {
		n.lendChecks()
		if n.key != nil {
			n.key.lendChecks()
		}
	}
}

func (n *node) lendChecks() {
	if n.shape == shapeText || n.shape == shapeURL || n.shape == shapeAny {
		return
	}
	n.lasting = n.checks
	n.checks = &checks{slices.Clip(n.bools), slices.Clip(n.strs), slices.Clip(n.ints), slices.Clip(n.uints), slices.Clip(n.floats), slices.Clip(n.lens), slices.Clip(n.values)}
}

// require makes the member required in so many words. Then null does not count, which needs saying where the type takes
// null.
func (c *compiler) require(f *field) {
	if f.Required {
		return
	}
	f.Required = true
	if f.node.nullOK {
		f.notNull = true
		refuse(f.node.kw, &jsonschema.Schema{Type: "null"})
		f.node.phrases = append(f.node.phrases, "other than null")
	}
}

// keyRules compiles the rules between keys and endkeys for the names of the map n, and returns the index of endkeys.
func (c *compiler) keyRules(f *field, n *node, parts []string, i int) int {
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

// requiredElem is what `required` means for elements: not the zero value.
func (c *compiler) requiredElem(n *node) {
	switch n.shape {
	case shapeString:
		c.bound(n, rule{text: "required", tag: "min", param: "1"})
	case shapeInt, shapeUint, shapeFloat:
		c.bound(n, rule{text: "required", tag: "ne", param: "0"})
	case shapeBool:
		c.bound(n, rule{text: "required", tag: "eq", param: "true"})
	}
}

// rule compiles one rule for the value at n. top says that n is the field's own value.
func (c *compiler) rule(f *field, n *node, text string, top bool) {
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
	case slices.Contains(crossTags, r.tag):
		c.cross(f, n, r)
	case n.shape == shapeUnion:
		c.ruleOfUnion(n, r)
	case r.tag == "unique":
		c.unique(n, r) // which sees more than a probe
	case c.probe(n, r):
		c.compile(n, r)
	}
}

// presenceTags are about whether a member is there. They are checked on the raw members.
var presenceTags = []string{
	"required_if", "required_unless", "required_with", "required_with_all", "required_without", "required_without_all",
	"excluded_if", "excluded_unless", "excluded_with", "excluded_with_all", "excluded_without", "excluded_without_all",
}

// crossTags compare with other fields. The validator itself asks them, of the whole struct.
var crossTags = []string{
	"eqfield", "nefield", "gtfield", "gtefield", "ltfield", "ltefield", "fieldcontains", "fieldexcludes",
	"eqcsfield", "necsfield", "gtcsfield", "gtecsfield", "ltcsfield", "ltecsfield",
	"postcode_iso3166_alpha2_field", "skip_unless", "validateFn",
}

// cross notes a rule that compares with another field.
func (c *compiler) cross(f *field, n *node, r rule) {
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
	if says := crossNotes[r.tag]; says != "" {
		n.notes = append(n.notes, fmt.Sprintf(says, memberName(other)))
	}
}

func memberName(sf reflect.StructField) string { return jsonFieldName(sf) }

var crossNotes = map[string]string{
	"eqfield": "Must equal %s.", "nefield": "Must not equal %s.",
	"gtfield": "Must be greater than %s.", "gtefield": "Must not be less than %s.",
	"ltfield": "Must be less than %s.", "ltefield": "Must not be greater than %s.",
	"fieldcontains": "Must contain the value of %s.", "fieldexcludes": "Must not contain the value of %s.",
}

// probe asks the validator once whether it knows the rule and whether the rule takes the type and its parameter:
// it would panic at the first call otherwise.
func (c *compiler) probe(n *node, r rule) (ok bool) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		text := fmt.Sprint(p)
		switch custom := !slices.Contains(validateTags(), r.tag); {
		case strings.Contains(text, "Undefined validation function"):
			if strings.HasPrefix(c.before, "oneof") {
				c.errorf("unknown rule %q; the values of oneof have blanks between them, so write %s %[1]s", r.text, c.before)
				return
			}
			c.errorf("unknown rule %q%s", r.tag, hintOr(r.tag, validateTags(), "write one that github.com/go-playground/validator/v10 knows, or register it"))
			ok = false
		case custom:
			ok = true // it may miss the struct around the value, which it has at run time
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

// sample returns a value of t that is not its zero value where that is easily had.
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

// probeAll lets the validator see a whole zero value, which is when it reads the tags of all fields.
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

// compile turns a rule that the validator took into a check and keywords.
func (c *compiler) compile(n *node, r rule) {
	if !slices.Contains(validateTags(), r.tag) {
		c.asksAll = true // registered by the user
		n.notes = append(n.notes, "Must satisfy "+r.text+".")
		return
	}
	switch r.tag {
	case "min", "gte", "max", "lte", "gt", "lt", "len", "eq", "ne":
		if c.bound(n, r) {
			return
		}
	case "oneof", "noneof":
		if c.oneof(n, r) {
			return
		}
	}
	if n.shape == shapeString || n.asText(r) {
		if c.affix(n, r) || c.pattern(n, r) {
			return
		}
	} else if c.numeric(n, r) {
		return
	} else if stringsOnly(r.tag) && n.shape != shapeAny {
		c.errorf("rule %q does not fit %s; it is for strings", r.tag, typeText(n.t))
		return
	}
	c.residual(n, r)
}

// residual leaves the rule to the validator, and says it in the description.
func (c *compiler) residual(n *node, r rule) {
	v, text := c.validate, r.text
	phrase := "that satisfies " + r.text
	note := "Must satisfy " + r.text + "."
	if p := cmp.Or(phrases[r.tag], textRules[r.tag].phrase); p != "" {
		phrase = p
		note = "Must be a value " + p + "."
	}
	if n.shape == shapeTime || n.shape == shapeDuration {
		if says := timePhrase(n.shape, r); says != "" {
			phrase, note = says, "Must be "+says+"."
			if strings.HasPrefix(says, "at ") || strings.HasPrefix(says, "exactly ") {
				phrase = "of " + says
			}
		}
	}
	n.phrases = append(n.phrases, phrase)
	if !hasKeyword(r.tag) {
		n.notes = append(n.notes, note)
	}
	if n.asText(r) {
		n.strs = append(n.strs, func(s string) bool { return v.Var(s, text) == nil })
		return
	}
	n.values = append(n.values, c.asked(n, text))
}

// asked is the rule that asks the validator. A value of any type may be of one that the rule does not take, at which the
// validator panics: it is not what the rule wants.
func (c *compiler) asked(n *node, text string) valueRule {
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

// asText reports whether the rule is about the text of a type that reads text itself. The validator would compare
// with what reflect prints of the type.
func (n *node) asText(r rule) bool {
	return (n.shape == shapeText || n.shape == shapeURL) && stringsOnly(r.tag)
}

func timePhrase(s shape, r rule) string {
	if s == shapeDuration {
		switch r.tag {
		case "min", "gte":
			return "at least " + r.param
		case "max", "lte":
			return "at most " + r.param
		case "gt":
			return "longer than " + r.param
		case "lt":
			return "shorter than " + r.param
		case "eq", "len":
			return "exactly " + r.param
		case "ne":
			return "other than " + r.param
		}
		return ""
	}
	switch r.tag {
	case "gt", "gte", "min":
		return "in the future"
	case "lt", "lte", "max":
		return "in the past"
	}
	return ""
}

// either compiles "a|b".
func (c *compiler) either(n *node, r rule) {
	var kws []*jsonschema.Schema
	var words []string
	exact := true
	for text := range strings.SplitSeq(r.text, "|") {
		one := parseRule(text)
		if !c.probe(n, one) {
			return
		}
		if slices.Contains(crossTags, one.tag) || slices.Contains(presenceTags, one.tag) || !slices.Contains(validateTags(), one.tag) {
			c.errorf("rule %q cannot be one of several; write it without |", one.text)
			return
		}
		scratch := *n
		scratch.kw, scratch.phrases, scratch.notes, scratch.checks = &jsonschema.Schema{}, nil, nil, &checks{}
		c.compile(&scratch, one)
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
	n.values = append(n.values, c.asked(n, r.text))
}

// bound compiles the rules that compare with a number: the value itself, or how long it is.
func (c *compiler) bound(n *node, r rule) bool {
	switch n.shape {
	case shapeInt:
		p, err := strconv.ParseInt(r.param, 0, 64)
		c.badParam(n, r, err)
		n.ints = append(n.ints, compare(r.tag, p))
		c.numberKeyword(n, r.tag, json.Number(strconv.FormatInt(p, 10)))
	case shapeUint:
		p, err := strconv.ParseUint(r.param, 0, 64)
		c.badParam(n, r, err)
		n.uints = append(n.uints, compare(r.tag, p))
		c.numberKeyword(n, r.tag, json.Number(strconv.FormatUint(p, 10)))
	case shapeFloat:
		p, err := strconv.ParseFloat(r.param, 64)
		num, ok := floatNumber(p)
		if err == nil && !ok {
			err = strconv.ErrRange
		}
		c.badParam(n, r, err)
		n.floats = append(n.floats, compare(r.tag, p))
		c.numberKeyword(n, r.tag, num)
	case shapeBool:
		p, err := strconv.ParseBool(r.param)
		c.badParam(n, r, err)
		if r.tag == "ne" {
			p = !p
		}
		n.bools = append(n.bools, func(b bool) bool { return b == p })
		n.kw.Const = p
	case shapeString:
		if r.tag == "eq" || r.tag == "ne" {
			c.equalText(n, r)
			return true
		}
		p, err := strconv.ParseInt(r.param, 0, 64)
		c.badParam(n, r, err)
		ok := compare(r.tag, int(p))
		n.strs = append(n.strs, func(s string) bool { return ok(utf8.RuneCountInString(s)) })
		c.countKeyword(n, r.tag, p)
	case shapeSlice, shapeArray, shapeMap:
		p, err := strconv.ParseInt(r.param, 0, 64)
		c.badParam(n, r, err)
		n.lens = append(n.lens, compare(r.tag, int(p)))
		c.countKeyword(n, r.tag, p)
	default:
		return false
	}
	return true
}

// badParam complains about the parameter of a rule that compares, if there is an error.
func (c *compiler) badParam(n *node, r rule, err error) {
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

func compare[T int | int64 | uint64 | float64](tag string, p T) func(T) bool {
	switch tag {
	case "min", "gte":
		return func(x T) bool { return x >= p }
	case "max", "lte":
		return func(x T) bool { return x <= p }
	case "gt":
		return func(x T) bool { return x > p }
	case "lt":
		return func(x T) bool { return x < p }
	case "ne":
		return func(x T) bool { return x != p }
	}
	return func(x T) bool { return x == p }
}

func (c *compiler) numberKeyword(n *node, tag string, p json.Number) {
	kw := n.kw
	if n.isKey {
		n.phrases = append(n.phrases, keyPhrase(tag, string(p)))
		return
	}
	switch tag {
	case "min", "gte":
		kw.Minimum = stricter(kw.Minimum, p, 1)
	case "max", "lte":
		kw.Maximum = stricter(kw.Maximum, p, -1)
	case "gt":
		kw.ExclusiveMinimum = stricter(kw.ExclusiveMinimum, p, 1)
	case "lt":
		kw.ExclusiveMaximum = stricter(kw.ExclusiveMaximum, p, -1)
	case "ne":
		refuse(kw, &jsonschema.Schema{Const: p})
		n.phrases = append(n.phrases, "other than "+string(p))
	default:
		kw.Const = p
	}
}

func keyPhrase(tag, p string) string {
	words := map[string]string{"min": "of at least ", "gte": "of at least ", "max": "of at most ", "lte": "of at most ",
		"gt": "greater than ", "lt": "less than ", "ne": "other than "}
	if w := words[tag]; w != "" {
		return w + p
	}
	return "equal to " + p
}

// stricter returns the larger of a and b where sign is 1, the smaller where it is -1. An empty a does not count.
func stricter(a, b json.Number, sign int) json.Number {
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	if !okX || okY && y.Cmp(x) == sign {
		return b
	}
	return a
}

// refuse adds to kw what must not be.
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

// countKeyword publishes a rule about a length.
func (c *compiler) countKeyword(n *node, tag string, p int64) {
	kw := n.kw
	low, high := &kw.MinLength, &kw.MaxLength
	switch n.shape {
	case shapeSlice, shapeArray:
		low, high = &kw.MinItems, &kw.MaxItems
	case shapeMap:
		low, high = &kw.MinProperties, &kw.MaxProperties
	}
	switch tag {
	case "gt":
		tag, p = "min", p+1
	case "lt":
		tag, p = "max", p-1
	}
	if p < 0 && (tag == "max" || tag == "lte" || tag == "len" || tag == "eq") {
		c.errorf("nothing has a length of %d; write 0 or more", p)
		return
	}
	u := uint64(max(p, 0))
	switch tag {
	case "min", "gte":
		if *low == nil || **low < u {
			*low = &u
		}
	case "max", "lte":
		if *high == nil || **high > u {
			*high = &u
		}
	case "ne":
		not := &jsonschema.Schema{}
		scratch := &node{shape: n.shape, kw: not}
		c.countKeyword(scratch, "len", p)
		refuse(kw, not)
		n.phrases = append(n.phrases, fmt.Sprintf("of a length other than %d", p))
	default: // it narrows what there is
		c.countKeyword(n, "min", p)
		c.countKeyword(n, "max", p)
	}
}

// equalText compiles eq and ne for strings.
func (c *compiler) equalText(n *node, r rule) {
	p := r.param
	if r.tag == "eq" {
		n.strs = append(n.strs, func(s string) bool { return s == p })
		n.kw.Const = p
		return
	}
	n.strs = append(n.strs, func(s string) bool { return s != p })
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
func (c *compiler) oneof(n *node, r rule) bool {
	words := splitWords(r.param)
	if len(words) == 0 {
		c.errorf("rule %q lists nothing; write the values with spaces between, such as oneof=a b", r.text)
		return true
	}
	values := make([]any, 0, len(words))
	for _, w := range words {
		switch n.shape {
		case shapeString:
			values = append(values, w)
			continue
		case shapeInt:
			if x, err := strconv.ParseInt(w, 10, 64); err == nil && strconv.FormatInt(x, 10) == w {
				values = append(values, json.Number(w))
				continue
			}
		case shapeUint:
			if x, err := strconv.ParseUint(w, 10, 64); err == nil && strconv.FormatUint(x, 10) == w {
				values = append(values, json.Number(w))
				continue
			}
		default:
			return false
		}
		c.errorf("rule %q: %q is no %s; write whole numbers that it can hold", r.text, w, typeText(n.t))
		return true
	}
	if r.tag == "oneof" {
		n.kw.Enum = values
		c.enforceEnum(n)
		return true
	}
	scratch := &node{t: n.t, shape: n.shape, kw: &jsonschema.Schema{Enum: values}, checks: &checks{}}
	c.enforceEnum(scratch)
	for _, ok := range scratch.strs {
		n.strs = append(n.strs, func(s string) bool { return !ok(s) })
	}
	for _, ok := range scratch.ints {
		n.ints = append(n.ints, func(x int64) bool { return !ok(x) })
	}
	for _, ok := range scratch.uints {
		n.uints = append(n.uints, func(x uint64) bool { return !ok(x) })
	}
	refuse(n.kw, scratch.kw)
	n.phrases = append(n.phrases, "other than "+strings.TrimPrefix(enumWant(values), "one of "))
	return true
}

// enforceEnum makes the enum of n's keywords a check.
func (c *compiler) enforceEnum(n *node) {
	switch n.shape {
	case shapeString:
		allowed := make([]string, 0, len(n.kw.Enum))
		for _, e := range n.kw.Enum {
			s, _ := e.(string)
			allowed = append(allowed, s)
		}
		n.strs = append(n.strs, func(s string) bool { return slices.Contains(allowed, s) })
	case shapeInt:
		allowed := enumNumbers(n.kw.Enum, parseInt)
		n.ints = append(n.ints, func(x int64) bool { return slices.Contains(allowed, x) })
	case shapeUint:
		allowed := enumNumbers(n.kw.Enum, parseUint)
		n.uints = append(n.uints, func(x uint64) bool { return slices.Contains(allowed, x) })
	case shapeFloat:
		allowed := enumNumbers(n.kw.Enum, func(b []byte) (float64, bool) {
			x, err := strconv.ParseFloat(string(b), 64)
			return x, err == nil
		})
		n.floats = append(n.floats, func(x float64) bool { return slices.Contains(allowed, x) })
	case shapeBool:
		allowed := slices.Clone(n.kw.Enum)
		n.bools = append(n.bools, func(b bool) bool { return slices.Contains(allowed, any(b)) })
	}
}

func enumNumbers[T any](enum []any, parse func([]byte) (T, bool)) []T {
	out := make([]T, 0, len(enum))
	for _, e := range enum {
		if x, ok := parse([]byte(fmt.Sprint(e))); ok {
			out = append(out, x)
		}
	}
	return out
}

// unique compiles unique and unique=Field.
func (c *compiler) unique(n *node, r rule) {
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
		n.values = append(n.values, func(_ context.Context, v reflect.Value) bool {
			return distinct(*v.Addr().Interface().(*[]string))
		})
		return
	}
	n.values = append(n.values, c.asked(n, r.text))
}

// has reports whether the struct at n has the Go field.
func (n *node) has(name string) bool {
	_, ok := n.t.FieldByName(name)
	return ok
}

func distinct(list []string) bool {
	if len(list) <= 16 { // without a map
		for i, s := range list {
			if slices.Contains(list[:i], s) {
				return false
			}
		}
		return true
	}
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		if seen[s] {
			return false
		}
		seen[s] = true
	}
	return true
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
