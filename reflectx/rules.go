package reflectx

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// textKeywords are the rules about strings that have a keyword in JSON Schema: a format, or a regular
// expression of Go and JavaScript. The validator judges them, too. Rules with long patterns, such as
// semver, are left to it, since clients pay for each token of a schema.
var textKeywords = map[string]struct{ format, pattern string }{
	"alpha":                              {pattern: "^[a-zA-Z]+$"},
	"alphanum":                           {pattern: "^[a-zA-Z0-9]+$"},
	"numeric":                            {pattern: `^[-+]?[0-9]+(\.[0-9]+)?$`},
	"number":                             {pattern: "^[0-9]+$"},
	"hexadecimal":                        {pattern: "^(0[xX])?[0-9a-fA-F]+$"},
	"hexcolor":                           {pattern: "^#([0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$"},
	"e164":                               {pattern: `^\+?[1-9][0-9]{7,14}$`},
	"base64":                             {pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"},
	"uuid":                               {format: "uuid"},
	"uuid4":                              {pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
	"email":                              {format: "email"},
	"url":                                {format: "uri"},
	"http_url":                           {format: "uri", pattern: "^https?://"},
	"https_url":                          {format: "uri", pattern: "^https://"},
	"uri":                                {format: "uri-reference"},
	"hostname":                           {format: "hostname"},
	"hostname_rfc1123":                   {format: "hostname"},
	"fqdn":                               {format: "hostname"},
	"ipv4":                               {format: "ipv4"},
	"ipv6":                               {format: "ipv6"},
	"datetime=2006-01-02":                {format: "date"},
	"datetime=2006-01-02T15:04:05Z07:00": {format: "date-time"},
}

// affixes are the rules about a part of a string, with the pattern around it.
var affixes = map[string]struct{ before, after string }{"startswith": {before: "^"}, "endswith": {after: "$"}, "contains": {}}

// A comparison compares a number, or the length of a text, an array or a map, with its parameter.
type comparison struct {
	low, high bool   // it is a lower or an upper limit
	open      bool   // the limit itself is not allowed
	text      string // the text before the parameter
}

var comparisons = map[string]comparison{
	"min": {low: true, text: "at least"},
	"gte": {low: true, text: "at least"},
	"gt":  {low: true, open: true, text: "greater than"},
	"max": {high: true, text: "at most"},
	"lte": {high: true, text: "at most"},
	"lt":  {high: true, open: true, text: "less than"},
	"eq":  {low: true, high: true, text: "equal to"},
	"len": {low: true, high: true, text: "equal to"},
	"ne":  {text: "other than"},
}

// A rule is one rule of a validate tag: "min=1".
type rule struct {
	text, tag string
	param     string // with the escapes 0x2C and 0x7C decoded
}

func parseRule(text string) rule {
	tag, param, _ := strings.Cut(text, "=")
	return rule{text, tag, ruleEscapes.Replace(param)}
}

var ruleEscapes = strings.NewReplacer("0x2C", ",", "0x7C", "|")

// fieldRule returns the comparison that a rule such as gtfield makes with another field, and "" for
// other rules.
func (r rule) fieldRule() string {
	op, ok := strings.CutSuffix(r.tag, "field")
	if op = strings.TrimSuffix(op, "cs"); ok && comparisons[op].text != "" {
		return op
	}
	return ""
}

// conditional reports whether the rule requires or excludes a member by what others are.
func (r rule) conditional() bool {
	return strings.HasPrefix(r.tag, "required_") || strings.HasPrefix(r.tag, "excluded_")
}

// others returns the names of the Go fields that the rule names.
func (r rule) others() (names []string) {
	words := splitWords(r.param)
	switch {
	case r.fieldRule() != "" && !strings.HasSuffix(r.tag, "csfield"): // whose path begins at the root
		return words
	case !r.conditional():
		return nil
	case strings.HasSuffix(r.tag, "_if") || strings.HasSuffix(r.tag, "_unless"):
		for i := 0; i < len(words); i += 2 {
			names = append(names, words[i])
		}
		return names
	}
	return words
}

// says returns what a rule without a keyword demands of a value of type t: "Must be greater than
// from", "Required if kind is file", "Must satisfy credit_card". parent is the struct around it.
func (r rule) says(parent, t reflect.Type) string {
	words := splitWords(r.param)
	for i, word := range words {
		if sf, ok := fieldOf(parent, word); ok && slices.Contains(r.others(), word) {
			words[i] = jsonFieldName(sf)
		}
	}
	param := strings.Join(words, " ")
	comparison := comparisons[cmp.Or(r.fieldRule(), r.tag)].text
	switch {
	case strings.HasSuffix(r.tag, "_if"), strings.HasSuffix(r.tag, "_unless"):
		for i := range words {
			words[i] += []string{" is", " and"}[i%2]
		}
		param = strings.TrimSuffix(strings.Join(words, " "), " and")
		fallthrough
	case r.conditional():
		return strings.ToUpper(r.tag[:1]) + strings.ReplaceAll(r.tag[1:], "_", " ") + " " + param
	case comparison == "":
		return "Must satisfy " + strings.ReplaceAll(r.text, "|", " or ")
	case shapeOf(t, forInput) == shapeTime && param == "":
		param = "now"
	case shapeOf(t, forInput) == shapeBytes:
		param += " bytes"
	}
	return "Must be " + comparison + " " + param
}

func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	if t == nil || t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	return t.FieldByName(name)
}

// splitWords splits the parameter of oneof as the validator does.
func splitWords(s string) []string {
	words := word.FindAllString(s, -1)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "'", "")
	}
	return words
}

