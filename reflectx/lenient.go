package reflectx

import (
	"bytes"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A Leniency is one kind of mistakes in arguments that are accepted, since they have only one meaning.
type Leniency string

// The kinds of mistakes.
const (
	LenientUnknown Leniency = "unknown" // names that the schema does not allow are ignored
	LenientNull    Leniency = "null"    // null, where it is not allowed and nothing is required, is absent
	LenientScalars Leniency = "scalars" // a number or a bool may be in a string: "5" for 5
	LenientLists   Leniency = "lists"   // one value may stand for a list
	LenientJSON    Leniency = "json"    // an object or an array may be JSON in a string
)

// Leniencies are all kinds of mistakes.
var Leniencies = []Leniency{LenientUnknown, LenientNull, LenientScalars, LenientLists, LenientJSON}

// accept reports whether a kind of mistakes is accepted, and counts one.
func (k *checker) accept(kind Leniency) bool {
	accepted := slices.Contains(k.lenient, kind)
	if accepted {
		k.mended++
	}
	return accepted
}

// mend returns what is meant by a value of the wrong type, if that is accepted.
func (k *checker) mend(n *node, raw []byte) []byte {
	if raw[0] == '"' {
		kind := LenientScalars
		if n.kind == '{' || n.kind == '[' {
			kind = LenientJSON
		}
		inner := bytes.TrimSpace([]byte(jsonx.String(raw)))
		if jsonx.Valid(inner) && inner[0] != 'n' && n.takes(inner[0]) && k.accept(kind) {
			return inner
		}
	}
	if n.kind == '[' && raw[0] != 'n' && (n.items == nil || n.items.takes(raw[0])) && k.accept(LenientLists) {
		return slices.Concat([]byte("["), raw, []byte("]"))
	}
	return raw
}

// outline returns the types and names of a schema written by hand, by which arguments are mended before
// it judges them. Alternatives and references stay open: what they are about is not mended.
func outline(schema []byte, lenient []Leniency) *node {
	n := &node{never: string(schema) == "false", extra: &node{}, index: map[string]int{}}
	n.kind = kinds[jsonx.String(jsonx.Member(schema, "type"))]
	if n.kind == 'i' {
		n.kind = '0' // 1.0 stays as it is
	}
	if items := jsonx.Member(schema, "items"); items != nil && jsonx.Member(schema, "prefixItems") == nil {
		n.items = outline(items, lenient)
	}
	if extra := jsonx.Member(schema, "additionalProperties"); extra != nil && jsonx.Member(schema, "patternProperties") == nil {
		n.extra = outline(extra, lenient)
	}
	for name, property := range jsonx.Members(jsonx.Member(schema, "properties")) {
		n.index[jsonx.String(name)] = len(n.props)
		isKept := !slices.Contains(lenient, LenientNull) // null is
		n.props = append(n.props, prop{name: jsonx.String(name), node: outline(property, lenient), required: isKept})
	}
	return n
}

// compareByHand records the names that only one of a schema written by hand and the type n has, and secrets
// of the type that logs would show, since they go by the schema.
func (c *compiler) compareByHand(in *Input) {
	hand, n := in.outline, in.root
	for _, p := range hand.props {
		if _, ok := n.index[p.name]; !ok {
			c.errorf("the schema has the property %q, for which %s has no field; add one, or take a map[string]any",
				p.name, typeText(n.t))
		}
	}
	for _, p := range n.props {
		_, known := hand.index[p.name]
		text := jsonx.Member(jsonx.Member(c.o.SchemaText, "properties"), p.name)
		switch {
		case !known && hand.extra.never:
			c.errorf("the schema does not allow the argument %q, for which %s has a field; drop one of the two", p.name, typeText(n.t))
		case p.node.hides && !bytes.Contains(text, []byte(`"writeOnly"`)):
			c.errorf("the argument %q is or has a secret, which the schema does not say; write \"writeOnly\": true there", p.name)
		}
	}
}
