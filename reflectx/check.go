package reflectx

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
)

// A node checks the values at one place of a published schema. It begins with what is known beyond the
// schema, from which the rest is compiled.
type node struct {
	t       reflect.Type // what the value is decoded into; nil if unknown
	secret  bool
	null    bool   // null is allowed, too; what the value is otherwise is the first of anyOf
	struct_ bool   // a struct by value, in which absent members have defaults
	asks    string // a rule for it or in it that only the validator knows

	compiled bool
	kind     byte // '{', '[', '"', 't' for bools, 'i' for integers, '0' for other numbers, 'n', or 0 for any
	never    bool // the schema false
	want     string
	hides    bool // a secret may be somewhere in it

	rules []func(raw []byte) bool
	texts []func(text string) bool // the rules of strings

	items *node // nil if elements are not checked
	props []prop
	index map[string]int
	extra *node // of other members; nil if they are not checked
	keys  *node // of the names of other members; nil if they are not checked
}

// A prop is a member of an object.
type prop struct {
	name     string
	node     *node
	required bool
	fill     json.RawMessage // what stands in for an absent member; nil for nothing
}

// A checker checks one value. It does not stop at the first mistake, and writes the value as the
// decoder takes it: absent members have their defaults, null ones that are not required are left
// out, and integers such as 1.0 and 1e2 have neither fraction nor exponent.
type checker struct {
	out     []byte
	lenient []Leniency
	mended  int // values that leniency has changed
	err     ArgumentError
	path    []string // from the root to the value being checked
	secret  int      // secret places around it
}

func (k *checker) enter(name string) { k.path = append(k.path, name) }
func (k *checker) leave()            { k.path = k.path[:len(k.path)-1] }
func (k *checker) wrong() int        { return len(k.err.Violations) + k.err.more }

// violate records that the value being checked is wrong. raw is nil for an absent member.
func (k *checker) violate(n *node, raw []byte, want string) {
	k.err.add(Violation{Pointer: pointerTo(k.path), Got: n.got(raw, k.secret > 0), Want: want})
}

// got returns a value as error messages show it. If a secret is or may be in it, they only show its
// kind.
func (n *node) got(raw []byte, secret bool) string {
	switch {
	case raw == nil:
		return ""
	case secret || n.secret:
		return "***"
	case n.hides:
		return kindNouns[jsonx.Kind(raw)]
	}
	return shorten(raw)
}

var kindNouns = map[byte]string{
	'{': "an object", '[': "an array", '"': "a string", '0': "a number", 't': "true", 'f': "false", 'n': "null",
}

// takes reports whether a value that begins with the byte c may have the type of n.
func (n *node) takes(c byte) bool {
	if n.kind == 0 || n.null && c == 'n' {
		return true
	}
	switch n.kind {
	case 'i', '0':
		return c == '-' || c >= '0' && c <= '9'
	case 't':
		return c == 't' || c == 'f'
	}
	return c == n.kind
}

// value checks the value raw, which has no white space around it.
func (k *checker) value(n *node, raw []byte) {
	if k.lenient != nil && !n.takes(raw[0]) {
		raw = k.mend(n, raw)
	}
	if n.never || !n.takes(raw[0]) {
		k.violate(n, raw, n.want)
		k.out = append(k.out, raw...)
		return
	}
	if n.null && raw[0] == 'n' {
		k.out = append(k.out, raw...)
		return
	}
	if n.secret {
		k.secret++
		defer func() { k.secret-- }()
	}
	known := k.wrong()
	switch {
	case raw[0] == '{' && n.extra != nil:
		k.object(n, raw)
	case raw[0] == '[' && n.items != nil:
		k.array(n, raw)
	case n.kind == 'i':
		digits, ok := integer(raw)
		if !ok {
			k.violate(n, raw, n.want)
			return
		}
		raw = digits
		fallthrough
	default:
		k.out = append(k.out, raw...)
	}
	if k.wrong() > known {
		return
	}
	if !n.obeys(raw) {
		k.violate(n, raw, n.want)
	} else if !n.holds(raw) {
		k.violate(n, raw, n.want+"; must fit in "+n.t.String())
	}
}

// holds reports whether the Go type can hold a number.
func (n *node) holds(raw []byte) bool {
	if n.t == nil || n.kind != 'i' && n.kind != '0' {
		return true
	}
	var err error
	switch n.t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err = strconv.ParseInt(string(raw), 10, n.t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		_, err = strconv.ParseUint(string(raw), 10, n.t.Bits())
	case reflect.Float32, reflect.Float64:
		_, err = strconv.ParseFloat(string(raw), n.t.Bits())
	}
	return err == nil
}

