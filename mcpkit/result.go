package mcpkit

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Result is what a call returns. It writes itself as the JSON object that the protocol version of
// the request wants, so nothing needs to know all kinds of results. Methods return plain Go values,
// and the server makes Results of them; middleware sees the Results:
//
//   - [*ToolResult], [*PromptResult] and [*ResourceResult] are those of tools, prompts and resources. Their fields may be
//     read. To change one, return a copy: a result may be kept in a cache.
//   - [*InputRequiredResult] asks the client something (2026-07-28).
//   - [*ObjectResult] is that of any other method.
//
// Pages of lists, and resources whose contents are read while they are sent, are of types that are
// not exported. A nil Result stands for an empty object.
type Result interface {
	// Size returns how many bytes of content the result has before it is encoded: texts, data and
	// structured content. known is false for contents that are read while they are sent.
	Size() (bytes int, known bool)

	// appendTo appends the result as a JSON object.
	appendTo(b []byte, w wire) ([]byte, error)
}

// A streamer is a Result that may be too large for memory: it is written instead of appended.
type streamer interface {
	Result
	writeTo(out io.Writer, w wire) error
	// broken returns what the caller gets when writeTo fails.
	broken(call *Call, err error) error
}

func appendResult(b []byte, r Result, w wire) ([]byte, error) {
	if r == nil {
		r = emptyResult
	}
	return r.appendTo(b, w)
}

// JSON is a valid JSON value, made by [ParseJSON] or [EncodeJSON]. The zero value is no value.
type JSON struct{ text string }

// ParseJSON returns text as a JSON, or an error if it is not valid JSON. Nil gives the zero value.
func ParseJSON(text []byte) (JSON, error) {
	if text == nil {
		return JSON{}, nil
	}
	if !jsonx.Valid(text) {
		return JSON{}, errors.New("mcpkit: the text is not valid JSON")
	}
	return JSON{string(text)}, nil
}

// EncodeJSON returns the JSON of a Go value.
func EncodeJSON(v any) (JSON, error) {
	switch v := v.(type) {
	case JSON:
		return v, nil
	case json.RawMessage:
		return ParseJSON(v)
	}
	text, err := jsonx.Marshal(v)
	if err != nil {
		return JSON{}, fmt.Errorf("mcpkit: a value of type %T does not encode: %w", v, err)
	}
	return JSON{string(text)}, nil
}

// Raw returns a copy of the text; nil for the zero value.
func (j JSON) Raw() json.RawMessage {
	if j.text == "" {
		return nil
	}
	return json.RawMessage(j.text)
}

// IsZero reports whether there is no value.
func (j JSON) IsZero() bool { return j.text == "" }

// MarshalJSON returns the text; null for the zero value.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j.text == "" {
		return []byte("null"), nil
	}
	return []byte(j.text), nil
}

var errNilResult = errors.New("the result is a nil pointer")

// A ToolResult is the result of tools/call.
type ToolResult struct {
	Content           []protocol.Content
	StructuredContent JSON // the zero value if there is none
	IsError           bool // the tool failed; Content says how
	Meta              protocol.Meta
	// Extra are further members. Members that the protocol has are left out.
	Extra map[string]json.RawMessage
}

// NewToolResult returns r as a Result. Its parts must not be changed afterwards. It fails if the
// structured content is not valid JSON, or if the result type is not "complete" (see
// [NewExtensionResult]).
func NewToolResult(r *protocol.CallToolResult) (*ToolResult, error) {
	if r == nil {
		return nil, errors.New("mcpkit: the *CallToolResult is nil")
	}
	if err := checkComplete(r.ResultType); err != nil {
		return nil, err
	}
	structured, err := ParseJSON(r.StructuredContent)
	if err != nil {
		return nil, errors.New("mcpkit: the StructuredContent is not valid JSON")
	}
	return &ToolResult{Content: r.Content, StructuredContent: structured, IsError: r.IsError, Meta: r.Meta, Extra: r.Extra}, nil
}

// checkComplete refuses result types of extensions.
func checkComplete(resultType string) error {
	if resultType != "" && resultType != protocol.ResultComplete {
		return fmt.Errorf("mcpkit: a result of type %q is made with mcpkit.NewExtensionResult", resultType)
	}
	return nil
}

// Clone returns a copy with its own Content, so that contents may be added or replaced. The
// contents themselves are shared.
func (r *ToolResult) Clone() *ToolResult {
	own := *r
	own.Content = slices.Clone(r.Content)
	return &own
}

// Size returns how many bytes of content the result has.
func (r *ToolResult) Size() (int, bool) {
	if r == nil {
		return 0, true
	}
	n := len(r.StructuredContent.text)
	for _, c := range r.Content {
		n += contentSize(c)
	}
	return n, true
}

