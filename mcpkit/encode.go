package mcpkit

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// encode makes the result's JSON as the request's revision wants it.
func (s *Server) encode(call *Call, result any) (json.RawMessage, error) {
	switch r := result.(type) {
	case rawResult:
		return json.RawMessage(r), nil
	case emptyObject, nil:
		return s.seal(call, []byte{'{'}, nil)
	case *protocol.CallToolResult:
		if !call.vouchedFor(r.StructuredContent) && !jsonx.Valid(r.StructuredContent) {
			return nil, errNoJSON
		}
		b := append(make([]byte, 0, toolResultSize(r)+len(s.serverInfo)), '{')
		b, err := appendToolResult(b, r, call.version)
		if err != nil {
			return nil, err
		}
		return s.seal(call, b, r.Meta)
	case *protocol.ReadResourceResult:
		return s.encodeContents(call, r)
	case *protocol.GetPromptResult:
		return s.encodeMessages(call, r)
	case json.RawMessage:
		if !jsonx.Valid(r) {
			return nil, errNoJSON
		}
		return s.sealObject(call, r)
	default:
		return s.encodeAny(call, r)
	}
}

// errNoJSON keeps what middleware made from making the whole answer unreadable.
var errNoJSON = errors.New("it is no valid JSON")

// vouch says of the JSON of a result that it is valid: what middleware puts in its place is looked at again.
func (c *Call) vouch(value json.RawMessage) {
	if len(value) > 0 {
		c.root().vouched.Store(&value[0])
	}
}

func (c *Call) vouchedFor(value json.RawMessage) bool {
	return value == nil || len(value) > 0 && c.vouched.Load() == &value[0]
}

// encodeAny makes the JSON of a result that is met seldom: the library reads again what the types of package protocol
// write, and sealObject what the library writes.
func (s *Server) encodeAny(call *Call, result any) (json.RawMessage, error) {
	b, err := jsonx.Marshal(result)
	if err != nil {
		return nil, err
	}
	return s.sealObject(call, b)
}

// encodeContents makes the JSON of what encodeAny would, in one go.
func (s *Server) encodeContents(call *Call, r *protocol.ReadResourceResult) (json.RawMessage, error) {
	if r == nil || r.ResultType != "" {
		return s.encodeAny(call, r)
	}
	size := 192 + len(s.serverInfo)
	for i := range r.Contents {
		c := &r.Contents[i]
		size += 96 + len(c.URI) + base64.StdEncoding.EncodedLen(len(c.Blob))
		if c.Text != nil {
			size += len(*c.Text) + len(*c.Text)/16
		}
	}
	b := append(make([]byte, 0, size), `{"contents":[`...)
	var err error
	for i := range r.Contents {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = r.Contents[i].AppendJSON(b); err != nil {
			return nil, err
		}
	}
	b = append(b, ']')
	if r.TTLMs != nil {
		b = strconv.AppendInt(append(b, `,"ttlMs":`...), *r.TTLMs, 10)
	}
	if r.CacheScope != "" {
		b = jsonx.AppendString(append(b, `,"cacheScope":`...), r.CacheScope)
	}
	return s.seal(call, b, r.Meta)
}

// encodeMessages makes the JSON of what encodeAny would, in one go.
func (s *Server) encodeMessages(call *Call, r *protocol.GetPromptResult) (json.RawMessage, error) {
	if r == nil || r.ResultType != "" {
		return s.encodeAny(call, r)
	}
	b := append(make([]byte, 0, 512+len(s.serverInfo)), '{')
	if r.Description != "" {
		b = append(jsonx.AppendString(append(b, `"description":`...), r.Description), ',')
	}
	b = append(b, `"messages":[`...)
	for i := range r.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		message, err := r.Messages[i].MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(b, message...)
	}
	return s.seal(call, append(b, ']'), r.Meta)
}

// toolResultSize guesses how many bytes the result takes, so that its buffer need not grow.
func toolResultSize(r *protocol.CallToolResult) int {
	n := 160 + len(r.StructuredContent) + 64*len(r.Content)
	for _, c := range r.Content {
		switch c := c.(type) {
		case *protocol.TextContent:
			n += len(c.Text) + len(c.Text)/16
		case *protocol.ImageContent:
			n += len(c.Data) + len(c.Data)/2
		case *protocol.AudioContent:
			n += len(c.Data) + len(c.Data)/2
		}
	}
	// Such a text is JSON mostly, whose quotes are escaped.
	return n + len(r.StructuredContent)/8
}