var word = regexp.MustCompile(`'[^']*'|\S+`)

// rules folds the validate tag of f into its schema: the rules for its value, then, after each dive,
// those for its elements.
func (c *compiler) rules(f *fieldState) {
	tag := f.sf.Tag.Get("validate")
	if tag == "" || tag == "-" {
		return
	}
	n, around, elem := f.position, position{}, position{}
	for part := range strings.SplitSeq(tag, ",") {
		switch part {
		case "dive":
			next, ok := n.elem(c.dir)
			if !ok {
				c.errorf("rule %q does not fit %s; it is for arrays, slices and maps", part, typeText(f.sf.Type))
				return
			}
			around, n = n, next
			f.dives++
		case "keys":
			if around.s == nil || around.t.Kind() != reflect.Map {
				c.errorf("rule %q does not fit %s; write dive,keys,...,endkeys for a map", part, typeText(f.sf.Type))
				return
			}
			if around.s.PropertyNames == nil {
				around.s.PropertyNames = &jsonschema.Schema{}
			}
			elem, n = n, position{around.s.PropertyNames, around.t.Key()}
		case "endkeys":
			if elem.s == nil {
				c.errorf("rule %q stands alone; write dive,keys,...,endkeys for a map", part)
				return
			}
			n = elem
		case "omitempty", "omitnil", "omitzero":
			f.optional = f.optional || f.dives == 0
		case "structonly", "nostructlevel":
		case "required":
			if f.dives == 0 {
				f.Required = true
			} else if shapeOf(n.t, c.dir) == shapeString {
				c.compare(n, parseRule("min=1"))
			} else {
				c.leave(f, n, parseRule(part))
			}
		default:
			c.rule(f, n, parseRule(part))
		}
	}
}

// rule folds one rule for the value at n.
func (c *compiler) rule(f *fieldState, n position, r rule) {
	isString, sh := n.t.Kind() == reflect.String, shapeOf(n.t, c.dir)
	keyword, ok := textKeywords[r.text]
	_, isAffix := affixes[r.tag]
	switch {
	case !c.known(r):
	case r.tag == "skip_unless":
		c.errorf("rule %q switches others off by the value of another field, which no schema says; "+
			"check that in the method", r.text)
	case strings.Contains(r.text, "|"):
		c.leave(f, n, r)
	case r.tag == "enum":
		c.enumRule(n)
	case r.tag == "oneof":
		c.oneof(n, r)
	case c.compare(n, r):
	case comparisons[r.tag].text != "" && !n.isIntKey() && sh != shapeDuration && sh != shapeTime && sh != shapeBytes:
		c.errorf("rule %q does not fit %s", r.text, typeText(n.t))
	case (ok || isAffix) && !isString && sh != shapeText:
		c.errorf("rule %q does not fit %s; it is for strings", r.text, typeText(n.t))
	case r.tag == "unique" && r.param == "" && sh == shapeSlice:
		n.s.UniqueItems = true
	case isAffix && r.param == "":
		c.errorf("rule %q lacks its parameter; write %s=text", r.tag, r.tag)
	case isAffix && isString:
		match(n.s, affixes[r.tag].before+regexp.QuoteMeta(r.param)+affixes[r.tag].after)
	case ok && isString:
		if keyword.format != "" {
			n.s.Format, c.asked = keyword.format, true // the validator is stricter than the format
		}
		match(n.s, keyword.pattern)
	default:
		c.leave(f, n, r)
	}
}

