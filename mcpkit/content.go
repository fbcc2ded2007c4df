package mcpkit

import (
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// What methods may return beside plain Go values. Each may be returned as a value or a pointer.
type (
	// Image is an image in a tool's result or a prompt's message.
	Image = protocol.ImageContent
	// Audio is sound in a tool's result or a prompt's message.
	Audio = protocol.AudioContent
	// Link names a resource that the client may read if it wants to.
	Link = protocol.ResourceLink
	// Embedded is the contents of a resource as part of a result or a message.
	Embedded = protocol.EmbeddedResource
	// Content is any of the kinds of content of the protocol.
	Content = protocol.Content
)

// A Blob is bytes of some media type. In a tool's result an image or a sound becomes what it is,
// text becomes text, and anything else an embedded resource. As the result of a resource it is the
// contents.
type Blob struct {
	Data     []byte
	MIMEType string // "" is found by looking at Data
	URI      string // of the embedded resource; "" where there is none: the media type stands for it
}

// Text returns text content.
func Text(s string) Content { return &protocol.TextContent{Text: s} }

// User returns a prompt message of the user: a string, or Content, or what can be Content.
func User(content any) protocol.PromptMessage {
	return protocol.PromptMessage{Role: protocol.RoleUser, Content: asContent(content)}
}

// Assistant returns a prompt message of the assistant: a string, or Content, or what can be
// Content.
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

// contentsOf makes the contents of a resource: text where the media type says so and the bytes are
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

// isText reports whether a media type is for reading: text, and the structured types that are
// written as text.
func isText(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.TrimSpace(mime)
	switch mime {
	case "application/json", "application/xml", "application/yaml", "application/toml", "application/javascript", "application/sql", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "+json") || strings.HasSuffix(mime, "+xml") || strings.HasSuffix(mime, "+yaml")
}
