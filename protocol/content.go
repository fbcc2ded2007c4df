package protocol

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Content is one block of content: a [*TextContent], [*ImageContent], [*AudioContent],
// [*ResourceLink] or [*EmbeddedResource]; in sampling also a [*ToolUseContent] or
// [*ToolResultContent]; and an [*UnknownContent] for a type that this module does not know.
type Content interface {
	// AppendJSON appends the block as a JSON object, its type included.
	AppendJSON(dst []byte) ([]byte, error)

	contentType() string
}

// Annotations describe the audience and the importance of content.
type Annotations struct {
	Audience     []Role   `json:"audience,omitzero"`
	Priority     *float64 `json:"priority,omitzero"`     // from 0, optional, to 1, required
	LastModified string   `json:"lastModified,omitzero"` // ISO 8601; 2025-06-18 and later
}

// TextContent is text.
type TextContent struct {
	Text        string       `json:"text"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Meta         `json:"_meta,omitzero"`
}

// ImageContent is an image.
type ImageContent struct {
	Data        []byte       `json:"data"` // base64 on the wire
	MIMEType    string       `json:"mimeType"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Meta         `json:"_meta,omitzero"`
}

// AudioContent is sound. Since 2025-03-26.
type AudioContent struct {
	Data        []byte       `json:"data"` // base64 on the wire
	MIMEType    string       `json:"mimeType"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Meta         `json:"_meta,omitzero"`
}

// A ResourceLink points to a resource that the client may read. Since 2025-06-18.
type ResourceLink Resource

// An EmbeddedResource is a resource with its contents.
type EmbeddedResource struct {
	Resource    ResourceContents `json:"resource"`
	Annotations *Annotations     `json:"annotations,omitzero"`
	Meta        Meta             `json:"_meta,omitzero"`
}

// ToolUseContent is a tool call that a model wants to make. Sampling, since 2025-11-25.
type ToolUseContent struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // an object; nil is written as {}
	Meta  Meta            `json:"_meta,omitzero"`
}

// ToolResultContent is the result of a [ToolUseContent]. Sampling, since 2025-11-25.
type ToolResultContent struct {
	ToolUseID         string          `json:"toolUseId"`
	Content           Contents        `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitzero"`
	IsError           bool            `json:"isError,omitzero"`
	Meta              Meta            `json:"_meta,omitzero"`
}

// UnknownContent is a block of a type that this module does not know. It is written as it was
// received.
type UnknownContent struct {
	Type string
	Raw  json.RawMessage // the whole object
}

func (*TextContent) contentType() string       { return "text" }
func (*ImageContent) contentType() string      { return "image" }
func (*AudioContent) contentType() string      { return "audio" }
func (*ResourceLink) contentType() string      { return "resource_link" }
func (*EmbeddedResource) contentType() string  { return "resource" }
func (*ToolUseContent) contentType() string    { return "tool_use" }
func (*ToolResultContent) contentType() string { return "tool_result" }
func (c *UnknownContent) contentType() string  { return c.Type }

// ContentType returns the value of the member "type" of c: "text", "resource_link" and so on.
func ContentType(c Content) string { return c.contentType() }

// AppendJSON appends the block as a JSON object.
func (c *TextContent) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"text","text":`...)
	dst = jsonx.AppendString(dst, c.Text)
	return finish(dst, c.Annotations, c.Meta)
}

// AppendJSON appends the block as a JSON object.
func (c *ImageContent) AppendJSON(dst []byte) ([]byte, error) {
	return appendData(dst, "image", c.Data, c.MIMEType, c.Annotations, c.Meta)
}

// AppendJSON appends the block as a JSON object.
func (c *AudioContent) AppendJSON(dst []byte) ([]byte, error) {
	return appendData(dst, "audio", c.Data, c.MIMEType, c.Annotations, c.Meta)
}

func appendData(dst []byte, typ string, data []byte, mime string, a *Annotations, m Meta) ([]byte, error) {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, typ...)
	dst = append(dst, `","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, `","mimeType":`...)
	dst = jsonx.AppendString(dst, mime)
	return finish(dst, a, m)
}

// AppendJSON appends the block as a JSON object.
func (c *ResourceLink) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"resource_link",`...)
	n := len(dst)
	dst, err := jsonx.Append(dst, (*Resource)(c))
	if err != nil {
		return dst, err
	}
	return append(dst[:n], dst[n+1:]...), nil // without the second opening brace
}

// AppendJSON appends the block as a JSON object.
func (c *EmbeddedResource) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"resource","resource":`...)
	dst, err := c.Resource.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	return finish(dst, c.Annotations, c.Meta)
}

