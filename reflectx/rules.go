package reflectx

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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
	return rule{text: text, tag: tag, param: strings.NewReplacer("0x2C", ",", "0x7C", "|").Replace(param)}
}

// rules folds the validate tag of f into its schema: the rules for its value, then, after each dive,
// those for its elements.
func (c *compiler) rules(f *fieldState) {
	tag := f.sf.Tag.Get("validate")
	if tag == "" || tag == "-" {
		return
	}
	c.ruled = true
	parts := strings.Split(tag, ",")
	n, top := f.position, true
	for i := 0; i < len(parts); i++ {
		switch part := parts[i]; part {
		case "dive":
			elem, ok := n.elem(c.dir)
			if !ok {
				c.errorf("rule %q does not fit %s; it is for arrays, slices and maps", part, typeText(f.sf.Type))
				return
			}
			if i+1 < len(parts) && parts[i+1] == "keys" {
				if i = c.keyRules(f, n, parts, i+2); i < 0 {
					return
				}
			}
			n, top = elem, false
			f.dives++
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
			c.rule(f, n, part, parts[max(i-1, 0)], top)
		}
	}
}

// require makes a member required, so that null does not count.
func (c *compiler) require(f *fieldState) {
	f.Required = true
	if s := f.s; f.takesNull(c.dir) && s.Not == nil {
		s.Not = &jsonschema.Schema{Type: "null"}
		c.phrase(s, "other than null")
	}
}

// keyRules folds the rules between keys and endkeys into the schema of the names of the map n, and
// returns the index of endkeys.
func (c *compiler) keyRules(f *fieldState, n position, parts []string, i int) int {
	if n.t.Kind() != reflect.Map {
		c.errorf("rule \"keys\" does not fit %s; it is for maps", typeText(f.sf.Type))
		return -1
	}
	if n.s.PropertyNames == nil {
		n.s.PropertyNames = &jsonschema.Schema{}
	}
	key := position{s: n.s.PropertyNames, t: n.t.Key(), isKey: true}
	for ; i < len(parts); i++ {
		switch part := parts[i]; part {
		case "endkeys":
			return i
		case "omitempty":
		case "required":
			c.requiredElem(key)
		default:
			c.rule(f, key, part, parts[i-1], false)
		}
	}
	c.errorf("rule \"keys\" has no \"endkeys\"; write dive,keys,...,endkeys")
	return -1
}

// requiredElem folds `required` for elements: they must not be the zero value.
func (c *compiler) requiredElem(n position) {
	switch shapeOf(n.t, c.dir) {
	case shapeString:
		c.compare(n, rule{text: "required", tag: "min", param: "1"})
	case shapeInt, shapeUint, shapeFloat:
		c.compare(n, rule{text: "required", tag: "ne", param: "0"})
	case shapeBool:
		c.compare(n, rule{text: "required", tag: "eq", param: "true"})
	}
}

// rule folds one rule for the value at n. before is the rule before it; top reports whether n is the
// field's own value.
func (c *compiler) rule(f *fieldState, n position, text, before string, top bool) {
	r := parseRule(text)
	sh := shapeOf(n.t, c.dir)
	switch {
	case r.tag == "":
		c.errorf("the validate tag has an empty rule; write the rules with one comma between")
	case r.tag == "isdefault":
		c.errorf("rule %q allows nothing to be given; hide the field with json:\"-\" instead", r.tag)
	case r.tag == "skip_unless":
		c.errorf("rule %q switches others off by the value of another field, which no schema says; check that in the method", r.text)
	case !c.known(r, before):
	case slices.Contains(presenceTags, r.tag) && !strings.Contains(text, "|"):
		if !top {
			c.errorf("rule %q is about whether a member is there, so it cannot stand after dive", r.text)
			return
		}
		c.presenceRule(f, n, r)
	case isCross(r.tag):
		c.cross(f, n, r)
	case r.tag == "enum" && ownsEnum(c.validate):
		c.enumRule(n)
	case sh == shapeAny && isBuiltin(r.tag): // the validator panics at some of its values
		c.errorf("rule %q does not fit %s; give the field a type", r.tag, typeText(n.t))
	case strings.Contains(text, "|"):
		c.either(n, r)
	case !c.fits(n.t, r):
	case !isBuiltin(r.tag):
		c.asks = r.text
		c.note(n.s, "that satisfies "+r.text, "Must satisfy "+r.text+".")
	case r.tag == "unique":
		c.unique(n, r)
	case c.compare(n, r), sh == shapeBool && r.tag == "boolean", c.oneof(n, r), c.numeric(n, r):
	case isText(r.tag) && n.t.Kind() != reflect.String && sh != shapeAny:
		c.errorf("rule %q does not fit %s; it is for strings", r.tag, typeText(n.t))
	case n.t.Kind() == reflect.String && (c.affix(n, r) || c.text(n, r)):
	default:
		c.describeRule(n, r)
	}
}