// known reports whether the validator knows each rule of r, and records a mistake otherwise. The
// validator reads a whole tag before it judges, and a zero value ends at omitempty.
func (c *compiler) known(r rule) bool {
	for text := range strings.SplitSeq(r.text, "|") {
		one := parseRule(text)
		_, ok := textKeywords[one.tag]
		if ok || comparisons[one.tag].text != "" || !panics(func() { _ = c.o.Validate.Var("", "omitempty,"+text) }) {
			continue
		}
		if slices.Contains(schemaWords, one.tag) {
			c.errorf("unknown rule %q; it is a keyword of JSON Schema, so write jsonschema:%q", one.tag, text)
		} else {
			c.errorf("unknown rule %q%s", one.tag,
				hintOr(one.tag, knownRules(), "write one that github.com/go-playground/validator/v10 knows, or register it; "+
					"values of oneof have blanks between them"))
		}
		return false
	}
	return true
}

// knownRules are the rules that are suggested for a misspelt one.
func knownRules() []string {
	known := slices.Concat(slices.Collect(maps.Keys(textKeywords)), slices.Collect(maps.Keys(comparisons)),
		strings.Fields(`required omitempty dive keys endkeys oneof enum unique required_if required_with required_without
			eqfield nefield gtfield ltfield`))
	slices.Sort(known)
	return known
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

// leave leaves a rule to the validator, and adds it to the description.
func (c *compiler) leave(f *fieldState, n position, r rule) {
	c.asked, c.node(f.s).asks = true, r.text
	for _, name := range r.others() {
		if _, ok := fieldOf(f.owner, name); !ok {
			var known []string
			for _, sf := range reflect.VisibleFields(f.owner) {
				known = append(known, sf.Name)
			}
			c.errorf("rule %q names the field %q, which %s has not%s",
				r.text, name, typeText(f.owner), hintOr(name, known, "write the name of the Go field"))
		}
	}
	if r.conditional() {
		f.condition = r.text
		if f.dives > 0 {
			c.errorf("rule %q is about whether a member is there, so it cannot stand after dive", r.text)
		}
	}
	note(n.s, r.says(f.owner, n.t)+".")
}

// compare folds a comparison, and reports whether it has a keyword.
func (c *compiler) compare(n position, r rule) bool {
	by, ok := comparisons[r.tag]
	if !ok || n.isIntKey() {
		return false
	}
	s, equal := n.s, r.tag == "eq" || r.tag == "ne"
	switch sh := shapeOf(n.t, c.dir); {
	case sh == shapeInt, sh == shapeUint, sh == shapeFloat:
		c.compareNumber(n, by, r)
	case sh == shapeBool && equal:
		want, err := strconv.ParseBool(r.param)
		if err != nil {
			c.errorf("rule %q does not fit %s; write true or false", r.text, typeText(n.t))
		}
		s.Const = want == (r.tag == "eq")
	case sh == shapeString && r.tag == "eq":
		s.Const = r.param
	case sh == shapeString && r.tag == "ne":
		refuse(s, r.param)
	case sh == shapeString:
		c.compareLength(n, by, r, &s.MinLength, &s.MaxLength)
	case r.tag == "ne":
		return false
	case sh == shapeSlice, sh == shapeArray:
		c.compareLength(n, by, r, &s.MinItems, &s.MaxItems)
	case sh == shapeMap:
		c.compareLength(n, by, r, &s.MinProperties, &s.MaxProperties)
	case sh == shapeBytes && by.high && !by.low:
		if most, err := strconv.Atoi(r.param); err == nil && most >= 0 {
			s.MaxLength = encodedLen(most)
		}
		return false // base64 is coarser
	default:
		return false
	}
	return true
}

// compareNumber adds the keywords that compare a number with the parameter.
func (c *compiler) compareNumber(n position, by comparison, r rule) {
	if !holds(n.t, r.param) {
		c.errorf("rule %q does not fit %s; write a number that it can hold", r.text, typeText(n.t))
		return
	}
	s, p := n.s, json.Number(r.param)
	switch {
	case !by.low && !by.high:
		refuse(s, p)
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

// holds reports whether the text is a JSON value that t can hold.
func holds(t reflect.Type, text string) bool {
	raw := []byte(text)
	return jsonx.Valid(raw) && json.Unmarshal(raw, reflect.New(t).Interface()) == nil
}

// compareLength adds the keywords that compare a length with the parameter.
func (c *compiler) compareLength(n position, by comparison, r rule, least, most **uint64) {
	p, err := strconv.ParseInt(r.param, 0, 32)
	low, high := p, p
	if by.open {
		low, high = p+1, p-1
	}
	if err != nil || by.high && high < 0 {
		c.errorf("rule %q does not fit %s; write a length of 0 or more", r.text, typeText(n.t))
		return
	}
	if u := uint64(max(low, 0)); by.low && (*least == nil || **least < u) {
		*least = &u
	}
	if u := uint64(max(high, 0)); by.high && (*most == nil || **most > u) {
		*most = &u
	}
}

// stricter returns the larger of a and b if sign is 1, the smaller if it is -1. It ignores an empty
// a.
func stricter(a, b json.Number, sign int) json.Number {
	if a == "" || compareNumbers(string(b), string(a)) == sign {
		return b
	}
	return a
}

// refuse adds to s that a value is not allowed.
func refuse(s *jsonschema.Schema, value any) {
	not := &jsonschema.Schema{Const: value}
	if s.Not != nil {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{Not: not})
		return
	}
	s.Not = not
}

// match adds a pattern to s.
func match(s *jsonschema.Schema, pattern string) {
	switch {
	case s.Pattern == "":
		s.Pattern = pattern
	case pattern != "" && pattern != s.Pattern:
		s.AllOf = append(s.AllOf, &jsonschema.Schema{Pattern: pattern})
	}
}

// oneof folds the rule oneof.
func (c *compiler) oneof(n position, r rule) {
	values := []any{}
	for _, w := range splitWords(r.param) {
		switch v := reflect.Zero(n.t); {
		case n.t.Kind() == reflect.String:
			values = append(values, w)
		case (v.CanInt() || v.CanUint()) && holds(n.t, w):
			values = append(values, json.Number(w))
		default:
			c.errorf("rule %q: %q is not of type %s; write whole numbers that it can hold", r.text, w, typeText(n.t))
			return
		}
	}
	if len(values) == 0 {
		c.errorf("rule %q lists nothing; write the values with spaces between, such as oneof=a b", r.text)
		return
	}
	n.s.Enum = values
}

// enumRule folds the rule enum: the value is one of those that the method Values of its type
// returns, or one of the constants of its type.
func (c *compiler) enumRule(n position) {
	values := methodValues(n.t)
	if values == nil && c.o.Descriptions != nil {
		for _, e := range c.o.Descriptions.Enum(n.t) {
			values = append(values, json.RawMessage(e.JSON))
		}
	}
	for _, v := range values {
		value := any(v)
		if n.s.Type == "" { // the name of a member
			value = plainText(v)
		} else if !fitsType(n.s.Type, string(v)) {
			continue
		}
		if !slices.ContainsFunc(n.s.Enum, func(e any) bool { return jsonText(e) == jsonText(value) }) {
			n.s.Enum = append(n.s.Enum, value)
		}
	}
	if len(n.s.Enum) == 0 {
		c.errorf("rule \"enum\": the constants of %s are not known, since the program runs without its source; "+
			"run \"mcpkit gen\" in its package, give the type a method Values() []%s, or list the values with oneof", n.t, n.t.Name())
	}
}

// methodValues returns what the method Values() []T of t returns, as JSON.
func methodValues(t reflect.Type) (values []json.RawMessage) {
	m := reflect.New(t).MethodByName("Values")
	if !m.IsValid() || m.Type() != reflect.FuncOf(nil, []reflect.Type{reflect.SliceOf(t)}, false) {
		return nil
	}
	for _, v := range m.Call(nil)[0].Seq2() {
		values = append(values, json.RawMessage(jsonText(v.Interface())))
	}
	return values
}

// describeEnum adds the texts of the constants of a named type to the description of an input. They
// do not restrict the values, since constants are often units or well-known examples; with the rules
// oneof and enum, it describes the allowed values, which the schema lists.
func (c *compiler) describeEnum(n position) {
	if c.dir == forOutput || c.o.Descriptions == nil || n.s.Const != nil || n.t.PkgPath() == "" || n.t.Name() == "" {
		return
	}
	var lines, seen []string
	for _, e := range c.o.Descriptions.Enum(n.t) {
		listed := slices.ContainsFunc(n.s.Enum, func(v any) bool { return jsonText(v) == e.JSON })
		if slices.Contains(seen, e.JSON) || !fitsType(n.s.Type, e.JSON) || len(n.s.Enum) > 0 && !listed {
			continue
		}
		seen = append(seen, e.JSON)
		text := strings.Join(strings.Fields(e.Text), " ")
		switch repeats := strings.EqualFold(strings.Trim(text, ".!"), strings.Trim(e.JSON, `"`)); {
		case text != "" && !repeats:
			lines = append(lines, e.JSON+": "+text)
		case len(n.s.Enum) == 0:
			lines = append(lines, e.JSON)
		}
	}
	n.s.Description = strings.TrimSpace(n.s.Description + "\n" + strings.Join(lines, "\n"))
}

// fitsType reports whether the JSON of a constant has the type of its schema.
func fitsType(typ, raw string) bool {
	n := node{kind: kinds[typ]}
	return n.kind != 0 && jsonx.Valid([]byte(raw)) && n.takes(raw[0])
}