// AppendJSON appends the block as a JSON object.
func (c *ToolUseContent) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"tool_use","id":`...)
	dst = jsonx.AppendString(dst, c.ID)
	dst = append(dst, `,"name":`...)
	dst = jsonx.AppendString(dst, c.Name)
	dst = append(dst, `,"input":`...)
	input := c.Input
	if input == nil {
		input = json.RawMessage("{}")
	}
	dst, err := appendRaw(dst, input)
	if err != nil {
		return dst, wrap("input", err)
	}
	return finish(dst, nil, c.Meta)
}

// AppendJSON appends the block as a JSON object.
func (c *ToolResultContent) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"tool_result","toolUseId":`...)
	dst = jsonx.AppendString(dst, c.ToolUseID)
	dst = append(dst, ',')
	r := CallToolResult{Content: c.Content, StructuredContent: c.StructuredContent, IsError: c.IsError, Meta: c.Meta}
	dst, err := r.AppendMembers(dst)
	return append(dst, '}'), err
}

// AppendJSON appends the block as it was received.
func (c *UnknownContent) AppendJSON(dst []byte) ([]byte, error) {
	if jsonx.Kind(c.Raw) != '{' {
		return dst, errors.New("content of an unknown type is not a JSON object")
	}
	return appendRaw(dst, c.Raw)
}

// MarshalJSON writes the block.
func (c TextContent) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// MarshalJSON writes the block.
func (c ImageContent) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// MarshalJSON writes the block.
func (c AudioContent) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// MarshalJSON writes the block.
func (c ResourceLink) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// MarshalJSON writes the block.
func (c EmbeddedResource) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// MarshalJSON writes the block.
func (c ToolUseContent) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// MarshalJSON writes the block.
func (c ToolResultContent) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// MarshalJSON writes the block.
func (c UnknownContent) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// Contents are blocks of content that encode and decode as an array.
type Contents []Content

// MarshalJSON writes the blocks; nil is written as [].
func (c Contents) MarshalJSON() ([]byte, error) { return appendContents(nil, c) }

// UnmarshalJSON reads an array of blocks.
func (c *Contents) UnmarshalJSON(data []byte) error {
	switch data = jsonx.TrimSpace(data); jsonx.Kind(data) {
	case 'n':
		*c = nil
		return nil
	case '[':
	default:
		return errors.New("content must be an array")
	}
	out := Contents{}
	for raw := range jsonx.Elements(data) {
		block, err := decodeContent(raw)
		if err != nil {
			return fmt.Errorf("content %d: %w", len(out), err)
		}
		out = append(out, block)
	}
	*c = out
	return nil
}

// UnmarshalContent reads one block of content. A type that this module does not know is not an
// error.
func UnmarshalContent(raw []byte) (Content, error) {
	if !jsonx.Valid(raw) {
		return nil, errors.New("content is not valid JSON")
	}
	return decodeContent(jsonx.TrimSpace(raw))
}

// decodeContent reads one block from valid JSON that does not begin with white space.
func decodeContent(raw []byte) (Content, error) {
	if jsonx.Kind(raw) != '{' {
		return nil, errors.New("content must be an object")
	}
	typ := jsonx.Member(raw, "type")
	if jsonx.Kind(typ) != '"' {
		return nil, errors.New(`content has no "type"`)
	}
	var c Content
	switch name := jsonx.String(typ); name {
	case "text":
		c = new(TextContent)
	case "image":
		c = new(ImageContent)
	case "audio":
		c = new(AudioContent)
	case "resource_link":
		c = new(ResourceLink)
	case "resource":
		c = new(EmbeddedResource)
	case "tool_use":
		c = new(ToolUseContent)
	case "tool_result":
		c = new(ToolResultContent)
	default:
		return &UnknownContent{Type: name, Raw: bytes.Clone(raw)}, nil
	}
	if err := jsonx.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	return c, nil
}

// content lets a struct field of the interface type be decoded.
type content struct{ Content }

// UnmarshalJSON reads one block.
func (c *content) UnmarshalJSON(data []byte) (err error) {
	c.Content, err = UnmarshalContent(data)
	return err
}

func appendContent(dst []byte, c Content) ([]byte, error) {
	if c == nil {
		return dst, errors.New("content is nil")
	}
	return c.AppendJSON(dst)
}

func appendContents(dst []byte, contents []Content) ([]byte, error) {
	dst = append(dst, '[')
	for i, c := range contents {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendContent(dst, c); err != nil {
			return dst, fmt.Errorf("content %d: %w", i, err)
		}
	}
	return append(dst, ']'), nil
}

// finish appends the members that most blocks end with, and the brace.
func finish(dst []byte, a *Annotations, m Meta) ([]byte, error) {
	if a != nil {
		dst = append(dst, `,"annotations":`...)
		var err error
		if dst, err = jsonx.Append(dst, a); err != nil {
			return dst, wrap("annotations", err)
		}
	}
	dst, err := appendMeta(dst, m)
	return append(dst, '}'), err
}