// obeys reports whether a value of the right type satisfies the rules of n.
func (n *node) obeys(raw []byte) bool {
	for _, rule := range n.rules {
		if !rule(raw) {
			return false
		}
	}
	if len(n.texts) == 0 || raw[0] != '"' {
		return true
	}
	text := jsonx.String(raw)
	return !slices.ContainsFunc(n.texts, func(rule func(string) bool) bool { return !rule(text) })
}

// valid reports whether the schema of n accepts raw.
func (n *node) valid(raw []byte) bool {
	var k checker
	k.value(n, raw)
	return k.wrong() == 0
}

// integer returns an integer without fraction and exponent.
func integer(raw []byte) (digits []byte, ok bool) {
	if !bytes.ContainsAny(raw, ".eE") && string(raw) != "-0" {
		return raw, true
	}
	x, ok := ratOf(string(raw))
	if !ok || !x.IsInt() {
		return nil, false
	}
	return x.Num().Append(nil, 10), true
}

// ratOf returns a JSON number as a rational number. It refuses numbers beyond float64, with which it
// would take too long to calculate.
func ratOf(number string) (*big.Rat, bool) {
	if x, err := strconv.ParseFloat(number, 64); err != nil || x == 0 && strings.ContainsAny(number, "123456789") {
		return nil, false
	}
	return new(big.Rat).SetString(number)
}

// object checks an object: the members that are there, then those that are not.
func (k *checker) object(n *node, raw []byte) {
	const given, null = 1, 2
	seen := make([]byte, len(n.props))
	k.out = append(k.out, '{')
	for name, value := range jsonx.Members(raw) {
		at, text := n.find(name)
		if at < 0 {
			text = n.token(text, k.secret > 0)
		}
		k.enter(text)
		switch {
		case at >= 0 && seen[at] != 0:
			k.violate(n.props[at].node, value, "the name only once")
		case at >= 0 && value[0] == 'n' && !n.props[at].required && !n.props[at].node.takes('n'): // counts as absent
			seen[at] = null
			k.accept(LenientNull)
		case at >= 0:
			seen[at] = given
			k.member(n.props[at].node, name, value)
		case n.extra.never && k.accept(LenientUnknown):
		case n.extra.never: // perhaps a misspelt secret
			k.out = jsonx.AppendMember(k.out, name, value)
			k.err.add(Violation{Pointer: pointerTo(k.path), Got: n.got(value, k.secret > 0), Hint: n.unknownHint(text)})
		case n.keys != nil && !n.keys.valid(name):
			k.violate(n, name, n.keys.want)
		default:
			k.member(n.extra, name, value)
		}
		k.leave()
	}
	for at, p := range n.props {
		switch {
		case seen[at] == given:
		case p.required:
			k.enter(p.name)
			k.violate(p.node, nil, p.node.want)
			k.leave()
		case p.fill != nil:
			k.out = append(append(jsonx.AppendString(jsonx.AppendComma(k.out), p.name), ':'), p.fill...)
		}
	}
	k.out = append(k.out, '}')
}

// token returns a name as pointers in errors show it: where secrets are, a name that the schema does not
// have may be one.
func (n *node) token(name string, secret bool) string {
	if _, known := n.index[name]; !known && n.items == nil && (secret || n.hides) && naming.Nearest(name, slices.Collect(maps.Keys(n.index))) == "" {
		return "***"
	}
	return name
}

func (k *checker) member(n *node, name, value []byte) {
	k.out = append(append(jsonx.AppendComma(k.out), name...), ':')
	k.value(n, value)
}

// find returns the index of the member with the raw name, or -1, and its name.
func (n *node) find(raw []byte) (at int, name string) {
	if at, ok := n.index[string(raw[1:len(raw)-1])]; ok {
		return at, n.props[at].name
	}
	name = jsonx.String(raw)
	if at, ok := n.index[name]; ok { // written with escapes
		return at, name
	}
	return -1, name
}

func (k *checker) array(n *node, raw []byte) {
	k.out = append(k.out, '[')
	i := 0
	for element := range jsonx.Elements(raw) {
		if i > 0 {
			k.out = append(k.out, ',')
		}
		k.enter(strconv.Itoa(i))
		k.value(n.items, element)
		k.leave()
		i++
	}
	k.out = append(k.out, ']')
}

// kinds are the values of the keyword type.
var kinds = map[string]byte{
	"": 0, "object": '{', "array": '[', "string": '"', "boolean": 't', "integer": 'i', "number": '0', "null": 'n',
}

