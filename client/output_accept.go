package client

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// An acceptor recognizes most valid outputs directly from their JSON. If it accepts an output, the
// output is valid; otherwise the validator decides. Schemas with unusual keywords have no acceptor.
// It exists because the validator costs several times as much as the rest of a call
// (docs/adr/0029). The build tag mcpkit_plain turns it off.
type acceptor struct {
	anything bool // the schema true
	nothing  bool // the schema false

	types      typeSet // 0 for any
	enum       [][]byte
	low, high  *int64 // of numbers
	items      *acceptor
	properties []acceptedProperty
	required   int         // how many properties are required
	other      *acceptor   // for all other members; nil for any
	ref        *acceptor   // must accept too
	any        []*acceptor // at least one must accept
}

type acceptedProperty struct {
	name     []byte // with its quotes
	declared bool   // in "properties", not only in "required"
	required bool
	value    *acceptor
}

// A typeSet is a set of JSON types, one bit each.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeObject
	typeArray
	typeString
	typeInteger
	typeNumber
)

var typeNames = map[string]typeSet{
	"null": typeNull, "boolean": typeBoolean, "object": typeObject, "array": typeArray, "string": typeString,
	"integer": typeInteger, "number": typeNumber | typeInteger,
}

// Limits of acceptors.
const (
	maxAcceptorDepth = 32      // of schemas in schemas
	maxAcceptedSteps = 1 << 16 // schemas that all values of one output are checked against
	maxAcceptedDepth = 64      // of values in values, including references
	maxSmallDigits   = 15      // of integers in comparisons
	maxProperties    = 64      // of one object
)

// newAcceptor returns the acceptor of a schema that compiles, nil if the schema has an unusual
// keyword.
func newAcceptor(schema []byte) *acceptor {
	if plainOutputs {
		return nil
	}
	m := acceptorMaker{root: schema, refs: map[string]*acceptor{}}
	return m.make(schema, 0)
}

type acceptorMaker struct {
	root []byte
	refs map[string]*acceptor // those of $defs; they may be incomplete
}

func (m *acceptorMaker) make(schema []byte, depth int) *acceptor {
	a := new(acceptor)
	switch jsonx.Kind(schema) {
	case 't':
		a.anything = true
		return a
	case 'f':
		a.nothing = true
		return a
	case '{':
	default:
		return nil
	}
	if depth > maxAcceptorDepth || !m.fill(a, schema, depth) {
		return nil
	}
	return a
}

// fill reads the keywords of schema. It returns false if it does not know one.
func (m *acceptorMaker) fill(a *acceptor, schema []byte, depth int) bool {
	for name, value := range jsonx.Members(schema) {
		keyword := jsonx.String(name)
		ok := false
		switch keyword {
		case "title", "description", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly", "$defs", "definitions":
			ok = true
		case "$schema":
			ok = depth == 0 && jsonx.IsString(value, "https://json-schema.org/draft/2020-12/schema")
		case "format":
			ok = jsonx.Kind(value) == '"' // only an annotation in this draft
		case "type":
			ok = a.setTypes(value)
		case "enum":
			ok = a.setEnum(value)
		case "minimum":
			a.low, ok = smallInteger(value)
		case "maximum":
			a.high, ok = smallInteger(value)
		case "items":
			a.items = m.make(value, depth+1)
			ok = a.items != nil
		case "additionalProperties":
			a.other = m.make(value, depth+1)
			ok = a.other != nil
		case "properties":
			ok = m.setProperties(a, value, depth)
		case "required":
			ok = a.setRequired(value)
		case "$ref":
			a.ref = m.ref(jsonx.String(value), depth)
			ok = a.ref != nil
		case "anyOf":
			ok = m.setAny(a, value, depth)
		default:
			ok = strings.HasPrefix(keyword, "x-")
		}
		if !ok {
			return false
		}
	}
	return true
}

func (a *acceptor) setTypes(value []byte) bool {
	if jsonx.Kind(value) == '"' {
		a.types = typeNames[jsonx.String(value)]
		return a.types != 0
	}
	for element := range jsonx.Elements(value) {
		t := typeNames[jsonx.String(element)]
		if t == 0 {
			return false
		}
		a.types |= t
	}
	return a.types != 0
}

// setEnum reads an enum of strings without escapes.
func (a *acceptor) setEnum(value []byte) bool {
	for element := range jsonx.Elements(value) {
		if jsonx.Kind(element) != '"' || bytes.IndexByte(element, '\\') >= 0 {
			return false
		}
		a.enum = append(a.enum, element)
	}
	return a.enum != nil
}

