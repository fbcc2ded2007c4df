package mcpkit

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// setToolWire prepares the JSON of a tool's definition in each version.
func (t *tool) setToolWire() {
	t.setWire(func(v protocol.Version) (any, error) {
		if t.raw != nil {
			return rawTool(t.raw, t.key, v), nil
		}
		def, err := t.define(v)
		def.Name, def.OutputSchema = t.key, outputSchemaFor(v, def.OutputSchema)
		return def, err
	})
}

// setPromptWire prepares the JSON of a prompt's definition.
func (p *prompt) setPromptWire() {
	p.setWire(func(protocol.Version) (any, error) {
		if p.raw != nil {
			return replaceMember(p.raw, "name", p.key), nil
		}
		return p.def, nil
	})
}

// rawTool returns the definition of another server's tool for version v, under a new name.
func rawTool(raw json.RawMessage, name string, v protocol.Version) json.RawMessage {
	def := replaceMember(raw, "name", name)
	schema := jsonx.Member(def, "outputSchema")
	if schema == nil {
		return def
	}
	fit := outputSchemaFor(v, schema)
	switch {
	case fit == nil:
		return appendWithout(nil, def, "outputSchema")
	case !isObjectSchema(schema) && !v.Modern():
		b := appendWithout(nil, def, "outputSchema")
		b = append(b[:len(b)-1], `,"outputSchema":`...)
		return append(append(b, fit...), '}')
	}
	return def
}

// replaceMember returns the object obj with the string value in place of the member name.
func replaceMember(obj []byte, name, value string) json.RawMessage {
	return jsonx.AppendEdited(make([]byte, 0, len(obj)+len(value)), obj, func(n, old []byte) []byte {
		if jsonx.IsString(n, name) {
			return jsonx.AppendString(nil, value)
		}
		return old
	})
}

// outputSchemaFor returns the form of an output schema for a version: none before 2025-06-18, and
// only objects up to and including 2025-11-25.
func outputSchemaFor(v protocol.Version, schema []byte) []byte {
	switch {
	case schema == nil || v < protocol.V20250618:
		return nil
	case v.Modern() || isObjectSchema(schema):
		return schema
	default:
		return wrapSchema(schema)
	}
}

func isObjectSchema(schema []byte) bool {
	return jsonx.IsString(jsonx.Member(schema, "type"), "object")
}

// wrapSchema returns the schema of {"result": value}. $defs move to the root, which references
// point to.
func wrapSchema(schema []byte) []byte {
	b := []byte(`{"type":"object","properties":{"result":`)
	defs := jsonx.Member(schema, "$defs")
	b = appendWithout(b, schema, "$defs")
	b = append(b, `},"required":["result"],"additionalProperties":false`...)
	if defs != nil {
		b = append(b, `,"$defs":`...)
		b = append(b, defs...)
	}
	return append(b, '}')
}

// appendWithout appends the object obj without one member.
func appendWithout(b, obj []byte, name string) []byte {
	return jsonx.AppendEdited(b, obj, func(n, value []byte) []byte {
		if jsonx.IsString(n, name) {
			return nil
		}
		return value
	})
}