// compile returns the node of a schema.
func (c *compiler) compile(s *jsonschema.Schema) *node {
	s = c.definition(s)
	n := c.node(s)
	if n.compiled {
		return n
	}
	n.compiled, n.hides, n.want = true, n.secret, wantOf(s, "")
	if n.null {
		n.hides = n.hides || s.AnyOf[0].Ref != "" && c.secrets
		s = c.definition(s.AnyOf[0])
	}
	if isFalse(s) {
		n.never, n.want = true, "no value"
		return n
	}
	lists := len(s.PrefixItems) + len(s.PatternProperties) + len(s.DependentSchemas) + len(s.DependentRequired)
	if lists > 0 || s.If != nil || s.Contains != nil || s.DynamicRef != "" {
		c.errorf("the schema has one of the keywords if, contains, $dynamicRef, prefixItems, patternProperties, " +
			"dependentSchemas and dependentRequired, which are not enforced here; leave it out")
	}
	var ok bool
	if n.kind, ok = kinds[s.Type]; !ok {
		c.errorf("the schema has the unknown type %q", s.Type)
	}
	n.compileLimits(s)
	if err := n.compileText(s); err != nil {
		c.errorf("the pattern cannot be read: %v", err)
	}
	c.compileCombinators(n, s)
	if s.Items != nil {
		n.items = c.inside(n, s.Items)
	}
	if s.Properties != nil || s.AdditionalProperties != nil || s.PropertyNames != nil {
		c.compileObject(n, s)
	}
	return n
}

// definition returns what s refers to, or s itself.
func (c *compiler) definition(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Ref == "" {
		return s
	}
	def := c.done[strings.TrimPrefix(s.Ref, "#/$defs/")]
	if def == nil {
		c.errorf("the schema refers to %s, which it does not contain", s.Ref)
		return &jsonschema.Schema{}
	}
	return def
}

// inside compiles a schema within that of n.
func (c *compiler) inside(n *node, s *jsonschema.Schema) *node {
	inner := c.compile(s)
	n.hides = n.hides || inner.hides || s.Ref != "" && c.secrets // what it refers to may not be compiled yet
	return inner
}

// compileLimits adds the rules of numbers, and of values of any type.
func (n *node) compileLimits(s *jsonschema.Schema) {
	rule := func(ok func(raw []byte) bool) { n.rules = append(n.rules, ok) }
	for _, limit := range []struct {
		of json.Number
		ok func(order int) bool
	}{
		{s.Minimum, func(order int) bool { return order >= 0 }},
		{s.Maximum, func(order int) bool { return order <= 0 }},
		{s.ExclusiveMinimum, func(order int) bool { return order > 0 }},
		{s.ExclusiveMaximum, func(order int) bool { return order < 0 }},
	} {
		if limit.of != "" {
			rule(func(raw []byte) bool {
				return jsonx.Kind(raw) != '0' || limit.ok(compareNumbers(string(raw), string(limit.of)))
			})
		}
	}
	if step, ok := ratOf(string(s.MultipleOf)); ok {
		rule(func(raw []byte) bool {
			x, ok := ratOf(string(raw))
			return jsonx.Kind(raw) != '0' || ok && x.Quo(x, step).IsInt()
		})
	}
	values := s.Enum
	if s.Const != nil {
		values = []any{s.Const}
	}
	if values != nil {
		texts := make([][]byte, len(values))
		for i, v := range values {
			texts[i] = []byte(jsonText(v))
		}
		rule(func(raw []byte) bool {
			return slices.ContainsFunc(texts, func(v []byte) bool { return equalJSON(v, raw) })
		})
	}
	between := func(kind byte, low, high *uint64) {
		if low != nil || high != nil {
			rule(func(raw []byte) bool { return raw[0] != kind || inRange(length(raw), low, high) })
		}
	}
	between('[', s.MinItems, s.MaxItems)
	between('{', s.MinProperties, s.MaxProperties)
	if s.UniqueItems {
		rule(func(raw []byte) bool {
			seen := map[string]bool{}
			for element := range jsonx.Elements(raw) {
				seen[canonical(element)] = true
			}
			return raw[0] != '[' || len(seen) == length(raw)
		})
	}
}

// compareNumbers compares two JSON numbers, exactly if both are integers of 64 bits.
func compareNumbers(a, b string) int {
	if !strings.ContainsAny(a, ".eE") && !strings.ContainsAny(b, ".eE") {
		x, err := strconv.ParseInt(a, 10, 64)
		y, err2 := strconv.ParseInt(b, 10, 64)
		if err == nil && err2 == nil {
			return cmp.Compare(x, y)
		}
	}
	f, _ := strconv.ParseFloat(a, 64)
	g, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(f, g)
}