// appendToolResult appends the members that v has of a tool result, without braces, resultType and _meta.
// What v cannot hold is said in a way that it can.
func appendToolResult(b []byte, r *protocol.CallToolResult, v protocol.Version) ([]byte, error) {
	b = append(b, `"content":[`...)
	for i, c := range r.Content {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = contentFor(v, c).AppendJSON(b); err != nil {
			return nil, err
		}
	}
	b = append(b, ']')
	// A failure has no output to hold to the output schema.
	if r.StructuredContent != nil && !r.IsError {
		b = appendStructured(b, r.StructuredContent, v)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	if r.Extra != nil {
		return r.AppendExtra(b)
	}
	return b, nil
}

func appendStructured(b []byte, value json.RawMessage, v protocol.Version) []byte {
	switch {
	case v < protocol.V20250618:
		return b
	case v.Modern() || jsonx.Kind(value) == '{':
		return append(append(b, `,"structuredContent":`...), value...)
	default: // an object is demanded; the output schema was wrapped in the same way
		b = append(append(b, `,"structuredContent":{"result":`...), value...)
		return append(b, '}')
	}
}

// contentFor replaces content that the revision does not know by text that says what is missing.
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

// seal closes the object that b begins, and puts into it what every result of a modern revision has.
func (s *Server) seal(call *Call, b []byte, meta protocol.Meta) (json.RawMessage, error) {
	comma := func() {
		if len(b) > 1 {
			b = append(b, ',')
		}
	}
	if !call.version.Modern() {
		if len(meta) > 0 {
			raw, err := jsonx.Marshal(meta)
			if err != nil {
				return nil, err
			}
			comma()
			b = append(append(b, `"_meta":`...), raw...)
		}
		return append(b, '}'), nil
	}
	comma()
	b = append(b, `"resultType":"complete","_meta":`...)
	if len(meta) == 0 {
		return append(s.appendServerMeta(b), '}'), nil
	}
	raw, err := jsonx.Marshal(meta)
	if err != nil {
		return nil, err
	}
	return append(s.appendMeta(b, raw), '}'), nil
}

// sealObject does the same for a result that is an object already; what it says itself stays.
func (s *Server) sealObject(call *Call, obj json.RawMessage) (json.RawMessage, error) {
	if jsonx.Kind(obj) != '{' {
		return nil, fmt.Errorf("a result is an object, not %.20s", obj)
	}
	if !call.version.Modern() {
		return obj, nil
	}
	b := make([]byte, 0, len(obj)+64+len(s.serverInfo))
	b = append(b, '{')
	var meta []byte
	typed := false
	for name, value := range jsonx.Members(obj) {
		if jsonx.IsString(name, "_meta") {
			meta = value
			continue
		}
		typed = typed || jsonx.IsString(name, "resultType")
		b = append(append(append(b, name...), ':'), value...)
		b = append(b, ',')
	}
	if !typed {
		b = append(b, `"resultType":"complete",`...)
	}
	b = append(b, `"_meta":`...)
	if meta == nil {
		return append(s.appendServerMeta(b), '}'), nil
	}
	return append(s.appendMeta(b, meta), '}'), nil
}

// appendServerMeta appends a _meta object that says which server answers.
func (s *Server) appendServerMeta(b []byte) []byte {
	b = append(b, `{"`+protocol.MetaServerInfo+`":`...)
	b = append(b, s.serverInfo...)
	return append(b, '}')
}

// appendMeta appends meta, an object, with the server's name added unless it is there.
func (s *Server) appendMeta(b, meta []byte) []byte {
	if jsonx.Member(meta, protocol.MetaServerInfo) != nil {
		return append(b, meta...)
	}
	b = append(b, `{"`+protocol.MetaServerInfo+`":`...)
	b = append(b, s.serverInfo...)
	for name, value := range jsonx.Members(meta) {
		b = append(append(append(append(b, ','), name...), ':'), value...)
	}
	return append(b, '}')
}
