package uritemplate

import (
	"fmt"
	"strings"
)

// Match does not walk the pieces of a template but its elements: literals, variables, and options,
// which mark the elements after them as optional. A query of the usual form has no elements, since
// its parameters may be in any order.

type elementKind uint8

const (
	literalElement elementKind = iota
	varElement
	optionElement
)

type element struct {
	kind elementKind
	text string // of a literal
	skip int    // of an option: how many elements may be absent

	// Of a variable:
	spec
	class  class
	min    int
	sure   bool // it ends at the first byte outside its class, so there is only one place to try
	afterE bool // it follows "=", or is empty if there is none: ;name
	slash  bool // the value may contain slashes
}

// A class is a set of bytes that an encoded variable may contain.
type class uint8

const (
	classSegment class = 1 << iota // all but / ? #
	classPath                      // all but ? #
	classParam                     // all but / ? # ; &
	classAll
)

var classes = func() (table [256]class) {
	for c := range table {
		table[c] = classAll
		if c != '?' && c != '#' {
			table[c] |= classPath
			if c != '/' {
				table[c] |= classSegment
				if c != ';' && c != '&' {
					table[c] |= classParam
				}
			}
		}
	}
	return table
}()

// A param is one parameter of the query.
type param struct {
	name     string // decoded
	literal  string // the whole parameter, if it has no variable
	spec     spec
	variable bool
	required bool // it is written out in the template: ?q={q}
}

// compile prepares the template for Match.
func (t *Template) compile() {
	t.dotdot = climbs(t.literals())
	head, query, tail := t.split()
	if params, ok := parseQuery(query); ok {
		t.query, t.hasQuery = params, true
		t.path, t.fragment = elements(head), elements(tail)
	} else {
		t.path = elements(t.pieces)
	}
	if len(t.path) > 0 && t.path[0].kind == literalElement {
		t.prefix = t.path[0].text
	}
}

// literals returns the template's own text, with a placeholder for each expression.
func (t *Template) literals() string {
	var b strings.Builder
	for _, piece := range t.pieces {
		if piece.op == nil {
			b.WriteString(piece.literal)
		} else {
			b.WriteByte('x')
		}
	}
	return b.String()
}

// split splits the pieces into the part before the query, the query without its '?', and the
// fragment.
func (t *Template) split() (head, query, tail []piece) {
	part := &head
	for _, piece := range t.pieces {
		if piece.op != nil {
			switch {
			case piece.op.char == '#' && part != &tail:
				part = &tail
			case piece.op.char == '?' && part == &head:
				part = &query
			}
			*part = append(*part, piece)
			continue
		}
		text := piece.literal
		if part == &head {
			if i := strings.IndexAny(text, "?#"); i >= 0 {
				head = appendLiteral(head, text[:i])
				text, part = text[i:], &tail
				if text[0] == '?' {
					text, part = text[1:], &query
				}
			}
		}
		if part == &query {
			if i := strings.IndexByte(text, '#'); i >= 0 {
				query = appendLiteral(query, text[:i])
				text, part = text[i:], &tail
			}
		}
		*part = appendLiteral(*part, text)
	}
	return head, query, tail
}

func appendLiteral(list []piece, text string) []piece {
	if text == "" {
		return list
	}
	return append(list, piece{literal: text})
}

// parseQuery parses a query whose parts are name=value, name={variable}, {?names} and {&names}, at
// least one of them with a variable. It returns false for any other query.
func parseQuery(pieces []piece) (params []param, ok bool) {
	var text string // of the parameter being read
	var value *spec // its variable
	open := true    // a parameter may begin or go on here
	flush := func() bool {
		defer func() { text, value, open = "", nil, true }()
		switch name, found := strings.CutSuffix(text, "="); {
		case value == nil:
			if text != "" {
				params = append(params, param{literal: text, required: true})
			}
			return true
		case !found || name == "" || strings.Contains(name, "="):
			return false
		default:
			decoded, ok := decode(name)
			params = append(params, param{name: decoded, spec: *value, variable: true, required: true})
			return ok
		}
	}
	for i, piece := range pieces {
		switch {
		case piece.op == nil:
			for n, part := range strings.Split(piece.literal, "&") {
				if n > 0 && !flush() {
					return nil, false
				}
				if part != "" && (!open || value != nil) {
					return nil, false
				}
				text += part
			}
		case piece.op.char == '&' || piece.op.char == '?' && i == 0:
			if !flush() {
				return nil, false
			}
			for _, s := range piece.specs {
				decoded, _ := decode(s.name)
				params = append(params, param{name: decoded, spec: s, variable: true})
			}
			open = false // a literal has to begin with '&'
		case (piece.op.char == 0 || piece.op.char == '+') && len(piece.specs) == 1 && value == nil && open:
			value = &piece.specs[0]
		default:
			return nil, false
		}
	}
	if !flush() {
		return nil, false
	}
	for _, p := range params {
		ok = ok || p.variable
	}
	return params, ok && len(params) <= 64
}