// known reports whether the validator knows each rule of r, and records a mistake otherwise. The
// validator reads a whole tag before it judges, and a zero value ends at omitempty.
func (c *compiler) known(r rule, before string) bool {
	for text := range strings.SplitSeq(r.text, "|") {
		one := parseRule(text)
		if !panics(func() { _ = c.validate.Var("", "omitempty,"+text) }) {
			continue
		}
		switch {
		case strings.HasPrefix(before, "oneof") && !isBuiltin(one.tag):
			c.errorf("unknown rule %q; the values of oneof have blanks between them, so write %s %[1]s", text, before)
		case schemaWords[one.tag] != "":
			c.errorf("unknown rule %q; it is a keyword of JSON Schema, so write jsonschema:%q", one.tag, text)
		default:
			c.errorf("unknown rule %q%s", one.tag,
				hintOr(one.tag, validateTags(), "write one that github.com/go-playground/validator/v10 knows, or register it"))
		}
		return false
	}
	return true
}

// fits reports whether a rule of the validator takes values of type t and its parameter, and records
// a mistake otherwise. A rule of the program may need the struct around its value, so that only the
// populated struct shows whether it fits.
func (c *compiler) fits(t reflect.Type, r rule) bool {
	v := reflect.New(t).Elem()
	populate(v, 0)
	ask := func(text string) func() { return func() { _ = c.validate.Var(v.Interface(), text) } }
	if !isBuiltin(r.tag) || r.tag == "unique" || !panics(ask(r.text)) {
		return true
	}
	good, known := params[shapeOf(t, c.dir)]
	if _, compares := comparisons[r.tag]; compares && known && !panics(ask(r.tag+"="+good.example)) {
		c.errorf("rule %q: the parameter %q does not fit %s; write %s, such as %s=%s", r.tag, r.param, typeText(t), good.text, r.tag, good.example)
	} else {
		c.errorf("rule %q does not fit %s", r.tag, typeText(t))
	}
	return false
}