func (m *acceptorMaker) setProperties(a *acceptor, value []byte, depth int) bool {
	for name, schema := range jsonx.Members(value) {
		p := a.property(name)
		if p == nil {
			return false
		}
		p.declared, p.value = true, m.make(schema, depth+1)
		if p.value == nil {
			return false
		}
	}
	return jsonx.Kind(value) == '{'
}

func (a *acceptor) setRequired(value []byte) bool {
	for name := range jsonx.Elements(value) {
		p := a.property(name)
		if p == nil || p.required {
			return false
		}
		p.required = true
		a.required++
	}
	return jsonx.Kind(value) == '['
}

// property returns the property name and adds it if it is new. It returns nil if the name has
// escapes or there are too many properties.
func (a *acceptor) property(name []byte) *acceptedProperty {
	for i := range a.properties {
		if bytes.Equal(a.properties[i].name, name) {
			return &a.properties[i]
		}
	}
	if len(a.properties) == maxProperties || jsonx.Kind(name) != '"' || bytes.IndexByte(name, '\\') >= 0 {
		return nil
	}
	a.properties = append(a.properties, acceptedProperty{name: name})
	return &a.properties[len(a.properties)-1]
}

func (m *acceptorMaker) setAny(a *acceptor, value []byte, depth int) bool {
	for schema := range jsonx.Elements(value) {
		one := m.make(schema, depth+1)
		if one == nil {
			return false
		}
		a.any = append(a.any, one)
	}
	return a.any != nil
}

// ref returns the acceptor of a definition of the root.
func (m *acceptorMaker) ref(ref string, depth int) *acceptor {
	if a, ok := m.refs[ref]; ok {
		return a
	}
	path, ok := strings.CutPrefix(ref, "#/")
	where, name, found := strings.Cut(path, "/")
	if !ok || !found || where != "$defs" && where != "definitions" || strings.ContainsAny(name, "/~%") {
		return nil
	}
	schema := jsonx.Member(jsonx.Member(m.root, where), name)
	if jsonx.Kind(schema) != '{' {
		return nil
	}
	a := new(acceptor)
	m.refs[ref] = a
	if depth > maxAcceptorDepth || !m.fill(a, schema, depth+1) {
		a.nothing = true // acceptors that already refer to it accept nothing
		return nil
	}
	return a
}

func smallInteger(value []byte) (*int64, bool) {
	n, ok := integer(value)
	return &n, ok
}