// elements converts pieces to the elements that are matched in order.
func elements(pieces []piece) []element {
	var list []element
	for _, p := range pieces {
		switch {
		case p.op == nil:
			list = append(list, element{text: p.literal})
		case p.op.char == 0 || p.op.char == '+':
			list = appendList(list, p)
		case p.op.char == '#':
			inner := appendList([]element{{text: "#"}}, p)
			list = append(list, element{kind: optionElement, skip: len(inner)})
			list = append(list, inner...)
		default:
			lead := p.op.first
			for _, s := range p.specs {
				list = append(list, element{kind: optionElement, skip: 2}, optionText(p.op, lead, s), optionVar(p.op, s))
				lead = p.op.sep
			}
		}
	}
	// If the end of one variable is found by trying, later variables may begin anywhere, and each
	// would search for its end again and again.
	tried := false
	for i := range list {
		if list[i].kind == varElement {
			list[i].sure = !tried && isSure(list, i)
			tried = !list[i].sure
		}
	}
	return list
}

// appendList appends the variables of {x,y}, {+x,y} or {#x,y}.
func appendList(list []element, p piece) []element {
	for i, s := range p.specs {
		if i > 0 {
			list = append(list, element{text: ","})
		}
		e := element{kind: varElement, spec: s, class: classSegment, min: 1}
		switch p.op.char {
		case '+':
			e.class, e.slash = classPath, true
		case '#':
			e.class, e.slash, e.min = classAll, true, 0
		}
		list = append(list, e)
	}
	return list
}

// optionText returns the literal before a variable of {.x}, {/x}, {;x}, {?x} or {&x}.
func optionText(op *operator, lead string, s spec) element {
	switch {
	case op.char == ';':
		lead += s.name
	case op.named:
		lead += s.name + "="
	}
	return element{text: lead}
}

func optionVar(op *operator, s spec) element {
	e := element{kind: varElement, spec: s, class: classSegment, min: 1}
	switch {
	case s.explode:
		e.class, e.min, e.slash = classPath, 0, true
	case op.char == ';':
		e.class, e.min, e.afterE = classParam, 0, true
	case op.named:
		e.class, e.min, e.slash = classParam, 0, true
	}
	return e
}

// isSure reports whether everything that may follow element i begins with a byte that the variable
// cannot contain.
func isSure(list []element, i int) bool {
	for j := i + 1; j < len(list); {
		switch e := list[j]; e.kind {
		case literalElement:
			return classes[e.text[0]]&list[i].class == 0
		case varElement:
			return false
		case optionElement:
			if classes[list[j+1].text[0]]&list[i].class != 0 {
				return false
			}
			j += 1 + e.skip
		}
	}
	return true
}

// Matchable returns an error if Match would have to guess which value belongs to which variable.
// Such a template can be expanded, but cannot name resources.
func (t *Template) Matchable() error {
	for _, list := range [][]element{t.path, t.fragment} {
		for i := range list {
			a := list[i]
			if a.kind != varElement || i+1 == len(list) {
				continue
			}
			if b := list[i+1]; b.kind == varElement {
				return fmt.Errorf("uri template %q: nothing divides the variables %q and %q; put a character between them", t.text, a.name, b.name)
			}
		}
	}
	for _, p := range t.pieces {
		if !t.hasQuery && p.op != nil && (p.op.char == '?' || p.op.char == '&') {
			return fmt.Errorf("uri template %q: {%c%s} is not in a query; write {?a,b} at the end of the path, then {&c} for more",
				t.text, p.op.char, p.specs[0].name)
		}
	}
	return nil
}