// length returns the number of elements or members.
func length(raw []byte) (n int) {
	for range jsonx.Elements(raw) {
		n++
	}
	for range jsonx.Members(raw) {
		n++
	}
	return n
}

func inRange(n int, low, high *uint64) bool {
	return (low == nil || uint64(n) >= *low) && (high == nil || uint64(n) <= *high)
}

// equalJSON compares two values as JSON Schema does.
func equalJSON(a, b []byte) bool {
	switch kind := jsonx.Kind(a); {
	case kind != jsonx.Kind(b):
		return false
	case kind == '"':
		return jsonx.String(a) == jsonx.String(b)
	case kind == '0':
		return compareNumbers(string(a), string(b)) == 0
	}
	return canonical(a) == canonical(b)
}

func canonical(raw []byte) string {
	out, err := jsonx.Canonical(bytes.Clone(raw))
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// compileText adds the rules of strings.
func (n *node) compileText(s *jsonschema.Schema) error {
	if low, high := s.MinLength, s.MaxLength; low != nil || high != nil { // not s, which would stay in memory
		n.texts = append(n.texts, func(text string) bool { return inRange(utf8.RuneCountInString(text), low, high) })
	}
	if format, ok := formats[s.Format]; ok {
		n.texts = append(n.texts, format.valid)
	}
	if s.ContentEncoding == "base64" {
		n.texts = append(n.texts, isBase64)
	} else if s.Pattern != "" {
		re, err := regexp.Compile(s.Pattern)
		if err != nil {
			return err
		}
		n.texts = append(n.texts, re.MatchString)
	}
	return nil
}

func isBase64(s string) bool {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	return err == nil && base64.StdEncoding.EncodedLen(len(b)) == len(s) // the decoder skips line breaks
}

func (c *compiler) compileCombinators(n *node, s *jsonschema.Schema) {
	matches := func(list []*jsonschema.Schema, ok func(n int) bool) {
		if len(list) == 0 {
			return
		}
		nodes := make([]*node, len(list))
		for i, one := range list {
			nodes[i] = c.inside(n, one)
		}
		n.rules = append(n.rules, func(raw []byte) bool {
			count := 0
			for _, one := range nodes {
				if one.valid(raw) {
					count++
				}
			}
			return ok(count)
		})
	}
	matches(s.AllOf, func(count int) bool { return count == len(s.AllOf) })
	matches(s.AnyOf, func(count int) bool { return count > 0 })
	matches(s.OneOf, func(count int) bool { return count == 1 })
	if s.Not != nil {
		matches([]*jsonschema.Schema{s.Not}, func(count int) bool { return count == 0 })
	}
}

func (c *compiler) compileObject(n *node, s *jsonschema.Schema) {
	n.extra, n.index = &node{}, map[string]int{}
	if s.AdditionalProperties != nil {
		n.extra = c.inside(n, s.AdditionalProperties)
	}
	if s.PropertyNames != nil {
		n.keys = c.compile(s.PropertyNames)
		n.keys.want = wantOf(s.PropertyNames, "a name")
	}
	for m := s.Properties.Oldest(); m != nil; m = m.Next() {
		p := prop{name: m.Key, node: c.inside(n, m.Value), required: slices.Contains(s.Required, m.Key)}
		p.fill = c.filled(m.Value, p.node)
		n.index[p.name] = len(n.props)
		n.props = append(n.props, p)
	}
}

// filled returns what stands in for an absent member: its default, and for a struct by value the
// object with the defaults in it.
func (c *compiler) filled(s *jsonschema.Schema, n *node) json.RawMessage {
	raw := []byte("{}")
	if s.Default != nil {
		raw = []byte(jsonText(s.Default))
	} else if !c.node(s).struct_ {
		return nil
	}
	k := checker{}
	k.value(n, raw)
	if s.Default == nil && string(k.out) == "{}" {
		return nil
	}
	return k.out
}

// CompileSchema returns the check of a schema that only has keywords that schemas of Go types have.
// Package rawschema has all keywords.
func CompileSchema(schema json.RawMessage) (RawSchema, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	c := newCompiler("", InputOptions{}, forInput)
	c.done = s.Definitions
	root := c.compile(&s)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return root, nil
}

// Validate implements [RawSchema].
func (n *node) Validate(value json.RawMessage) error {
	k := checker{}
	k.value(n, bytes.TrimSpace(value))
	if k.wrong() > 0 {
		return &k.err
	}
	return nil
}