// integer reads an integer without fraction or exponent that a float64 represents exactly.
func integer(value []byte) (int64, bool) {
	if len(value) > maxSmallDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

// accepts reports whether content is known to be valid. Content is JSON without duplicate members.
func (a *acceptor) accepts(content []byte) bool {
	c := acceptance{b: content, steps: maxAcceptedSteps}
	end := c.value(a, jsonx.SkipSpace(content, 0), 0)
	return end >= 0 && jsonx.SkipSpace(content, end) == len(content)
}

// An acceptance checks one output in one pass. Its methods take the index where a value begins and
// return the index after it, or -1 if it is not accepted.
type acceptance struct {
	b     []byte
	steps int
}

func (c *acceptance) value(a *acceptor, i, depth int) (end int) {
	if c.steps--; c.steps < 0 || depth > maxAcceptedDepth || a.nothing || i >= len(c.b) {
		return -1
	}
	if a.ref != nil && c.value(a.ref, i, depth+1) < 0 {
		return -1
	}
	if a.any != nil && !c.oneOf(a.any, i, depth) {
		return -1
	}
	if a.anything {
		return c.plain(i)
	}
	kind := jsonx.Kind(c.b[i:])
	if a.enum != nil && kind != '"' {
		return -1 // the enum contains only strings
	}
	switch kind {
	case '{':
		if a.allows(typeObject) {
			return c.object(a, i, depth)
		}
	case '[':
		if a.allows(typeArray) {
			return c.array(a, i, depth)
		}
	case '"':
		if end = jsonx.Skip(c.b, i); a.allows(typeString) && a.text(c.b[i:end]) {
			return end
		}
	case '0':
		if end = jsonx.Skip(c.b, i); a.number(c.b[i:end]) {
			return end
		}
	case 't', 'f':
		if a.allows(typeBoolean) {
			return jsonx.Skip(c.b, i)
		}
	case 'n':
		if a.allows(typeNull) {
			return jsonx.Skip(c.b, i)
		}
	}
	return -1
}

func (c *acceptance) oneOf(any []*acceptor, i, depth int) bool {
	for _, sub := range any {
		if c.value(sub, i, depth+1) >= 0 {
			return true
		}
	}
	return false
}

func (a *acceptor) allows(t typeSet) bool { return a.types == 0 || a.types&t != 0 }

// more returns the index of the next member or element after one that ends at i, or of the closing
// bracket.
func (c *acceptance) more(i int) int {
	if i = jsonx.SkipSpace(c.b, i); i < len(c.b) && c.b[i] == ',' {
		return jsonx.SkipSpace(c.b, i+1)
	}
	return i
}

func (c *acceptance) object(a *acceptor, i, depth int) int {
	missing := a.required
	next := 0 // members usually have the order of the properties
	for i = jsonx.SkipSpace(c.b, i+1); i < len(c.b) && c.b[i] != '}'; {
		nameEnd := jsonx.Skip(c.b, i)
		name := c.b[i:nameEnd]
		i = jsonx.SkipSpace(c.b, jsonx.SkipSpace(c.b, nameEnd)+1) // after the colon
		var p *acceptedProperty
		if p, next = a.find(name, next); p == nil && (bytes.IndexByte(name, '\\') >= 0 || len(name) == 0) {
			return -1
		}
		held := a.other
		if p != nil {
			if p.required {
				missing--
			}
			if p.declared {
				held = p.value
			}
		}
		if held == nil {
			i = c.plain(i)
		} else {
			i = c.value(held, i, depth+1)
		}
		if i < 0 {
			return -1
		}
		i = c.more(i)
	}
	if missing != 0 || i >= len(c.b) {
		return -1
	}
	return i + 1
}

// find returns the property name, nil if there is none, and the index at which to start the next
// search.
func (a *acceptor) find(name []byte, from int) (*acceptedProperty, int) {
	n := len(a.properties)
	for i := range n {
		at := from + i
		if at >= n {
			at -= n
		}
		if bytes.Equal(a.properties[at].name, name) {
			return &a.properties[at], at + 1
		}
	}
	return nil, from
}

func (c *acceptance) array(a *acceptor, i, depth int) int {
	for i = jsonx.SkipSpace(c.b, i+1); i < len(c.b) && c.b[i] != ']'; {
		var end int
		if a.items == nil {
			end = c.plain(i)
		} else {
			end = c.value(a.items, i, depth+1)
		}
		if end <= i {
			return -1
		}
		i = c.more(end)
	}
	if i >= len(c.b) {
		return -1
	}
	return i + 1
}

func (a *acceptor) text(raw []byte) bool {
	return a.enum == nil || slices.ContainsFunc(a.enum, func(value []byte) bool { return bytes.Equal(value, raw) })
}

// number reports whether raw has the type and is within the limits.
func (a *acceptor) number(raw []byte) bool {
	if !plain(raw) {
		return false
	}
	whole := bytes.IndexByte(raw, '.') < 0
	if !whole && !a.allows(typeNumber) || whole && !a.allows(typeInteger) {
		return false
	}
	if a.low == nil && a.high == nil {
		return true
	}
	if n, ok := integer(raw); ok {
		return (a.low == nil || n >= *a.low) && (a.high == nil || n <= *a.high)
	}
	// Rounding preserves order: if the rounded value is strictly within exact limits, so is raw.
	f, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && (a.low == nil || f > float64(*a.low)) && (a.high == nil || f < float64(*a.high))
}

// plain skips a value of any type. It refuses numbers that the validator might refuse.
func (c *acceptance) plain(i int) int {
	if i >= len(c.b) {
		return -1
	}
	end := jsonx.Skip(c.b, i)
	if !plain(c.b[i:end]) {
		return -1
	}
	return end
}

// plain reports whether raw contains no number that the validator might refuse.
func plain(raw []byte) bool {
	switch jsonx.Kind(raw) {
	case '{':
		for _, value := range jsonx.Members(raw) {
			if !plain(value) {
				return false
			}
		}
	case '[':
		for element := range jsonx.Elements(raw) {
			if !plain(element) {
				return false
			}
		}
	case '0':
		return len(raw) <= maxNumberLength && bytes.IndexByte(raw, 'e') < 0 && bytes.IndexByte(raw, 'E') < 0
	}
	return true
}
