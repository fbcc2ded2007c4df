package result

import (
	"cmp"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Blob is bytes with a media type.
type Blob struct {
	Data     []byte
	MIMEType string // "" is detected from Data
	URI      string // of the embedded resource; "" is made of the media type
}

// Text returns text content.
func Text(s string) protocol.Content { return &protocol.TextContent{Text: s} }

// ContentOf returns the content that v is or can become; nil if there is none.
func ContentOf(v any) protocol.Content {
	switch v := v.(type) {
	case protocol.Content:
		return v
	case string:
		return Text(v)
	case Blob:
		return v.content()
	case *Blob:
		return v.content()
	case []byte:
		return Blob{Data: v}.content()
	case nil:
		return nil
	}
	c, _ := addressed(reflect.ValueOf(v)).Interface().(protocol.Content)
	return c
}

// User returns a message of the user.
func User(c protocol.Content) protocol.PromptMessage {
	return protocol.PromptMessage{Role: protocol.RoleUser, Content: c}
}

func (b Blob) mime() string {
	if b.MIMEType != "" {
		return b.MIMEType
	}
	return mimetype.Detect(b.Data).String()
}

// content returns an image, audio, text, or else an embedded resource.
func (b Blob) content() protocol.Content {
	mime := b.mime()
	switch {
	case strings.HasPrefix(mime, "image/"):
		return &protocol.ImageContent{Data: b.Data, MIMEType: mime}
	case strings.HasPrefix(mime, "audio/"):
		return &protocol.AudioContent{Data: b.Data, MIMEType: mime}
	case b.URI == "" && IsText(mime) && utf8.Valid(b.Data):
		return Text(string(b.Data))
	}
	return &protocol.EmbeddedResource{Resource: ContentsOf(cmp.Or(b.URI, "blob:"+mime), mime, b.Data)}
}

// ContentsOf returns the contents of a resource: text, if the media type is textual and data is
// UTF-8.
func ContentsOf(uri, mime string, data []byte) protocol.ResourceContents {
	c := protocol.ResourceContents{URI: uri, MIMEType: mime}
	if IsText(mime) && utf8.Valid(data) {
		c.Text = new(string(data))
		return c
	}
	if data == nil {
		data = []byte{}
	}
	c.Blob = data
	return c
}

// IsText reports whether a media type is textual.
func IsText(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.TrimSpace(mime)
	switch mime {
	case "application/json", "application/xml", "application/yaml", "application/toml",
		"application/javascript", "application/sql", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "+json") || strings.HasSuffix(mime, "+xml") ||
		strings.HasSuffix(mime, "+yaml")
}
