package mcpkit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Result is what a call returns: [*protocol.CallToolResult] of tools, [*protocol.GetPromptResult]
// of prompts, [*protocol.ReadResourceResult] of resources, [*protocol.InputRequiredResult] if the
// client is asked something (2026-07-28), or any value that encodes to a JSON object. Nil stands for
// an empty object. A resource that is sent while it is read has a type of its own.
//
// The server writes it for the version of the call: what the version lacks becomes text or is left
// out, and modern clients get the resultType, "complete" unless the result has another one, and the
// name of the server. A result with another type, made by an extension, is an error for clients of
// versions without result types.
//
// A Result must not be changed: a cache may hold it. Return a changed copy instead.
type Result any

// SizeOf returns how many bytes of content a result has before it is encoded: texts, data and
// structured content. known is false for contents that are read while they are sent, and for results
// of methods other than those of tools, prompts and resources.
func SizeOf(r Result) (bytes int, known bool) {
	n := 0
	switch r := r.(type) {
	case *protocol.CallToolResult:
		if r != nil {
			n = len(r.StructuredContent)
			for _, c := range r.Content {
				n += contentSize(c)
			}
		}
	case *protocol.GetPromptResult:
		if r != nil {
			for _, m := range r.Messages {
				n += contentSize(m.Content)
			}
		}
	case *protocol.ReadResourceResult:
		if r != nil {
			for i := range r.Contents {
				n += contentsSize(&r.Contents[i])
			}
		}
	case nil, *protocol.InputRequiredResult:
	default:
		return 0, false
	}
	return n, true
}

// contentSize returns the size of the text or data of c in bytes.
func contentSize(c protocol.Content) int {
	switch c := c.(type) {
	case *protocol.TextContent:
		return len(c.Text)
	case *protocol.ImageContent:
		return len(c.Data)
	case *protocol.AudioContent:
		return len(c.Data)
	case *protocol.EmbeddedResource:
		return contentsSize(&c.Resource)
	case *protocol.ResourceLink:
		return len(c.URI)
	case *protocol.UnknownContent:
		return len(c.Raw)
	}
	return 0
}

func contentsSize(c *protocol.ResourceContents) int {
	n := len(c.Blob)
	if c.Text != nil {
		n += len(*c.Text)
	}
	return n
}

// encode returns a result as the JSON object for a version.
func (s *Server) encode(r Result, v protocol.Version) (json.RawMessage, error) {
	if page, ok := r.(*listPage); ok {
		return page.object, nil
	}
	object := json.RawMessage("{}")
	if r != nil {
		var err error
		if object, err = jsonx.Marshal(resultFor(v, r)); err != nil {
			return nil, err
		}
	}
	if jsonx.Kind(object) != '{' {
		return nil, fmt.Errorf("a result is a JSON object, and this is a %T: %.20s", r, object)
	}
	if !v.Modern() {
		if t := jsonx.String(jsonx.Member(object, "resultType")); t != "" && t != protocol.ResultComplete {
			return nil, fmt.Errorf("clients of version %s have no results of type %q", v, t)
		}
		return appendWithout(nil, object, "resultType"), nil
	}
	return s.appendModern(make([]byte, 0, len(object)+512), object), nil
}

// appendModern appends an object with the members that all modern results have: a resultType, and
// the server's name in _meta. Those of the object win.
func (s *Server) appendModern(b []byte, object json.RawMessage) json.RawMessage {
	var meta []byte
	typed := false
	b = jsonx.AppendEdited(b, object, func(name, value []byte) []byte {
		if jsonx.IsString(name, "_meta") {
			meta = value
			return nil
		}
		typed = typed || jsonx.IsString(name, "resultType")
		return value
	})
	b = b[:len(b)-1] // without the brace
	if !typed {
		b = append(jsonx.AppendComma(b), `"resultType":"complete"`...)
	}
	b = append(jsonx.AppendComma(b), `"_meta":`...)
	return append(s.appendMeta(b, meta), '}')
}

// appendMeta appends meta, an object or nil, with the server's name unless it has one.
func (s *Server) appendMeta(b, meta []byte) []byte {
	if jsonx.Member(meta, protocol.MetaServerInfo) != nil {
		return append(b, meta...)
	}
	b = append(b, `{"`+protocol.MetaServerInfo+`":`...)
	b = append(b, s.about.Load().encoded...)
	for name, value := range jsonx.Members(meta) {
		b = jsonx.AppendMember(b, name, value)
	}
	return append(b, '}')
}

// resultFor returns the result without what a version lacks.
func resultFor(v protocol.Version, r Result) Result {
	switch r := r.(type) {
	case *protocol.CallToolResult:
		if r == nil {
			return nil
		}
		own := *r
		own.Content = contentsFor(v, r.Content)
		own.StructuredContent = structuredFor(v, r)
		return &own
	case *protocol.GetPromptResult:
		if r == nil {
			return nil
		}
		own := *r
		own.Messages = make([]protocol.PromptMessage, len(r.Messages))
		for i, m := range r.Messages {
			own.Messages[i] = protocol.PromptMessage{Role: m.Role, Content: contentFor(v, m.Content)}
		}
		return &own
	case *protocol.ReadResourceResult:
		if r == nil || v.Modern() {
			return r
		}
		own := *r
		own.Cache = protocol.Cache{}
		return &own
	}
	return r
}

// structuredFor returns the structured content of a result. An error has none, since it has no output
// for the output schema. Up to and including 2025-11-25 it is an object; the output schema of other
// values is wrapped in the same way.
func structuredFor(v protocol.Version, r *protocol.CallToolResult) json.RawMessage {
	value := r.StructuredContent
	switch {
	case value == nil || r.IsError || v < protocol.V20250618:
		return nil
	case v.Modern() || jsonx.Kind(bytes.TrimLeft(value, " \t\r\n")) == '{' || !jsonx.Valid(value):
		return value
	}
	return append(append([]byte(`{"result":`), value...), '}')
}

func contentsFor(v protocol.Version, list []protocol.Content) []protocol.Content {
	if v >= protocol.V20250618 {
		return list
	}
	own := make([]protocol.Content, len(list))
	for i, c := range list {
		own[i] = contentFor(v, c)
	}
	return own
}

// contentFor replaces content that the version does not have by a text.
func contentFor(v protocol.Version, c protocol.Content) protocol.Content {
	switch c := c.(type) {
	case *protocol.AudioContent:
		if v < protocol.V20250326 {
			return &protocol.TextContent{Text: fmt.Sprintf("[audio, %s, %d bytes: needs a newer client]", c.MIMEType, len(c.Data))}
		}
	case *protocol.ResourceLink:
		if v < protocol.V20250618 {
			return &protocol.TextContent{Text: c.URI}
		}
	}
	return c
}

// A listPage is the result of a list request, encoded for the version of the request.
type listPage struct{ object json.RawMessage }