func (r *ToolResult) appendTo(b []byte, w wire) ([]byte, error) {
	if r == nil {
		return nil, errNilResult
	}
	b = slices.Grow(b, r.encodedSize()+len(w.server))
	b = append(b, `{"content":[`...)
	for i, c := range r.Content {
		if i > 0 {
			b = append(b, ',')
		}
		if c == nil {
			return nil, errors.New("a content is nil")
		}
		var err error
		if b, err = contentFor(w.version, c).AppendJSON(b); err != nil {
			return nil, err
		}
	}
	b = append(b, ']')
	// An error has no output for the output schema.
	if !r.StructuredContent.IsZero() && !r.IsError {
		b = appendStructured(b, r.StructuredContent.text, w.version)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	if r.Extra != nil {
		var err error
		if b, err = (&protocol.CallToolResult{Extra: r.Extra}).AppendExtra(b); err != nil {
			return nil, err
		}
	}
	return w.end(b, r.Meta)
}

// encodedSize estimates the encoded size in bytes, so that the buffer need not grow.
func (r *ToolResult) encodedSize() int {
	structured := len(r.StructuredContent.text)
	// The text of structured content is JSON, whose quotes are escaped.
	n := 160 + structured + structured/8 + 64*len(r.Content)
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
	return n
}

func appendStructured(b []byte, value string, v protocol.Version) []byte {
	switch {
	case v < protocol.V20250618:
		return b
	case v.Modern() || strings.HasPrefix(strings.TrimLeft(value, " \t\r\n"), "{"):
		return append(append(b, `,"structuredContent":`...), value...)
	default: // must be an object; the output schema is wrapped in the same way
		b = append(append(b, `,"structuredContent":{"result":`...), value...)
		return append(b, '}')
	}
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

// A PromptResult is the result of prompts/get.
type PromptResult struct {
	Description string
	Messages    []protocol.PromptMessage
	Meta        protocol.Meta
}

// NewPromptResult returns r as a Result. Its parts must not be changed afterwards. It fails if a
// message has no content, or if the result type is not "complete" (see [NewExtensionResult]).
func NewPromptResult(r *protocol.GetPromptResult) (*PromptResult, error) {
	if r == nil {
		return nil, errors.New("mcpkit: the *GetPromptResult is nil")
	}
	if err := checkComplete(r.ResultType); err != nil {
		return nil, err
	}
	p := &PromptResult{Description: r.Description, Messages: r.Messages, Meta: r.Meta}
	return p, p.check()
}

func (r *PromptResult) check() error {
	for i := range r.Messages {
		if r.Messages[i].Content == nil {
			return errors.New("a message of the prompt has no content")
		}
	}
	return nil
}

// Size returns how many bytes of content the messages have.
func (r *PromptResult) Size() (int, bool) {
	if r == nil {
		return 0, true
	}
	n := 0
	for _, m := range r.Messages {
		n += contentSize(m.Content)
	}
	return n, true
}

func (r *PromptResult) appendTo(b []byte, w wire) ([]byte, error) {
	if r == nil {
		return nil, errNilResult
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	b = append(slices.Grow(b, 512+len(w.server)), '{')
	if r.Description != "" {
		b = append(jsonx.AppendString(append(b, `"description":`...), r.Description), ',')
	}
	b = append(b, `"messages":[`...)
	for i, m := range r.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		m.Content = contentFor(w.version, m.Content)
		message, err := m.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(b, message...)
	}
	return w.end(append(b, ']'), r.Meta)
}

// A ResourceResult is the result of resources/read, if its contents are in memory.
type ResourceResult struct {
	Contents []protocol.ResourceContents
	// Cache says how long the contents may be cached, and for whom. Legacy clients do not get it.
	protocol.Cache
	Meta protocol.Meta
}

// NewResourceResult returns r as a Result. Its parts must not be changed afterwards. It fails if
// the result type is not "complete" (see [NewExtensionResult]).
func NewResourceResult(r *protocol.ReadResourceResult) (*ResourceResult, error) {
	if r == nil {
		return nil, errors.New("mcpkit: the *ReadResourceResult is nil")
	}
	if err := checkComplete(r.ResultType); err != nil {
		return nil, err
	}
	return &ResourceResult{Contents: r.Contents, Cache: r.Cache, Meta: r.Meta}, nil
}

// Size returns how many bytes the contents have.
func (r *ResourceResult) Size() (int, bool) {
	if r == nil {
		return 0, true
	}
	n := 0
	for i := range r.Contents {
		n += contentsSize(&r.Contents[i])
	}
	return n, true
}

func (r *ResourceResult) appendTo(b []byte, w wire) ([]byte, error) {
	if r == nil {
		return nil, errNilResult
	}
	size := 192 + len(w.server)
	for i := range r.Contents {
		c := &r.Contents[i]
		size += 96 + len(c.URI) + base64.StdEncoding.EncodedLen(len(c.Blob))
		if c.Text != nil {
			size += len(*c.Text) + len(*c.Text)/16
		}
	}
	b = append(slices.Grow(b, size), `{"contents":[`...)
	var err error
	for i := range r.Contents {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = r.Contents[i].AppendJSON(b); err != nil {
			return nil, err
		}
	}
	return w.end(w.appendCache(append(b, ']'), r.Cache), r.Meta)
}

// appendCache appends the caching members that modern clients get.
func (w wire) appendCache(b []byte, c protocol.Cache) []byte {
	if !w.version.Modern() {
		return b
	}
	if c.TTLMs != nil {
		b = strconv.AppendInt(append(b, `,"ttlMs":`...), *c.TTLMs, 10)
	}
	if c.CacheScope != "" {
		b = jsonx.AppendString(append(b, `,"cacheScope":`...), c.CacheScope)
	}
	return b
}

// An InputRequiredResult asks the client questions before the call can continue (2026-07-28): see
// [Elicit]. Only the server makes it.
type InputRequiredResult struct {
	// Requests are the questions by key. They must not be changed.
	Requests protocol.InputRequests
	state    string
}

// Size returns 0: questions are not content.
func (*InputRequiredResult) Size() (int, bool) { return 0, true }

func (r *InputRequiredResult) appendTo(b []byte, w wire) ([]byte, error) {
	if r == nil {
		return nil, errNilResult
	}
	object, err := jsonx.Marshal(&protocol.InputRequiredResult{InputRequests: r.Requests, RequestState: &r.state})
	if err != nil {
		return nil, err
	}
	return w.appendObject(b, object, protocol.ResultInputRequired)
}

// An ObjectResult is a JSON object: the result of a method without a result type of its own.
type ObjectResult struct {
	object     json.RawMessage
	resultType string
}

// NewObjectResult returns the JSON of object: a JSON, a json.RawMessage or any value that encodes
// to a JSON object. For modern clients, resultType, unless object has one, and the server's name in
// _meta are added. It fails if object does not encode to a JSON object.
func NewObjectResult(object any) (*ObjectResult, error) {
	text, err := EncodeJSON(object)
	if err != nil {
		return nil, err
	}
	raw := text.Raw()
	if jsonx.Kind(raw) != '{' {
		return nil, fmt.Errorf("mcpkit: a result is a JSON object, not %.20s", raw)
	}
	return &ObjectResult{object: raw, resultType: protocol.ResultComplete}, nil
}

// NewExtensionResult returns a result with the resultType of an extension, for modern clients.
// Legacy clients get the object without it. It fails if value does not encode to a JSON object, or
// if the protocol itself has the type.
func NewExtensionResult(resultType string, value any) (*ObjectResult, error) {
	switch resultType {
	case "", protocol.ResultComplete, protocol.ResultInputRequired:
		return nil, fmt.Errorf("mcpkit: NewExtensionResult(%q): not a result type of an extension", resultType)
	}
	r, err := NewObjectResult(value)
	if err != nil {
		return nil, err
	}
	if jsonx.Member(r.object, "resultType") != nil {
		return nil, fmt.Errorf("mcpkit: NewExtensionResult(%q): the value has a resultType of its own; leave it out", resultType)
	}
	r.resultType = resultType
	return r, nil
}

// JSON returns the object.
func (r *ObjectResult) JSON() JSON { return JSON{string(r.object)} }

// Type returns "complete", or the result type of an extension.
func (r *ObjectResult) Type() string { return r.resultType }

// Size returns how many bytes the object has.
func (r *ObjectResult) Size() (int, bool) {
	if r == nil {
		return 0, true
	}
	return len(r.object), true
}

func (r *ObjectResult) appendTo(b []byte, w wire) ([]byte, error) {
	if r == nil {
		return nil, errNilResult
	}
	return w.appendObject(b, r.object, r.resultType)
}

// emptyResult is {} with what a version adds.
var emptyResult = &ObjectResult{object: json.RawMessage("{}"), resultType: protocol.ResultComplete}

// A listPage is the result of a list request, encoded for the version of the request.
type listPage struct{ object []byte }

// Size returns how many bytes the page has.
func (p *listPage) Size() (int, bool) { return len(p.object), true }

func (p *listPage) appendTo(b []byte, _ wire) ([]byte, error) {
	if b == nil {
		return p.object[:len(p.object):len(p.object)], nil
	}
	return append(b, p.object...), nil
}
