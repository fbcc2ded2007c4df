package mcpkit

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// wire is what results need to encode themselves: the version of the request, and the name of the
// server.
type wire struct {
	version protocol.Version
	server  json.RawMessage // the server's Implementation
}

// wire returns how results of the call are written.
func (c *Call) wire() wire { return wire{c.version, c.server.serverInfo} }

// end closes the object that b begins and adds the members that all results of the version have.
func (w wire) end(b []byte, meta protocol.Meta) ([]byte, error) {
	var raw []byte
	if len(meta) > 0 {
		var err error
		if raw, err = jsonx.Marshal(meta); err != nil {
			return nil, err
		}
	}
	if !w.version.Modern() {
		if raw != nil {
			b = append(append(b, `,"_meta":`...), raw...)
		}
		return append(b, '}'), nil
	}
	b = append(b, `,"resultType":"complete","_meta":`...)
	return append(w.appendMeta(b, raw), '}'), nil
}

// appendObject appends an object with the members that all results of the version have. Members of
// the object win.
func (w wire) appendObject(b []byte, object json.RawMessage, resultType string) ([]byte, error) {
	if !w.version.Modern() {
		return append(b, object...), nil
	}
	if b == nil {
		b = make([]byte, 0, len(object)+64+len(w.server))
	}
	b = append(b, '{')
	var meta []byte
	typed := false
	for name, value := range jsonx.Members(object) {
		if jsonx.IsString(name, "_meta") {
			meta = value
			continue
		}
		typed = typed || jsonx.IsString(name, "resultType")
		b = append(append(append(b, name...), ':'), value...)
		b = append(b, ',')
	}
	if !typed {
		b = jsonx.AppendString(append(b, `"resultType":`...), resultType)
		b = append(b, ',')
	}
	b = append(b, `"_meta":`...)
	return append(w.appendMeta(b, meta), '}'), nil
}

// appendMeta appends meta, an object or nil, with the server's name unless it has one.
func (w wire) appendMeta(b, meta []byte) []byte {
	if jsonx.Member(meta, protocol.MetaServerInfo) != nil {
		return append(b, meta...)
	}
	b = append(b, `{"`+protocol.MetaServerInfo+`":`...)
	b = append(b, w.server...)
	for name, value := range jsonx.Members(meta) {
		b = append(append(append(append(b, ','), name...), ':'), value...)
	}
	return append(b, '}')
}
