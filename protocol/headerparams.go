package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A HeaderParam is an argument of a tool that a header of the HTTP request mirrors (2026-07-28).
type HeaderParam struct {
	Header  string   // canonical: "Mcp-Param-Region"
	Path    []string // to the argument, from the root
	Integer bool
}

// Of returns the argument, nil if it is not there.
func (p *HeaderParam) Of(arguments []byte) []byte {
	for _, member := range p.Path {
		arguments = jsonx.Member(arguments, member)
	}
	return arguments
}

// Limits of schemas that are searched for headers.
const (
	maxSchemaDepth  = 64
	maxParamHeaders = 100
)

// HeaderParams returns the headers that an input schema declares (2026-07-28,
// basic/transports/streamable-http, "Custom Headers"), or an error if a declaration is invalid. It
// does not follow $ref.
func HeaderParams(schema []byte) ([]HeaderParam, error) {
	if !bytes.Contains(schema, []byte("x-mcp-header")) {
		return nil, nil
	}
	s := headerSearch{names: map[string]struct{}{}}
	if err := s.object(schema, nil, true); err != nil {
		return nil, err
	}
	return s.found, nil
}

type headerSearch struct {
	found []HeaderParam
	names map[string]struct{} // in lower case
}

// object searches one schema. Reachable says that the path from the root consists of properties
// only.
func (s *headerSearch) object(schema []byte, path []string, reachable bool) error {
	if len(path) > maxSchemaDepth {
		return errors.New("the schema is nested too deeply")
	}
	for name, value := range jsonx.Members(schema) {
		switch keyword := jsonx.String(name); keyword {
		case "x-mcp-header":
			if err := s.header(schema, value, path, reachable); err != nil {
				return err
			}
		case "properties":
			for property, sub := range jsonx.Members(value) {
				next := append(path[:len(path):len(path)], jsonx.String(property))
				if err := s.object(sub, next, reachable); err != nil {
					return err
				}
			}
		case "const", "default", "enum", "examples":
			// Values, not schemas.
		default:
			if err := s.hidden(keyword, value, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// hidden searches the schemas inside another keyword, where headers are not allowed.
func (s *headerSearch) hidden(keyword string, value []byte, path []string) error {
	next := append(path[:len(path):len(path)], keyword)
	switch jsonx.Kind(value) {
	case '[':
		for sub := range jsonx.Elements(value) {
			if err := s.object(sub, next, false); err != nil {
				return err
			}
		}
	case '{':
		switch keyword {
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			for _, sub := range jsonx.Members(value) {
				if err := s.object(sub, next, false); err != nil {
					return err
				}
			}
		default:
			return s.object(value, next, false)
		}
	}
	return nil
}

// header adds one declared header.
func (s *headerSearch) header(schema, value []byte, path []string, reachable bool) error {
	name := jsonx.String(value)
	at := strings.Join(path, ".")
	typ := jsonx.String(jsonx.Member(schema, "type"))
	switch {
	case jsonx.Kind(value) != '"' || name == "":
		return fmt.Errorf("x-mcp-header of %q is not a valid header name", at)
	case !isToken(name):
		return fmt.Errorf("x-mcp-header of %q is %.60q, which is not a valid header name", at, name)
	case !reachable || len(path) == 0:
		return fmt.Errorf("x-mcp-header %q is at %q, which is not a property of the arguments", name, at)
	case typ != "string" && typ != "integer" && typ != "boolean":
		return fmt.Errorf("x-mcp-header %q is at %q, which is not a string, integer or boolean", name, at)
	case len(s.found) == maxParamHeaders:
		return fmt.Errorf("the schema declares more than %d headers", maxParamHeaders)
	}
	lower := strings.ToLower(name)
	if _, ok := s.names[lower]; ok {
		return fmt.Errorf("x-mcp-header %q is declared twice", name)
	}
	s.names[lower] = struct{}{}
	s.found = append(s.found, HeaderParam{textproto.CanonicalMIMEHeaderKey(HeaderParamPrefix + name), path, typ == "integer"})
	return nil
}

// isToken reports whether s is a valid header name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 0x80 || !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// CheckHeader compares a header, whose name is canonical, with the value of the body that it mirrors.
func CheckHeader(header map[string][]string, name, value string) *jsonrpc.Error {
	lines := header[name]
	if len(lines) == 0 {
		return HeaderMismatch("the header %s is missing; it has to say %q, as the body does", name, value)
	}
	got, err := DecodeHeader(lines[0])
	if err != nil {
		return HeaderMismatch("the header %s: %v", name, err)
	}
	if len(lines) > 1 || got != value {
		return HeaderMismatch("the header %s says %q but the body says %q", name, got, value)
	}
	return nil
}

// Check compares the header with the argument that it mirrors. An argument that is absent or null need
// not be mirrored.
func (p *HeaderParam) Check(header map[string][]string, arguments []byte) *jsonrpc.Error {
	value, lines, at := p.Of(arguments), header[p.Header], strings.Join(p.Path, ".")
	switch {
	case value == nil || jsonx.Kind(value) == 'n':
		return nil
	case len(lines) == 0:
		return HeaderMismatch("the header %s is missing; it mirrors argument %q", p.Header, at)
	case len(lines) > 1 || !ParamHeaderMatches(lines[0], value):
		return HeaderMismatch("the header %s says %q, which is not argument %q", p.Header, lines[0], at)
	}
	return nil
}
