package mcpkit

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
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

// SizeOf returns how many bytes of content a result has before it is encoded: texts, data and
// structured content. known is false for contents that are read while they are sent, and for other
// results than those of tools, prompts and resources.
func SizeOf(r Result) (bytes int, known bool) {
	sized, known := r.(interface{ ContentSize() int })
	if known {
		bytes = sized.ContentSize()
	}
	return bytes, known
}

// encode returns a result as the JSON object for a version.
func (s *Server) encode(r Result, v protocol.Version) (json.RawMessage, error) {
	if result.IsNil(reflect.ValueOf(r)) {
		return nil, fmt.Errorf("the result is a nil %T", r)
	}
	if l, ok := r.(*List); ok {
		return l.encoded()
	}
	if r == nil {
		r = protocol.Object{}
	}
	return protocol.AppendResult(nil, r, v, s.about.Load().meta)
}
