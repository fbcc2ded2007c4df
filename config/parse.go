package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v4"
)

// parse reads YAML, which includes JSON, and returns its value, or nil for an empty file.
func parse(name string, data []byte) (*yaml.Node, error) {
	if json.Valid(data) {
		data = escapes.ReplaceAllFunc(data, whole)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var document, next yaml.Node
	switch err := loader.Load(&document); {
	case err == io.EOF:
		return nil, nil
	case err != nil:
		return nil, syntaxError(name, err)
	}
	switch err := loader.Load(&next); {
	case err == nil:
		return nil, &Error{File: name, Line: next.Line, Column: next.Column, Msg: "there are several documents; one is read"}
	case err != io.EOF:
		return nil, syntaxError(name, err)
	}
	return document.Content[0], nil
}

// escapes matches the escapes in JSON. It matches the two halves of a character together.
var escapes = regexp.MustCompile(`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|.)`)

// whole returns two halves of a character as one escape of YAML, which has no halves, and other
// escapes as they are.
func whole(escape []byte) []byte {
	var char string
	if len(escape) == 2 || json.Unmarshal(fmt.Appendf(nil, `"%s"`, escape), &char) != nil {
		return escape
	}
	return fmt.Appendf(nil, `\U%08X`, []rune(char)[0])
}

// syntaxError returns the parser's message. It quotes nothing of the file, which may contain secrets.
func syntaxError(name string, err error) error {
	e := &Error{File: name, Msg: "it is not valid YAML"}
	if bad, ok := errors.AsType[*yaml.LoadError](err); ok {
		e.Line, e.Column, e.Msg = bad.Mark.Line, bad.Mark.Column, e.Msg+": "+bad.Message
	}
	return e
}

// unsupported returns what a value has that this package does not support, or "".
func unsupported(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return "anchors and aliases are not supported; write the value itself"
	case n.Style&yaml.TaggedStyle != 0:
		return "YAML tags are not supported; write only the value"
	}
	return ""
}

// A place is the source of a value: a line and a column of the file, both from 1, or a variable.
type place struct {
	line, column int
	variable     string
}

func placeOf(n *yaml.Node) place { return place{line: n.Line, column: n.Column} }

// isNull reports whether n is empty, or null.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// isQuoted reports whether n is a text that cannot be anything else.
func isQuoted(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// kindOf describes n for errors.
func kindOf(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "empty"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a map"
	}
	return "a single value"
}
