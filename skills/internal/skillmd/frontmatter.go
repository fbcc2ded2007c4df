package skillmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// FrontMatter returns the YAML front matter of a SKILL.md as a JSON object, with every field as the
// author wrote it. It accepts only YAML that all parsers read alike: no anchors, tags or merge
// keys, and no unquoted numbers and booleans that differ between YAML 1.1 and 1.2.
func FrontMatter(text []byte) (object json.RawMessage, err error) {
	source, err := cut(string(text))
	if err != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil { // a bug of the parser
			object, err = nil, fmt.Errorf("the front matter cannot be parsed: %v", v)
		}
	}()
	file, err := parser.ParseBytes([]byte(source), 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("the front matter is not valid YAML: %s", first)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, errors.New("the front matter is empty")
	}
	b, err := appendNode(nil, file.Docs[0].Body, 0)
	if err != nil {
		return nil, fmt.Errorf("the front matter: %w", err)
	}
	if b[0] != '{' {
		return nil, errors.New("the front matter is not a mapping of names to values")
	}
	return b, nil
}

// cut returns the text between the two lines "---".
func cut(text string) (string, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, "\r") != "---" {
		return "", errors.New(`it does not begin with front matter: a line "---", the fields name and description, and a line "---"`)
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t\r") == "---" {
			return rest[:at], nil
		}
		if at += len(line) + 1; at > MaxFrontMatter {
			return "", fmt.Errorf("the front matter is larger than %d bytes", MaxFrontMatter)
		}
	}
	return "", errors.New(`its front matter does not end with a line "---"`)
}

// maxDepth limits how deep values of front matter nest.
//
//limit:server levels of values in front matter | an error at startup: `values nest deeper than `
const maxDepth = 32

func appendNode(b []byte, node ast.Node, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: values nest deeper than %d levels", line(node), maxDepth)
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		return appendMapping(b, n.Values, depth)
	case *ast.MappingValueNode:
		return appendMapping(b, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		b = append(b, '[')
		for i, value := range n.Values {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendNode(b, value, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case *ast.LiteralNode:
		return jsonx.AppendString(b, n.Value.Value), nil
	case *ast.StringNode:
		if t := n.GetToken().Type; t != token.SingleQuoteType && t != token.DoubleQuoteType && ambiguous.MatchString(n.Value) {
			return nil, unclear(n)
		}
		return jsonx.AppendString(b, n.Value), nil
	case *ast.IntegerNode, *ast.FloatNode:
		if number := n.GetToken().Value; jsonNumber.MatchString(number) {
			return append(b, number...), nil
		}
		return nil, unclear(n)
	case *ast.BoolNode:
		if n.Value {
			return append(b, "true"...), nil
		}
		return append(b, "false"...), nil
	case *ast.NullNode:
		return append(b, "null"...), nil
	}
	return nil, fmt.Errorf("line %d: anchors, tags, merge keys, infinities and the like cannot be written as JSON", line(node))
}

func appendMapping(b []byte, values []*ast.MappingValueNode, depth int) ([]byte, error) {
	seen := map[string]bool{}
	b = append(b, '{')
	for i, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			return nil, fmt.Errorf("line %d: the name of a field is not a text; put it in quotes", line(v.Key))
		}
		if seen[key.Value] {
			return nil, fmt.Errorf("line %d: the field %q is there twice", line(key), key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonx.AppendString(b, key.Value), ':')
		var err error
		if b, err = appendNode(b, v.Value, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// unclear returns the error of a value that parsers read differently.
func unclear(n ast.Node) error {
	return fmt.Errorf("line %d: %q means different things in YAML 1.1, YAML 1.2 and JSON; put it in quotes, or write a number as in JSON, without an exponent", line(n), n.GetToken().Value)
}

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	// ambiguous matches unquoted texts that are numbers or booleans for some parsers.
	ambiguous = regexp.MustCompile(`(?i)^([-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?(e[-+]?[0-9]+)?|0[xob][0-9a-f_]+|[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?|y|n|yes|no|on|off)$`)
)

// line returns the line of the node in SKILL.md, whose first line is the "---" above the front
// matter.
func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line + 1
	}
	return 1
}
