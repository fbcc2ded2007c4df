package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// ForVersion returns the result as clients of a version know it: content that the version lacks becomes
// text. An error has no structured content, since it has no output for the output schema. Up to
// and including 2025-11-25 structured content is an object: other values become {"result": value}, as
// output schemas do.
func (r *CallToolResult) ForVersion(v Version) any {
	if r == nil {
		return r
	}
	own := *r
	own.Content = contentsFor(v, r.Content)
	own.StructuredContent = structuredFor(v, r)
	return &own
}

// ForVersion returns the result as clients of a version know it: content that the version lacks becomes
// text.
func (r *GetPromptResult) ForVersion(v Version) any {
	if r == nil {
		return r
	}
	own := *r
	own.Messages = make([]PromptMessage, len(r.Messages))
	for i, m := range r.Messages {
		own.Messages[i] = PromptMessage{Role: m.Role, Content: contentFor(v, m.Content)}
	}
	return &own
}

// ForVersion returns the result as clients of a version know it: legacy ones get no cache hint.
func (r *ReadResourceResult) ForVersion(v Version) any {
	if r == nil || v.Modern() {
		return r
	}
	own := *r
	own.Cache = Cache{}
	return &own
}

func structuredFor(v Version, r *CallToolResult) json.RawMessage {
	value := r.StructuredContent
	switch {
	case value == nil || r.IsError || v < V20250618:
		return nil
	case v.Modern() || jsonx.Kind(bytes.TrimLeft(value, " \t\r\n")) == '{' || !jsonx.Valid(value):
		return value
	}
	return append(append([]byte(`{"result":`), value...), '}')
}

func contentsFor(v Version, list []Content) []Content {
	own := make([]Content, len(list))
	for i, c := range list {
		own[i] = contentFor(v, c)
	}
	return own
}

// contentFor replaces content that the version does not have by a text.
func contentFor(v Version, c Content) Content {
	switch c := c.(type) {
	case *AudioContent:
		if v < V20250326 {
			return &TextContent{Text: fmt.Sprintf("[audio, %s, %d bytes: needs a newer client]", c.MIMEType, len(c.Data))}
		}
	case *ResourceLink:
		if v < V20250618 {
			return &TextContent{Text: c.URI}
		}
	}
	return c
}

// ContentSize returns how many bytes of texts, data and structured content the result has.
func (r *CallToolResult) ContentSize() int {
	if r == nil {
		return 0
	}
	n := len(r.StructuredContent)
	for _, c := range r.Content {
		n += contentSize(c)
	}
	return n
}

// ContentSize returns how many bytes of texts and data the result has.
func (r *GetPromptResult) ContentSize() int {
	if r == nil {
		return 0
	}
	n := 0
	for _, m := range r.Messages {
		n += contentSize(m.Content)
	}
	return n
}

// ContentSize returns how many bytes of texts and data the result has.
func (r *ReadResourceResult) ContentSize() int {
	if r == nil {
		return 0
	}
	n := 0
	for i := range r.Contents {
		n += r.Contents[i].size()
	}
	return n
}

func (r *ResourceContents) size() int {
	if r.Text != nil {
		return len(*r.Text) + len(r.Blob)
	}
	return len(r.Blob)
}

func contentSize(c Content) int {
	switch c := c.(type) {
	case *TextContent:
		return len(c.Text)
	case *ImageContent:
		return len(c.Data)
	case *AudioContent:
		return len(c.Data)
	case *EmbeddedResource:
		return c.Resource.size()
	case *ResourceLink:
		return len(c.URI)
	case *UnknownContent:
		return len(c.Raw)
	}
	return 0
}
