package mcpkit

import (
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
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

// A Blob is bytes with a media type. In a tool's result it becomes an image, audio, text, or else an
// embedded resource. As the result of a resource it is the contents. Its fields are:
//
//	Data     []byte
//	MIMEType string // "" is detected from Data
//	URI      string // of the embedded resource; "" is made of the media type
type Blob = result.Blob

// Text returns text content.
func Text(s string) Content { return result.Text(s) }

// User returns a prompt message of the user. content is a string, Content or a type that can become
// Content.
func User(content any) protocol.PromptMessage { return result.User(result.ContentOf(content)) }

// Assistant returns a prompt message of the assistant. content is a string, Content or a type that
// can become Content.
func Assistant(content any) protocol.PromptMessage {
	return protocol.PromptMessage{Role: protocol.RoleAssistant, Content: result.ContentOf(content)}
}
