package middleware

import (
	"reflect"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// SizeOf is how many bytes of content a result has, before it is encoded: texts, data and structured content. Questions to
// the client have none. It is false where that is not known: the content is read while it is sent, or the result is
// of a type of the program's own.
func SizeOf(result any) (int, bool) {
	n := 0
	switch r := result.(type) {
	case nil:
		return 0, false
	case *protocol.CallToolResult:
		for _, c := range r.Content {
			n += contentSize(c)
		}
		return n + len(r.StructuredContent), true
	case *protocol.GetPromptResult:
		for _, m := range r.Messages {
			n += contentSize(m.Content)
		}
		return n, true
	case *protocol.ReadResourceResult:
		for i := range r.Contents {
			n += contentsSize(&r.Contents[i])
		}
		return n, true
	case *protocol.InputRequiredResult:
		return 0, true
	}
	// Lists are bytes already.
	if v := reflect.ValueOf(result); v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return v.Len(), true
	}
	return 0, false
}

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
