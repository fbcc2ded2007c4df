package reflectx

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A node checks the values at one place of a published schema, from which it is compiled.
type node struct {
	kind   byte // '{', '[', '"', 't', 'i' for integers, '0' for other numbers, 'n', or 0 for any
	any    bool // nothing is checked
	never  bool // the schema false
	want   string
	wide   string       // want with the limits of a 64-bit integer
	t      reflect.Type // nil if unknown
	bits   int          // how t holds numbers
	secret bool
	hides  bool // a secret is somewhere in it

	enum                   []json.RawMessage
	min, max, above, below *number
	step                   string // multipleOf
	low, high              int    // limits of a length; high is -1 without one
	texts                  []func(string) bool
	unique                 bool

	items  *node
	prefix []*node
	props  []prop
	names  []string
	index  map[string]int // nil if there are few props
	extra  *node          // of other members
	keys   *node          // of the names of other members
	needs  map[string][]string

	all, anyOf, oneOf []*node
	not               *node
}

// A prop is a member of an object.
type prop struct {
	name     string
	node     *node
	required bool
	fill     json.RawMessage // what stands in for an absent member; nil for nothing
}

// fewProps is the most members that are searched one by one.
const fewProps = 8

// A checker checks one value. It does not stop at the first mistake, and collects edits that make
// the value ready to be decoded.
type checker struct {
	ctx      context.Context
	b        []byte // valid JSON
	repair   bool
	repaired func(context.Context)
	err      ArgumentError
	edits    []edit
	path     []step // from the root to the value being checked
	room     [8]step
	secret   int // secret places around it
}

// A step is one part of a JSON pointer: a member name, or an index if name is "".
type step struct {
	name  string
	index int
}

// An edit replaces b[from:to]. A closing edit is at the end of an object, and drops a comma before it.
type edit struct {
	from, to int
	text     []byte
	closing  bool
}

// edited returns the value with the edits.
func (k *checker) edited() []byte {
	if len(k.edits) == 0 {
		return k.b
	}
	out := make([]byte, 0, len(k.b)+64)
	at := 0
	for _, e := range k.edits {
		out = append(out, k.b[at:e.from]...)
		if e.closing {
			out = bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(","))
			if len(e.text) > 0 {
				out = jsonx.AppendComma(out)
			}
		}
		out = append(out, e.text...)
		at = e.to
	}
	return append(out, k.b[at:]...)
}

func (k *checker) pointer() string {
	var b []byte
	for _, s := range k.path {
		b = append(b, '/')
		if s.name == "" && s.index >= 0 {
			b = strconv.AppendInt(b, int64(s.index), 10)
			continue
		}
		b = appendPointer(b, s.name)
	}
	return string(b)
}

func (k *checker) push(name string) { k.path = append(k.path, step{name: name, index: -1}) }
func (k *checker) pushIndex(i int)  { k.path = append(k.path, step{index: i}) }
func (k *checker) pop()             { k.path = k.path[:len(k.path)-1] }

