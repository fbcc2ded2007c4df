package skillmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// FrontMatter returns the YAML front matter of a SKILL.md as a JSON object, with every field as the
// author wrote it. It accepts only YAML that all parsers read alike: no anchors, tags or merge keys,
// and no unquoted numbers and booleans that differ between YAML 1.1 and 1.2.
func FrontMatter(text []byte) (object json.RawMessage, err error) {
	source, err := cut(string(text))
	if err != nil {
		return nil, err
	}
	if strings.Count(source, "[")+strings.Count(source, "{") > maxBrackets {
		return nil, fmt.Errorf("the front matter has more than %d opening brackets", maxBrackets)
	}
	defer func() {
		if v := recover(); v != nil { // a bug of the parser
			object, err = nil, fmt.Errorf("the front matter cannot be parsed: %v", v)
		}
	}()
	var document yaml.Node
	if err := yaml.Load([]byte(source), &document); err != nil {
		return nil, fmt.Errorf("the front matter is not valid YAML: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the front matter is not a mapping of names to values")
	}
	b, err := appendNode(nil, document.Content[0], 0)
	if err != nil {
		return nil, fmt.Errorf("the front matter: %w", err)
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
const maxDepth = 32

// maxBrackets limits the characters [ and { in front matter, so that it cannot keep a parser busy.
const maxBrackets = 1000

func appendNode(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	switch {
	case depth > maxDepth:
		return nil, fmt.Errorf("%s: values nest deeper than %d levels", line(n), maxDepth)
	case n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Kind == yaml.AliasNode:
		return nil, fmt.Errorf("%s: anchors, aliases and tags cannot be written as JSON", line(n))
	}
	switch n.Kind {
	case yaml.MappingNode:
		return appendMapping(b, n, depth)
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, item := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendNode(b, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	return appendScalar(b, n)
}

func appendMapping(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	seen := map[string]bool{}
	b = append(b, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			return nil, fmt.Errorf("%s: the field %q is there twice", line(key), key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			b = append(b, ',')
		}
		name, err := appendNode(nil, key, depth+1)
		if err != nil {
			return nil, err
		}
		if name[0] != '"' || key.Value == "<<" {
			return nil, fmt.Errorf("%s: the name of a field is not a text; put it in quotes", line(key))
		}
		b = append(append(b, name...), ':')
		if b, err = appendNode(b, n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// quoted are the styles of texts that cannot be anything else.
const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func appendScalar(b []byte, n *yaml.Node) ([]byte, error) {
	switch v := n.Value; {
	case n.Style&quoted != 0:
		return jsonx.AppendString(b, v), nil
	case v == "", v == "~", v == "null", v == "Null", v == "NULL":
		return append(b, "null"...), nil
	case v == "true", v == "True", v == "TRUE":
		return append(b, "true"...), nil
	case v == "false", v == "False", v == "FALSE":
		return append(b, "false"...), nil
	case jsonNumber.MatchString(v):
		return append(b, v...), nil
	case ambiguous.MatchString(v):
		return nil, fmt.Errorf("%s: %q means different things in YAML 1.1, YAML 1.2 and JSON; put it in quotes, or write a number as in JSON, without an exponent", line(n), v)
	default:
		return jsonx.AppendString(b, v), nil
	}
}

var (
	jsonNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,15}|-?(0|[1-9][0-9]{0,15})\.[0-9]{1,16})$`)
	// ambiguous matches unquoted texts that are numbers or booleans for some parsers.
	ambiguous = regexp.MustCompile(`(?i)^([-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?(e[-+]?[0-9]+)?|[-+]?0[xob][0-9a-f_]+|[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?|[-+]?\.inf|\.nan|y|n|yes|no|on|off)$`)
)

// line says where a node is in SKILL.md, whose first line is the "---" above the front matter.
func line(n *yaml.Node) string { return fmt.Sprintf("line %d", n.Line+1) }
