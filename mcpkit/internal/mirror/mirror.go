// Package mirror compares the headers of a request with the members of its body that they mirror
// (2026-07-28).
package mirror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Check compares a header with the value in the body that it mirrors.
func Check(header transport.Header, name, value string) *jsonrpc.Error {
	lines := header[name]
	if len(lines) == 0 {
		return protocol.HeaderMismatch("the header %s is missing; it has to say %q, as the body does", name, value)
	}
	got, err := protocol.DecodeHeader(lines[0])
	if err != nil {
		return protocol.HeaderMismatch("the header %s: %v", name, err)
	}
	if len(lines) > 1 || got != value {
		return protocol.HeaderMismatch("the header %s says %q but the body says %q", name, got, value)
	}
	return nil
}

// A Param is a property of a tool's input that a header mirrors (x-mcp-header, 2026-07-28).
type Param struct {
	header string   // canonical: "Mcp-Param-Region"
	path   []string // of the property, from the root
}

// Params returns the mirrored properties of an input schema. Properties that the specification does
// not allow are an error, since clients have to ignore such a tool.
func Params(schema []byte) ([]Param, error) {
	if !bytes.Contains(schema, []byte("x-mcp-header")) {
		return nil, nil
	}
	var found []Param
	if err := collectHeaders(schema, nil, &found); err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for _, h := range found {
		path := strings.Join(h.path, ".")
		if other, ok := seen[h.header]; ok {
			return nil, fmt.Errorf("x-mcp-header: properties %q and %q are mirrored by the same header %s", other, path, h.header)
		}
		seen[h.header] = path
	}
	return found, nil
}

func collectHeaders(schema []byte, path []string, found *[]Param) error {
	for name, property := range jsonx.Members(jsonx.Member(schema, "properties")) {
		if jsonx.Kind(property) != '{' {
			continue
		}
		at := append(path[:len(path):len(path)], jsonx.String(name))
		if raw := jsonx.Member(property, "x-mcp-header"); raw != nil {
			h, err := newParam(raw, property, at)
			if err != nil {
				return err
			}
			*found = append(*found, h)
		}
		if err := collectHeaders(property, at, found); err != nil {
			return err
		}
	}
	return nil
}

func newParam(raw, property []byte, path []string) (Param, error) {
	name, at := jsonx.String(raw), strings.Join(path, ".")
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }) {
		return Param{}, fmt.Errorf("x-mcp-header: property %q wants the header name %s; a name is letters, digits and '-'", at, raw)
	}
	kind := jsonx.String(jsonx.Member(property, "type"))
	switch kind {
	case "string", "integer", "boolean":
		return Param{textproto.CanonicalMIMEHeaderKey(protocol.HeaderParamPrefix + name), path}, nil
	}
	return Param{}, fmt.Errorf("x-mcp-header: property %q is of type %q; only string, integer and boolean can be mirrored", at, kind)
}

// isTokenChar reports whether r may be part of a header name (RFC 9110, section 5.6.2).
func isTokenChar(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// CheckParams compares headers with the arguments that they mirror.
func CheckParams(header transport.Header, params []Param, args json.RawMessage) *jsonrpc.Error {
	for _, p := range params {
		value := []byte(args)
		for _, name := range p.path {
			value = jsonx.Member(value, name)
		}
		if value == nil || jsonx.Kind(value) == 'n' {
			continue // it need not be mirrored
		}
		if err := p.check(header, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *Param) check(header transport.Header, value []byte) *jsonrpc.Error {
	lines := header[p.header]
	at := strings.Join(p.path, ".")
	switch {
	case len(lines) == 0:
		return protocol.HeaderMismatch("the header %s is missing; it mirrors argument %q", p.header, at)
	case len(lines) > 1 || !protocol.ParamHeaderMatches(lines[0], value):
		return protocol.HeaderMismatch("the header %s says %q, which is not argument %q", p.header, lines[0], at)
	}
	return nil
}