// params are the parameters of comparisons.
var params = map[shape]struct{ text, example string }{
	shapeInt: {"an integer", "1"}, shapeUint: {"an integer of 0 or more", "1"}, shapeFloat: {"a number", "0.5"},
	shapeBool: {"true or false", "true"}, shapeDuration: {"a duration", "1h30m"}, shapeString: {"a number of 0 or more", "1"},
	shapeSlice: {"a number of 0 or more", "1"}, shapeArray: {"a number of 0 or more", "1"}, shapeMap: {"a number of 0 or more", "1"},
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

// A comparison compares a number, or the length of a text, an array or a map, with its parameter.
type comparison struct {
	low, high bool   // it is a lower or an upper limit
	open      bool   // the limit itself is not allowed
	not       bool   // the value itself is not allowed
	text      string // the text before the parameter
	span      string // the same for a time.Duration
	moment    string // the text for a time.Time, which is compared with the time of the call
}

var comparisons = map[string]comparison{
	"min": {low: true, text: "of at least ", moment: "in the future"}, "gte": {low: true, text: "of at least ", moment: "in the future"},
	"max": {high: true, text: "of at most ", moment: "in the past"}, "lte": {high: true, text: "of at most ", moment: "in the past"},
	"gt": {low: true, open: true, text: "greater than ", span: "longer than ", moment: "in the future"},
	"lt": {high: true, open: true, text: "less than ", span: "shorter than ", moment: "in the past"},
	"eq": {low: true, high: true, text: "equal to ", span: "of exactly "}, "len": {low: true, high: true, text: "equal to ", span: "of exactly "},
	"ne": {low: true, high: true, not: true, text: "other than "},
}

// compare folds comparisons.
func (c *compiler) compare(n position, r rule) bool {
	by, ok := comparisons[r.tag]
	if !ok {
		return false
	}
	equal := (r.tag == "eq" || r.tag == "ne")
	switch sh := shapeOf(n.t, c.dir); sh {
	case shapeBool:
		p, _ := strconv.ParseBool(r.param)
		n.s.Const = p != by.not
	case shapeInt, shapeUint, shapeFloat:
		c.compareNumber(n, by, c.number(n, r, sh))
	case shapeString:
		if !equal {
			c.compareLength(n, by, r.param, &n.s.MinLength, &n.s.MaxLength)
		} else if by.not {
			refuse(n.s, &jsonschema.Schema{Const: r.param})
			c.phrase(n.s, "other than "+quoteJSON(r.param))
		} else {
			n.s.Const = r.param
		}
	case shapeSlice, shapeArray:
		c.compareLength(n, by, r.param, &n.s.MinItems, &n.s.MaxItems)
	case shapeMap:
		c.compareLength(n, by, r.param, &n.s.MinProperties, &n.s.MaxProperties)
	case shapeBytes:
		c.describeRule(n, r)
		if p, err := strconv.Atoi(r.param); err == nil && by.high && !by.not {
			n.s.MaxLength = encodedLen(p)
		}
	case shapeTime:
		c.note(n.s, by.moment, "Must be "+by.moment+".")
	case shapeDuration:
		text := by.text
		if by.span != "" {
			text = by.span
		}
		c.note(n.s, text+r.param, "Must be "+strings.TrimPrefix(text, "of ")+r.param+".")
	default:
		return false
	}
	return true
}

// number returns the parameter of a rule for a number as JSON.
func (c *compiler) number(n position, r rule, sh shape) json.Number {
	switch sh {
	case shapeInt:
		x, _ := strconv.ParseInt(r.param, 0, 64)
		return json.Number(strconv.FormatInt(x, 10))
	case shapeUint:
		x, _ := strconv.ParseUint(r.param, 0, 64)
		return json.Number(strconv.FormatUint(x, 10))
	}
	x, _ := strconv.ParseFloat(r.param, 64)
	if math.IsInf(x, 0) || math.IsNaN(x) {
		c.errorf("rule %q: the parameter %q does not fit %s; write a number that fits, such as %s=0.5", r.tag, r.param, typeText(n.t), r.tag)
		x = 0
	}
	return json.Number(strconv.FormatFloat(x, 'g', -1, 64))
}

// compareNumber adds the keywords that compare a number with p.
func (c *compiler) compareNumber(n position, by comparison, p json.Number) {
	s := n.s
	switch {
	case n.isKey:
		c.note(s, by.text+string(p), "Must be an integer "+by.text+string(p)+".")
	case by.not:
		refuse(s, &jsonschema.Schema{Const: p})
		c.phrase(s, by.text+string(p))
	case by.low && by.high:
		s.Const = p
	case by.low && by.open:
		s.ExclusiveMinimum = stricter(s.ExclusiveMinimum, p, 1)
	case by.low:
		s.Minimum = stricter(s.Minimum, p, 1)
	case by.open:
		s.ExclusiveMaximum = stricter(s.ExclusiveMaximum, p, -1)
	default:
		s.Maximum = stricter(s.Maximum, p, -1)
	}
}

// compareLength adds the keywords that compare a length with the parameter.
func (c *compiler) compareLength(n position, by comparison, param string, least, most **uint64) {
	p, _ := strconv.ParseInt(param, 0, 64)
	low, high := p, p
	if by.open {
		low, high = p+1, p-1
	}
	if by.high && high < 0 {
		c.errorf("nothing has a length of %d; write 0 or more", high)
		return
	}
	if by.not {
		c.note(n.s, fmt.Sprintf("of a length other than %d", p), fmt.Sprintf("The length must not be %d.", p))
		return
	}
	if u := uint64(max(low, 0)); by.low && (*least == nil || **least < u) {
		*least = &u
	}
	if u := uint64(high); by.high && (*most == nil || **most > u) {
		*most = &u
	}
}

// stricter returns the larger of a and b if sign is 1, the smaller if it is -1. It ignores an empty
// a.
func stricter(a, b json.Number, sign int) json.Number {
	x, ok := ratOf(string(a))
	y, ok2 := ratOf(string(b))
	if !ok || ok2 && y.Cmp(x) == sign {
		return b
	}
	return a
}

// ratOf returns a JSON number as a rational number. It refuses numbers beyond float64, with which it
// would take too long to calculate.
func ratOf(number string) (*big.Rat, bool) {
	if x, err := strconv.ParseFloat(number, 64); err != nil || x == 0 && strings.ContainsAny(number, "123456789") {
		return nil, false
	}
	return new(big.Rat).SetString(number)
}

// refuse adds not to s.
func refuse(s, not *jsonschema.Schema) {
	if s.Not == nil {
		s.Not = not
		return
	}
	s.AllOf = append(s.AllOf, &jsonschema.Schema{Not: not})
}

// match adds a pattern to s.
func match(s *jsonschema.Schema, pattern string) {
	if s.Pattern == "" || s.Pattern == pattern {
		s.Pattern = pattern
		return
	}
	s.AllOf = append(s.AllOf, &jsonschema.Schema{Pattern: pattern})
}

// splitWords splits the parameter of oneof as the validator does.
func splitWords(s string) []string {
	words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(s, -1)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "'", "")
	}
	return words
}

