package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A node is a value of a file.
type node struct {
	line   int
	kind   kind
	text   string // of a scalar
	quoted bool
	items  []*node  // of a list
	fields []member // of a map, in order
}

type member struct {
	key   string
	line  int
	value *node
}

type kind int

const (
	scalar kind = iota
	null
	list
	object
)

func (k kind) String() string {
	return [...]string{"a single value", "nothing", "a list", "a map"}[k]
}

// maxDepth bounds how deep values lie in each other.
const maxDepth = 32

// parse reads YAML, of which JSON is a part. The node of an empty file is nil.
func parse(name string, data []byte) (root *node, err error) {
	if err := checkDepth(name, data); err != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil { // of the parser, which has bugs like any other
			root, err = nil, &Error{File: name, Msg: "it is no YAML that can be read"}
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	switch {
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, nil
	case len(file.Docs) > 1:
		return nil, &Error{File: name, Line: lineOf(file.Docs[1]), Msg: "there are several documents; one is read"}
	}
	if _, comments := file.Docs[0].Body.(*ast.CommentGroupNode); comments {
		return nil, nil
	}
	b := builder{name: name}
	return b.build(file.Docs[0].Body, 0)
}

// checkDepth refuses what would have the parser recurse too deep: brackets and dashes on one line.
func checkDepth(name string, data []byte) error {
	depth, line, dashes := 0, 1, 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '-', '?':
			dashes++
		case '\n':
			line, dashes = line+1, 0
		}
		if depth > 2*maxDepth || dashes > 512 {
			return &Error{File: name, Line: line, Msg: "values are nested too deep"}
		}
	}
	return nil
}

// syntaxError takes what the parser says without the lines that it shows: they may hold what nobody is to see.
func syntaxError(name string, err error) error {
	var at interface {
		GetMessage() string
		GetToken() *token.Token
	}
	e := &Error{File: name, Msg: "it is no YAML that can be read"}
	if errors.As(err, &at) {
		e.Msg, _, _ = strings.Cut(at.GetMessage(), "\n")
		if t := at.GetToken(); t != nil && t.Position != nil {
			e.Line = t.Position.Line
		}
	}
	return e
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

type builder struct{ name string }

func (b *builder) fail(n ast.Node, format string, args ...any) error {
	return &Error{File: b.name, Line: lineOf(n), Msg: fmt.Sprintf(format, args...)}
}

func (b *builder) build(n ast.Node, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, b.fail(n, "values are nested too deep")
	}
	out := &node{line: lineOf(n)}
	switch n := n.(type) {
	case *ast.NullNode:
		out.kind = null
	case *ast.StringNode:
		out.text, out.quoted = n.Value, n.Token.Type != token.StringType
	case *ast.LiteralNode:
		out.text, out.quoted = n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.text = n.GetToken().Value
	case *ast.SequenceNode:
		out.kind = list
		for _, v := range n.Values {
			item, err := b.build(v, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
	case *ast.MappingNode:
		out.kind = object
		for _, v := range n.Values {
			if err := b.member(out, v, depth); err != nil {
				return nil, err
			}
		}
	case *ast.MappingValueNode:
		out.kind = object
		return out, b.member(out, n, depth)
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, b.fail(n, "anchors and aliases are not taken; write the value itself")
	case *ast.TagNode:
		return nil, b.fail(n, "tags of YAML are not taken; write the value alone")
	default:
		return nil, b.fail(n, "this is not taken; write keys with values, lists and maps")
	}
	return out, nil
}

func (b *builder) member(out *node, v *ast.MappingValueNode, depth int) error {
	var key string
	switch k := ast.Node(v.Key).(type) {
	case *ast.StringNode:
		key = k.Value
	case *ast.IntegerNode, *ast.BoolNode, *ast.NullNode, *ast.FloatNode:
		key = k.GetToken().Value
	default:
		return b.fail(v.Key, "this is no key")
	}
	for _, m := range out.fields {
		if m.key == key {
			return b.fail(v.Key, "the key %q is there twice, on line %d too", key, m.line)
		}
	}
	value, err := b.build(v.Value, depth+1)
	if err != nil {
		return err
	}
	out.fields = append(out.fields, member{key, lineOf(v.Key), value})
	return nil
}
