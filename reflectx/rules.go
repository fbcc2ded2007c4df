package reflectx

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

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
	if strings.Contains(param, "0x") {
		param = ruleEscapes.Replace(param)
	}
	return rule{text: text, tag: tag, param: param}
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
			if schemaWords[r.tag] != "" {
				c.errorf("unknown rule %q; it is a keyword of JSON Schema, so write jsonschema:%q", r.tag, r.text)
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