// oneof folds oneof and noneof.
func (c *compiler) oneof(n position, r rule) bool {
	if r.tag != "oneof" && r.tag != "noneof" {
		return false
	}
	words := splitWords(r.param)
	if len(words) == 0 {
		c.errorf("rule %q lists nothing; write the values with spaces between, such as oneof=a b", r.text)
		return true
	}
	values := make([]any, len(words))
	for i, w := range words {
		v := reflect.New(n.t).Elem()
		switch {
		case n.t.Kind() == reflect.String:
			values[i] = w
			continue
		case v.CanInt():
			if x, err := strconv.ParseInt(w, 10, 64); err == nil && !v.OverflowInt(x) && strconv.FormatInt(x, 10) == w {
				values[i] = json.Number(w)
				continue
			}
		case v.CanUint():
			if x, err := strconv.ParseUint(w, 10, 64); err == nil && !v.OverflowUint(x) && strconv.FormatUint(x, 10) == w {
				values[i] = json.Number(w)
				continue
			}
		default:
			return false
		}
		c.errorf("rule %q: %q is not of type %s; write whole numbers that it can hold", r.text, w, typeText(n.t))
		return true
	}
	if r.tag == "oneof" {
		n.s.Enum = values
		return true
	}
	refuse(n.s, &jsonschema.Schema{Enum: values})
	c.phrase(n.s, "other than "+strings.TrimPrefix(enumWant(values), "one of "))
	return true
}

// isText reports whether the rule only makes sense for text. The validator accepts any type for
// most of these, and compares with the fmt output of the value.
func isText(tag string) bool {
	t, text := textRules[tag]
	_, affix := affixes[tag]
	return text && !t.others || affix
}

// text folds the rules of textRules that have a keyword.
func (c *compiler) text(n position, r rule) bool {
	if r.tag == "datetime" {
		phrase := "written like " + quoteJSON(r.param)
		switch r.param {
		case time.DateOnly:
			n.s.Format = "date"
		case time.RFC3339:
			n.s.Format = "date-time"
		default:
			c.note(n.s, phrase, "Written like "+r.param+".")
			return true
		}
		c.phrase(n.s, phrase)
		return true
	}
	t := textRules[r.tag]
	if t.pattern == "" && t.format == "" {
		return false
	}
	if t.format != "" {
		n.s.Format = t.format
	}
	if t.pattern != "" && t.format != "uuid" { // the format implies the pattern
		match(n.s, t.pattern)
	}
	c.phrase(n.s, t.phrase)
	return true
}

// affix folds the rules of affixes.
func (c *compiler) affix(n position, r rule) bool {
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
	if a.not {
		refuse(n.s, &jsonschema.Schema{Pattern: a.pattern(part)})
	} else {
		match(n.s, a.pattern(part))
	}
	c.phrase(n.s, a.phrase+quoteJSON(part))
	return true
}

// numeric folds the rules of numberRules.
func (c *compiler) numeric(n position, r rule) bool {
	between, ok := numberRules[r.tag]
	sh := shapeOf(n.t, c.dir)
	if !ok || sh != shapeInt && sh != shapeUint && sh != shapeFloat {
		return false
	}
	if between.high != "" {
		n.s.Minimum, n.s.Maximum = stricter(n.s.Minimum, between.low, 1), stricter(n.s.Maximum, between.high, -1)
	}
	return true
}

// unique folds unique and unique=Field.
func (c *compiler) unique(n position, r rule) {
	elem, ok := n.elem(c.dir)
	if !ok {
		c.errorf("rule %q does not fit %s; it is for arrays, slices and maps", r.tag, typeText(n.t))
		return
	}
	compared := elem.t
	if r.param != "" && elem.t.Kind() == reflect.Struct {
		sf, ok := elem.t.FieldByName(r.param)
		if !ok {
			c.errorf("rule %q names a field that the elements of %s have not", r.text, typeText(n.t))
			return
		}
		compared = indirectAll(sf.Type)
	}
	switch {
	case compared.Kind() == reflect.Interface || !compared.Comparable(): // at which the validator panics
		c.errorf("rule %q does not fit %s, whose elements cannot be compared", r.text, typeText(n.t))
	case r.param != "":
		c.note(n.s, "whose elements differ in "+r.param, "No two elements have the same "+r.param+".")
	case n.t.Kind() == reflect.Map:
		c.note(n.s, "without equal values", "No two members have the same value.")
	default:
		n.s.UniqueItems = true
	}
}

