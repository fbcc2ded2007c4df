package mcpkit

import (
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// What methods may return besides plain Go values, as values or pointers.
type (
	// Image is an image in a tool's result or a prompt's message.
	Image = protocol.ImageContent
	// Audio is sound in a tool's result or a prompt's message.
	Audio = protocol.AudioContent
	// Link names a resource that the client may read.
	Link = protocol.ResourceLink
	// Embedded is the contents of a resource as part of a result or a message.
	Embedded = protocol.EmbeddedResource
	// Content is any content of the protocol.
	Content = protocol.Content
	// CallToolResult is the whole result of a tool.
	CallToolResult = protocol.CallToolResult
)

// A Blob is bytes with a media type. In a tool's result it becomes an image, audio, text, or else
// an embedded resource. As the result of a resource it is the contents.
type Blob struct {
	Data     []byte
	MIMEType string // "" is detected from Data
	URI      string // of the embedded resource; "" is made of the media type
}

// Text returns text content.
func Text(s string) Content { return &protocol.TextContent{Text: s} }

// User returns a prompt message of the user. content is a string, Content or a type that can become
// Content.
func User(content any) protocol.PromptMessage {
	return protocol.PromptMessage{Role: protocol.RoleUser, Content: asContent(content)}
}

// Assistant returns a prompt message of the assistant. content is a string, Content or a type that
// can become Content.
func Assistant(content any) protocol.PromptMessage {
	return protocol.PromptMessage{Role: protocol.RoleAssistant, Content: asContent(content)}
}

func asContent(v any) Content {
	switch v := v.(type) {
	case Content:
		return v
	case string:
		return Text(v)
	case Image:
		return &v
	case Audio:
		return &v
	case Link:
		return &v
	case Embedded:
		return &v
	case Blob:
		return v.content()
	case *Blob:
		return v.content()
	case []byte:
		return Blob{Data: v}.content()
	}
	return nil
}

func (b Blob) mime() string {
	if b.MIMEType != "" {
		return b.MIMEType
	}
	return mimetype.Detect(b.Data).String()
}

func (b Blob) content() Content {
	mime := b.mime()
	switch {
	case strings.HasPrefix(mime, "image/"):
		return &protocol.ImageContent{Data: b.Data, MIMEType: mime}
	case strings.HasPrefix(mime, "audio/"):
		return &protocol.AudioContent{Data: b.Data, MIMEType: mime}
	case b.URI == "" && isText(mime) && utf8.Valid(b.Data):
		return &protocol.TextContent{Text: string(b.Data)}
	}
	uri := b.URI
	if uri == "" {
		uri = "blob:" + mime
	}
	return &protocol.EmbeddedResource{Resource: contentsOf(uri, mime, b.Data)}
}

// contentsOf returns the contents of a resource: text, if the media type is textual and data is
// UTF-8.
func contentsOf(uri, mime string, data []byte) protocol.ResourceContents {
	c := protocol.ResourceContents{URI: uri, MIMEType: mime}
	if isText(mime) && utf8.Valid(data) {
		text := string(data)
		c.Text = &text
		return c
	}
	if data == nil {
		data = []byte{}
	}
	c.Blob = data
	return c
}

// isText reports whether a media type is textual.
func isText(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.TrimSpace(mime)
	switch mime {
	case "application/json", "application/xml", "application/yaml", "application/toml", "application/javascript", "application/sql", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "+json") || strings.HasSuffix(mime, "+xml") || strings.HasSuffix(mime, "+yaml")
}