// violate records that the value being checked is wrong. raw is nil for an absent member.
func (k *checker) violate(n *node, raw []byte, want string) {
	k.err.add(Violation{Pointer: k.pointer(), Got: n.got(raw, k.secret > 0), Want: want})
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

var kindNouns = map[byte]string{'{': "an object", '[': "an array", '"': "a string", '0': "a number", 't': "true", 'f': "false", 'n': "null"}

// takes reports whether a value that begins with the byte c may have the type of n.
func (n *node) takes(c byte) bool {
	switch n.kind {
	case 0:
		return true
	case 'i', '0':
		return c == '-' || c >= '0' && c <= '9'
	case 't':
		return c == 't' || c == 'f'
	}
	return c == n.kind
}

// value checks the value that begins at i, and returns the index after it.
func (k *checker) value(n *node, i int) (end int) {
	if n.never || !n.takes(k.b[i]) {
		if end, ok := k.mend(n, i); ok {
			return end
		}
		end = jsonx.Skip(k.b, i)
		k.violate(n, k.b[i:end], n.want)
		return end
	}
	known := len(k.err.Violations) + k.err.more
	if n.secret {
		k.secret++
	}
	switch c := k.b[i]; {
	case n.any:
		end = jsonx.Skip(k.b, i)
		k.anything(n, k.b[i:end])
	case c == '{':
		end = k.object(n, i)
	case c == '[':
		end = k.array(n, i)
	default:
		end = jsonx.Skip(k.b, i)
		switch {
		case c == '"':
			k.text(n, k.b[i:end])
		case n.takes('0'):
			k.number(n, i, end)
		}
	}
	if n.secret {
		k.secret--
	}
	if raw := k.b[i:end]; len(k.err.Violations)+k.err.more == known && !n.fits(raw) {
		k.violate(n, raw, n.want)
	}
	return end
}

// anything checks a value without a schema: duplicates are refused because two readers of the same
// bytes could choose different ones.
func (k *checker) anything(n *node, raw []byte) {
	if kind := jsonx.Kind(raw); (kind == '{' || kind == '[') && !jsonx.Valid(raw) {
		k.violate(n, raw, "a value without duplicate names")
	}
}

// fits checks the keywords that hold for values of several types.
func (n *node) fits(raw []byte) bool {
	if n.enum != nil && !slices.ContainsFunc(n.enum, func(e json.RawMessage) bool { return equalJSON(e, raw) }) {
		return false
	}
	for _, one := range n.all {
		if !one.valid(raw) {
			return false
		}
	}
	if n.anyOf != nil && !slices.ContainsFunc(n.anyOf, func(one *node) bool { return one.valid(raw) }) {
		return false
	}
	matches := 0
	for _, one := range n.oneOf {
		if one.valid(raw) {
			matches++
		}
	}
	return (n.oneOf == nil || matches == 1) && (n.not == nil || !n.not.valid(raw))
}

// valid reports whether the schema of n accepts raw.
func (n *node) valid(raw []byte) bool {
	k := checker{b: raw}
	k.value(n, 0)
	return len(k.err.Violations) == 0
}

// equalJSON compares two values as JSON Schema does.
func equalJSON(a, b []byte) bool {
	if jsonx.Kind(a) != jsonx.Kind(b) {
		return false
	}
	switch jsonx.Kind(a) {
	case '"':
		return jsonx.String(a) == jsonx.String(b)
	case '0':
		x := parseNumber(a)
		return x.compare(b) == 0
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

func (k *checker) text(n *node, raw []byte) {
	if n.low == 0 && n.high < 0 && len(n.texts) == 0 {
		return
	}
	s := jsonx.String(raw)
	ok := n.high < 0 && n.low == 0 || n.within(utf8.RuneCountInString(s))
	for _, check := range n.texts {
		ok = ok && check(s)
	}
	if !ok {
		k.violate(n, raw, n.want)
	}
}

// within reports whether a length has the limits of n.
func (n *node) within(length int) bool { return length >= n.low && (n.high < 0 || length <= n.high) }

// number checks a number, and writes integers such as 1.0 and 1e2 without fraction and exponent.
func (k *checker) number(n *node, i, end int) {
	raw := k.b[i:end]
	want := n.want
	if n.kind == 'i' && (bytes.ContainsAny(raw, ".eE") || string(raw) == "-0") {
		digits, ok := integral(string(raw), 4096)
		if !ok {
			if integer, known := ratOf(string(raw)); known && integer.IsInt() && n.wide != "" {
				want = n.wide
			}
			k.violate(n, raw, want)
			return
		}
		raw = []byte(digits)
		k.edits = append(k.edits, edit{from: i, to: end, text: raw})
	}
	held := n.holds(raw)
	if !held && n.wide != "" {
		want = n.wide
	}
	if !held || n.min != nil && n.min.compare(raw) > 0 || n.max != nil && n.max.compare(raw) < 0 ||
		n.above != nil && n.above.compare(raw) >= 0 || n.below != nil && n.below.compare(raw) <= 0 ||
		n.step != "" && !isMultiple(string(raw), n.step) {
		k.violate(n, k.b[i:end], want)
	}
}

// holds reports whether the Go type of n can hold the number.
func (n *node) holds(raw []byte) bool {
	var err error
	switch n.bits {
	case 0:
	case signed:
		_, err = strconv.ParseInt(string(raw), 10, n.t.Bits())
	case unsigned:
		_, err = strconv.ParseUint(string(raw), 10, n.t.Bits())
	case floating:
		_, err = strconv.ParseFloat(string(raw), n.t.Bits())
	}
	return err == nil
}

// How a Go type holds numbers.
const (
	signed = iota + 1
	unsigned
	floating
)

func isMultiple(raw, step string) bool {
	x, ok := ratOf(raw)
	y, _ := ratOf(step)
	return ok && x.Quo(x, y).IsInt()
}

// A number is a limit.
type number struct {
	i     int64
	exact bool // i is the number
	f     float64
}

func parseNumber(b []byte) number {
	i, err := strconv.ParseInt(string(b), 10, 64)
	f, _ := strconv.ParseFloat(string(b), 64)
	return number{i, err == nil, f}
}

// compare compares the number with raw.
func (x *number) compare(raw []byte) int {
	y := parseNumber(raw)
	switch {
	case x.exact && y.exact && x.i == y.i, (!x.exact || !y.exact) && x.f == y.f:
		return 0
	case x.exact && y.exact && x.i < y.i, (!x.exact || !y.exact) && x.f < y.f:
		return -1
	}
	return 1
}

// object checks an object.
func (k *checker) object(n *node, i int) (end int) {
	b := k.b
	var room [fewProps]bool
	seen := room[:]
	if len(n.props) > fewProps {
		seen = make([]bool, len(n.props))
	}
	start, count, cut := i, 0, false
	var others map[string]bool
	for i = jsonx.SkipSpace(b, i+1); i < len(b) && b[i] != '}'; {
		nameEnd := jsonx.Skip(b, i)
		value := jsonx.SkipSpace(b, jsonx.SkipSpace(b, nameEnd)+1)
		at := n.find(b[i+1 : nameEnd-1])
		name := ""
		if at >= 0 {
			name = n.props[at].name
		} else if name = jsonx.String(b[i:nameEnd]); bytes.IndexByte(b[i:nameEnd], '\\') >= 0 {
			at = n.find([]byte(name))
		}
		var next int
		drop := false
		k.push(name)
		switch {
		case at >= 0 && seen[at], others[name]:
			next = jsonx.Skip(b, value)
			k.twice(n, at, b[value:next])
		case at < 0:
			if others == nil {
				others = map[string]bool{}
			}
			others[name] = true
			next = k.other(n, name, b[i:nameEnd], value)
		default:
			seen[at] = true
			p := &n.props[at]
			if drop = b[value] == 'n' && !p.required && !p.node.takes('n'); drop {
				next = jsonx.Skip(b, value)
				seen[at] = false // null counts as absent
				if others == nil {
					others = map[string]bool{}
				}
				others[name] = true
			} else {
				next = k.value(p.node, value)
			}
		}
		k.pop()
		count++
		from := i
		if i = jsonx.SkipSpace(b, next); i < len(b) && b[i] == ',' {
			i = jsonx.SkipSpace(b, i+1)
		}
		if drop {
			k.edits = append(k.edits, edit{from: from, to: i})
			cut = true
		}
	}
	end = min(i+1, len(b))
	k.absent(n, seen, i, cut)
	if !n.within(count) {
		k.violate(n, b[start:end], n.want)
	}
	return end
}

// find returns the index of the member, or -1.
func (n *node) find(name []byte) int {
	if n.index != nil {
		if at, ok := n.index[string(name)]; ok {
			return at
		}
		return -1
	}
	for at := range n.props {
		if n.props[at].name == string(name) {
			return at
		}
	}
	return -1
}

// twice records a duplicate member.
func (k *checker) twice(n *node, at int, raw []byte) {
	inner := n.extra
	if at >= 0 {
		inner = n.props[at].node
	}
	if inner == nil {
		inner = n
	}
	k.err.add(Violation{Pointer: k.pointer(), Got: inner.got(raw, k.secret > 0) + " a second time", Want: "the name only once"})
}

// other checks a member that is not one of the props, or records that it is unknown.
func (k *checker) other(n *node, name string, rawName []byte, value int) int {
	if n.extra.never {
		next := jsonx.Skip(k.b, value)
		// Perhaps a misspelt secret.
		k.err.add(Violation{Pointer: k.pointer(), Got: n.got(k.b[value:next], k.secret > 0), Hint: unknownHint(name, n.names)})
		return next
	}
	if n.keys != nil && !n.keys.valid(rawName) {
		k.violate(n, rawName, n.keys.want)
		return jsonx.Skip(k.b, value)
	}
	return k.value(n.extra, value)
}

// absent records the required members that are absent, and fills in the others that have a default.
// end is the index of the closing brace; cut reports that members were removed.
func (k *checker) absent(n *node, seen []bool, end int, cut bool) {
	var fill []byte
	for at := range n.props {
		p := &n.props[at]
		if seen[at] {
			continue
		}
		if p.required {
			k.push(p.name)
			k.violate(p.node, nil, p.node.want)
			k.pop()
		} else if p.fill != nil {
			if fill != nil {
				fill = append(fill, ',')
			}
			fill = append(append(jsonx.AppendString(fill, p.name), ':'), p.fill...)
		}
	}
	for name, needed := range n.needs {
		if at := n.find([]byte(name)); at >= 0 && seen[at] {
			for _, other := range needed {
				if at := n.find([]byte(other)); at >= 0 && !seen[at] {
					k.push(other)
					k.violate(n.props[at].node, nil, n.props[at].node.want)
					k.pop()
				}
			}
		}
	}
	if cut || fill != nil {
		k.edits = append(k.edits, edit{from: end, to: end, text: fill, closing: true})
	}
}

// array checks an array.
func (k *checker) array(n *node, i int) (end int) {
	b, start, count := k.b, i, 0
	var elements map[string]bool
	equal := false
	for i = jsonx.SkipSpace(b, i+1); i < len(b) && b[i] != ']'; count++ {
		inner := n.items
		if count < len(n.prefix) {
			inner = n.prefix[count]
		}
		var next int
		if inner == nil {
			next = jsonx.Skip(b, i)
		} else {
			k.pushIndex(count)
			next = k.value(inner, i)
			k.pop()
		}
		if n.unique {
			if elements == nil {
				elements = map[string]bool{}
			}
			element := canonical(b[i:next])
			equal = equal || elements[element]
			elements[element] = true
		}
		if i = jsonx.SkipSpace(b, next); i < len(b) && b[i] == ',' {
			i = jsonx.SkipSpace(b, i+1)
		}
	}
	end = min(i+1, len(b))
	if equal || !n.within(count) {
		k.violate(n, b[start:end], n.want)
	}
	return end
}

// kinds are the values of the keyword type.
var kinds = map[string]byte{"": 0, "object": '{', "array": '[', "string": '"', "boolean": 't', "integer": 'i', "number": '0', "null": 'n'}

// compile returns the node of a schema. isKey means that it is the schema of the names of a map.
func (c *compiler) compile(s *jsonschema.Schema, isKey bool) *node {
	if s.Ref != "" {
		return c.reference(s)
	}
	if n := c.nodes[s]; n != nil {
		return n
	}
	n := &node{high: -1}
	c.nodes[s] = n
	if reflect.DeepEqual(s, jsonschema.FalseSchema) {
		n.never, n.want = true, "no value"
		return n
	}
	h := c.hints[s]
	if h == nil {
		h = &hint{}
	}
	var ok bool
	if n.kind, ok = kinds[s.Type]; !ok {
		c.errorf("the schema has the unknown type %q", s.Type)
	}
	n.t, n.secret, n.hides, n.want = h.t, h.secret, h.secret, wantOf(s, h, isKey)
	n.wide = wideWant(s, h)
	if h.t != nil {
		switch v := reflect.Zero(h.t); {
		case v.CanInt():
			n.bits = signed
		case v.CanUint():
			n.bits = unsigned
		case v.CanFloat():
			n.bits = floating
		}
	}
	c.compileScalar(n, s)
	c.compileObject(n, s)
	for _, unknown := range []struct {
		name  string
		there bool
	}{
		{"if", s.If != nil}, {"dependentSchemas", s.DependentSchemas != nil}, {"contains", s.Contains != nil},
		{"patternProperties", s.PatternProperties != nil}, {"$dynamicRef", s.DynamicRef != ""},
	} {
		if unknown.there {
			c.errorf("the schema has the keyword %q, which is not enforced here; leave it out", unknown.name)
		}
	}
	if s.Items != nil {
		n.items = c.inside(n, s.Items)
	}
	for _, list := range []struct {
		from []*jsonschema.Schema
		to   *[]*node
	}{{s.PrefixItems, &n.prefix}, {s.AllOf, &n.all}, {s.AnyOf, &n.anyOf}, {s.OneOf, &n.oneOf}} {
		for _, one := range list.from {
			*list.to = append(*list.to, c.inside(n, one))
		}
	}
	if s.Not != nil {
		n.not = c.inside(n, s.Not)
	}
	bare := *s
	bare.Title, bare.Description, bare.Default, bare.Examples, bare.Extras = "", "", nil, nil, nil
	bare.Deprecated, bare.ReadOnly, bare.WriteOnly = false, false, false
	n.any = reflect.DeepEqual(bare, jsonschema.Schema{}) || s == jsonschema.TrueSchema
	return n
}

// reference returns the node of a schema in $defs.
func (c *compiler) reference(s *jsonschema.Schema) *node {
	name, _ := strings.CutPrefix(s.Ref, "#/$defs/")
	def := c.done[name]
	if def == nil {
		c.errorf("the schema refers to %s, which it does not contain", s.Ref)
		return &node{any: true}
	}
	return c.compile(def, false)
}

// inside compiles a schema within that of n.
func (c *compiler) inside(n *node, s *jsonschema.Schema) *node {
	inner := c.compile(s, false)
	n.hides = n.hides || inner.hides
	return inner
}

func (c *compiler) compileScalar(n *node, s *jsonschema.Schema) {
	for _, v := range s.Enum {
		n.enum = append(n.enum, json.RawMessage(jsonText(v)))
	}
	if s.Const != nil {
		n.enum = []json.RawMessage{json.RawMessage(jsonText(s.Const))}
	}
	for _, limit := range []struct {
		from json.Number
		to   **number
	}{{s.Minimum, &n.min}, {s.Maximum, &n.max}, {s.ExclusiveMinimum, &n.above}, {s.ExclusiveMaximum, &n.below}} {
		if limit.from != "" {
			x := parseNumber([]byte(limit.from))
			*limit.to = &x
		}
	}
	n.step, n.unique = string(s.MultipleOf), s.UniqueItems
	low, high := s.MinLength, s.MaxLength
	switch n.kind {
	case '[':
		low, high = s.MinItems, s.MaxItems
	case '{':
		low, high = s.MinProperties, s.MaxProperties
	}
	if low != nil {
		n.low = int(*low)
	}
	if high != nil {
		n.high = int(*high)
	}
	switch {
	case s.ContentEncoding == "base64":
		n.texts = append(n.texts, isBase64)
	case s.Pattern != "":
		re, err := compiled(s.Pattern)
		if err != nil {
			c.errorf("the pattern cannot be read: %v", err)
			return
		}
		n.texts = append(n.texts, re.MatchString)
	}
	if valid := formats[s.Format]; valid != nil {
		n.texts = append(n.texts, valid)
	}
}

func (c *compiler) compileObject(n *node, s *jsonschema.Schema) {
	n.extra = &node{any: true, high: -1}
	if s.AdditionalProperties != nil {
		n.extra = c.inside(n, s.AdditionalProperties)
	}
	if s.PropertyNames != nil {
		n.keys = c.compile(s.PropertyNames, true)
	}
	n.needs = s.DependentRequired
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		n.props = append(n.props, prop{name: p.Key, node: c.inside(n, p.Value), required: slices.Contains(s.Required, p.Key)})
		n.names = append(n.names, p.Key)
	}
	if len(n.props) > fewProps {
		n.index = make(map[string]int, len(n.props))
		for i, name := range n.names {
			n.index[name] = i
		}
	}
}

// fill sets what stands in for the absent members of n: their defaults, and for a struct by value
// the object with the defaults in it.
func (c *compiler) fill(s *jsonschema.Schema, done map[*jsonschema.Schema]bool) {
	if done[s] {
		return
	}
	done[s] = true
	for _, inner := range slices.Concat([]*jsonschema.Schema{s.Items, s.AdditionalProperties}, s.PrefixItems) {
		if inner != nil {
			c.fill(inner, done)
		}
	}
	n := c.nodes[s]
	if s.Properties == nil || n == nil {
		return
	}
	at := 0
	for p := s.Properties.Oldest(); p != nil; p, at = p.Next(), at+1 {
		c.fill(p.Value, done)
		raw := []byte("{}")
		if p.Value.Default != nil {
			raw = []byte(jsonText(p.Value.Default))
		} else if h := c.hints[p.Value]; h == nil || !h.struct_ {
			continue
		}
		k := checker{b: raw}
		k.value(n.props[at].node, 0)
		if p.Value.Default != nil || len(k.edits) > 0 {
			n.props[at].fill = k.edited()
		}
	}
}

// wideWant returns want with the limits of a 64-bit integer, which are not in its schema, or "".
func wideWant(s *jsonschema.Schema, h *hint) string {
	if h.t == nil || s.Type != "integer" || s.Const != nil || len(s.Enum) > 0 {
		return ""
	}
	limited := *s
	switch h.t.Kind() {
	case reflect.Int, reflect.Int64:
		if limited.Minimum == "" && limited.ExclusiveMinimum == "" {
			limited.Minimum = "-9223372036854775808"
		}
		if limited.Maximum == "" && limited.ExclusiveMaximum == "" {
			limited.Maximum = "9223372036854775807"
		}
	case reflect.Uint, reflect.Uint64:
		if limited.Maximum == "" && limited.ExclusiveMaximum == "" {
			limited.Maximum = "18446744073709551615"
		}
	default:
		return ""
	}
	return wantOf(&limited, h, false)
}

// integral writes a JSON number without point and exponent, if it is an integer of at most limit
// digits. Its work is bounded by the length of the number and by limit, whatever the exponent.
func integral(number string, limit int) (digits string, ok bool) {
	unsigned := strings.TrimPrefix(number, "-")
	mantissa, exponent := unsigned, 0
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		var err error
		mantissa = unsigned[:i]
		if exponent, err = strconv.Atoi(unsigned[i+1:]); err != nil {
			exponent = limit + len(number) + 1
			if strings.HasPrefix(unsigned[i+1:], "-") {
				exponent = -exponent
			}
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits = strings.TrimRight(all, "0")
	if digits == "" {
		return "0", true
	}
	if exponent > limit+len(number) || exponent < -len(number) {
		return "", false
	}
	zeros := len(all) - len(digits) - len(fraction) + exponent // after the digits
	if zeros < 0 || len(digits)+zeros > limit {
		return "", false
	}
	return number[:len(number)-len(unsigned)] + digits + strings.Repeat("0", zeros), true
}

func isBase64(s string) bool {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	return err == nil && base64.StdEncoding.EncodedLen(len(b)) == len(s) // the decoder skips line breaks
}

// regexps holds the compiled patterns, which many types share.
var regexps sync.Map

func compiled(pattern string) (*regexp.Regexp, error) {
	if re, ok := regexps.Load(pattern); ok {
		return re.(*regexp.Regexp), nil
	}
	re, err := regexp.Compile(pattern)
	if err == nil {
		regexps.Store(pattern, re)
	}
	return re, err
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
	root := c.compile(&s, false)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return checkOnly{root}, nil
}

type checkOnly struct{ root *node }

// Validate implements [RawSchema].
func (s checkOnly) Validate(value json.RawMessage) error {
	k := checker{b: value}
	k.value(s.root, jsonx.SkipSpace(value, 0))
	if len(k.err.Violations) > 0 {
		return &k.err
	}
	return nil
}