// describeRule leaves a rule to the validator, and adds it to the description.
func (c *compiler) describeRule(n position, r rule) {
	h := c.hint(n.s)
	h.checks = append(h.checks, r.text)
	if p := textRules[r.tag].phrase; p != "" {
		c.note(n.s, p, "Must be a value "+p+".")
		return
	}
	c.note(n.s, "that satisfies "+r.text, "Must satisfy "+r.text+".")
}

// either leaves "a|b" to the validator.
func (c *compiler) either(n position, r rule) {
	words := strings.Split(r.text, "|")
	for _, text := range words {
		one := parseRule(text)
		if isCross(one.tag) || slices.Contains(presenceTags, one.tag) || !isBuiltin(one.tag) || one.tag == "enum" {
			c.errorf("rule %q cannot be one of several; write it without |", text)
			return
		}
		if !c.fits(n.t, one) {
			return
		}
	}
	h := c.hint(n.s)
	h.checks = append(h.checks, r.text)
	c.note(n.s, "that satisfies "+joinWords(words, "or"), "Must satisfy "+joinWords(words, "or")+".")
}

// cross adds the note for a rule that compares with another field.
func (c *compiler) cross(f *fieldState, n position, r rule) {
	c.asks = r.text
	name, _, _ := strings.Cut(r.param, ".")
	if r.tag == "validateFn" || strings.HasSuffix(r.tag, "csfield") { // whose path begins at the root
		return
	}
	if other, ok := c.sibling(f, r, name); ok && fieldRules[r.tag] != "" {
		c.note(n.s, "", fmt.Sprintf(fieldRules[r.tag], jsonFieldName(other)))
	}
}

// sibling returns the field that a rule of f names.
func (c *compiler) sibling(f *fieldState, r rule, name string) (reflect.StructField, bool) {
	other, ok := f.owner.FieldByName(name)
	if !ok {
		var known []string
		for _, sf := range reflect.VisibleFields(f.owner) {
			if sf.Name != f.sf.Name {
				known = append(known, sf.Name)
			}
		}
		c.errorf("rule %q names the field %q, which %s has not%s", r.text, name, typeText(f.owner), hintOr(name, known, "write the name of the Go field"))
	}
	return other, ok
}

// presenceRule adds the note for a rule that requires or excludes a member.
func (c *compiler) presenceRule(f *fieldState, n position, r rule) {
	c.asks = r.text
	f.conditions = append(f.conditions, r.text)
	words := splitWords(r.param)
	what, how, _ := strings.Cut(r.tag, "_")
	step := 1
	if how == "if" || how == "unless" {
		step = 2
	}
	switch {
	case step == 2 && (len(words) == 0 || len(words)%2 != 0):
		c.errorf("rule %q needs pairs; write %s=Field value", r.text, r.tag)
		return
	case len(words) == 0:
		c.errorf("rule %q needs the names of fields; write %s=Field", r.text, r.tag)
		return
	}
	for i := 0; i < len(words); i += step {
		if _, ok := c.sibling(f, r, words[i]); !ok {
			return
		}
	}
	c.note(n.s, "", map[string]string{"required": "Required ", "excluded": "Not allowed "}[what]+condition(f.owner, r.tag, r.param)+".")
}

// condition says when a rule such as required_if applies: `when "kind" is "file"`. t is the struct
// with the fields.
func condition(t reflect.Type, tag, param string) string {
	_, how, _ := strings.Cut(tag, "_")
	words := splitWords(param)
	var terms []string
	for i := 0; i < len(words); i++ {
		sf, _ := t.FieldByName(words[i])
		term := quoteJSON(jsonFieldName(sf))
		if how == "if" || how == "unless" {
			if i++; i < len(words) {
				value := words[i]
				if sf.Type != nil && indirectAll(sf.Type).Kind() == reflect.String {
					value = quoteJSON(value)
				}
				term += " is " + value
			}
		}
		terms = append(terms, term)
	}
	all := len(terms) > 1 && strings.HasSuffix(how, "_all")
	says := map[string]string{"with": "there", "without": "missing"}[strings.TrimSuffix(how, "_all")]
	switch {
	case how == "if":
		return "when " + joinWords(terms, "and")
	case how == "unless":
		return "unless " + joinWords(terms, "and")
	case all:
		return "when " + joinWords(terms, "and") + " are " + says
	}
	return "when " + joinWords(terms, "or") + " is " + says
}
