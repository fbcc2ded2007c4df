package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth is how deep lists and maps may be nested.
const maxDepth = 64

// parse reads YAML, which includes JSON, and returns its value, or nil for an empty file.
func parse(name string, data []byte) (root ast.Node, err error) {
	if err := checkDepth(name, data); err != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil { // a bug of the parser
			root, err = nil, &Error{File: name, Msg: "it is not valid YAML"}
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
		return nil, errorAt(name, file.Docs[1], "there are several documents; one is read")
	}
	if _, comments := file.Docs[0].Body.(*ast.CommentGroupNode); comments {
		return nil, nil
	}
	v := visitor{file: name}
	ast.Walk(&v, file.Docs[0].Body)
	return file.Docs[0].Body, v.err
}

// checkDepth refuses files that would make the parser recurse too deep: many brackets and dashes on
// one line.
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
		if depth > maxDepth || dashes > 512 {
			return &Error{File: name, Line: line, Msg: "values are nested too deep"}
		}
	}
	return nil
}

// A visitor finds the first YAML feature that is not supported here.
type visitor struct {
	file string
	err  error
}

// Visit implements [ast.Visitor].
func (v *visitor) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		v.err = errorAt(v.file, n, "anchors and aliases are not supported; write the value itself")
	case *ast.TagNode:
		v.err = errorAt(v.file, n, "YAML tags are not supported; write only the value")
	}
	if v.err != nil {
		return nil
	}
	return v
}

// syntaxError returns the parser's message without the lines of the file that it quotes, since they
// may contain secrets.
func syntaxError(name string, err error) error {
	var at interface {
		GetMessage() string
		GetToken() *token.Token
	}
	e := &Error{File: name, Msg: "it is not valid YAML"}
	if errors.As(err, &at) {
		e.Msg, _, _ = strings.Cut(at.GetMessage(), "\n")
		if t := at.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	return e
}

func errorAt(name string, n ast.Node, format string, args ...any) error {
	p := placeOf(n)
	return &Error{File: name, Line: p.line, Column: p.column, Msg: fmt.Sprintf(format, args...)}
}

// A place is the source of a value: a line and a column of the file, both from 1, or a variable.
type place struct {
	line, column int
	variable     string
}

func placeOf(n ast.Node) place {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return place{line: t.Position.Line, column: t.Position.Column}
	}
	return place{}
}

// members returns the members of a map in order. ok reports whether n is a map.
func members(n ast.Node) (list []*ast.MappingValueNode, ok bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// scalar returns the text of a single value, and whether it is quoted. ok reports whether n is a
// single value.
func scalar(n ast.Node) (text string, quoted, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, n.Token.Type != token.StringType, true
	case *ast.LiteralNode:
		return n.Value.Value, true, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, false, true
	}
	return "", false, false
}

// kindOf describes n for errors.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "empty"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a map"
	}
	return "a single value"
}
