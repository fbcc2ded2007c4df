package mcpkit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sync"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
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

// streamed is the result of a resource whose contents are read while they are sent, whatever their
// size.
type streamed struct {
	call     *Call
	mime     string
	contents *bufio.Reader // of a timedReader; its buffer has the first block
	cache    protocol.Cache
}

// firstBlock is how many bytes are read before a response begins. An error until then is an ordinary
// error, and a reader that ends until then an ordinary result.
const firstBlock = 64 << 10

// newStreamed returns the contents of r, as a plain result if the first block is everything. The
// reader may use the context of the call until it is closed: when the call is over, and when its time
// is up, since that may end a Read that blocks.
func newStreamed(ctx context.Context, call *Call, mime string, cache protocol.Cache, r io.Reader) (Result, error) {
	s := &streamed{call, mime, bufio.NewReaderSize(timedReader{r, &call.limit}, firstBlock), cache}
	if closer, ok := r.(io.Closer); ok {
		shut := sync.OnceFunc(func() { call.limit.clean(func() { _ = closer.Close() }) })
		stop := context.AfterFunc(&call.limit, shut)
		call.OnEnd(func() { stop(); shut() })
	}
	first, err := s.contents.Peek(firstBlock)
	if err != nil && err != io.EOF {
		return nil, cmp.Or(ctx.Err(), err)
	}
	if s.mime == "" {
		s.mime = mimetype.Detect(first).String()
	}
	if err == nil {
		return s, nil
	}
	contents := result.ContentsOf(call.name, s.mime, first)
	return &protocol.ReadResourceResult{Contents: []protocol.ResourceContents{contents}, Cache: s.cache}, nil
}

// A timedReader fails when the time of its call is up: what a reader says after it was closed is not
// the end of the contents.
type timedReader struct {
	r     io.Reader
	limit *timeLimit
}

func (t timedReader) Read(b []byte) (n int, err error) {
	n, err = t.r.Read(b)
	if ended := t.limit.ended(); ended != nil {
		return 0, ended
	}
	return n, err
}

// brokeOff returns the error for contents that could not be read to their end, and logs it, since a
// caller over HTTP only sees that the connection breaks.
func (call *Call) brokeOff(err error) (told *jsonrpc.Error) {
	defer func() {
		if v := recover(); v != nil { // in the methods of the error
			told = call.panicked(v)
		}
	}()
	text, code := call.shown(err)
	if !call.cancelled(err) {
		call.logError("mcpkit: a result ended early because reading failed", err)
	}
	return &jsonrpc.Error{Code: code, Message: cmp.Or(text, call.internalError().Message)}
}

// An outlet is a connection. It remembers its error, to tell it from those of readers.
type outlet struct {
	io.Writer
	err error
}

func (o *outlet) Write(b []byte) (n int, err error) {
	n, o.err = o.Writer.Write(b)
	return n, o.err
}

// writeTo writes the result while it reads the contents.
func (s *streamed) writeTo(w io.Writer) (err error) {
	defer recoverAs(&err) // of the reader
	members, err := s.call.server.encode(&protocol.ReadResourceResult{Cache: s.cache}, s.call.version)
	if err != nil {
		return err
	}
	member, send := `,"blob":"`, s.sendBlob
	if result.IsText(s.mime) {
		member, send = `,"text":"`, s.sendText
	}
	head := jsonx.AppendString([]byte(`{"contents":[{"uri":`), s.call.name)
	head = jsonx.AppendString(append(head, `,"mimeType":`...), s.mime)
	if _, err := w.Write(append(head, member...)); err != nil {
		return err
	}
	if err := send(w); err != nil {
		return err
	}
	_, err = w.Write(append([]byte(`"}]`), bytes.TrimPrefix(members, []byte(`{"contents":[]`))...))
	return err
}

func (s *streamed) sendBlob(w io.Writer) error {
	encoder := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := s.contents.WriteTo(encoder); err != nil {
		return err
	}
	return encoder.Close()
}

// sendText writes the contents as the inside of a JSON string. Bytes that are not UTF-8 become
// U+FFFD, since the text before them was sent already.
func (s *streamed) sendText(w io.Writer) error {
	var text []byte
	for {
		r, _, err := s.contents.ReadRune()
		if err == nil {
			text = utf8.AppendRune(text, r)
		}
		if err != nil || s.contents.Buffered() < utf8.UTFMax {
			quoted := jsonx.AppendString(nil, string(text))
			if _, err := w.Write(quoted[1 : len(quoted)-1]); err != nil {
				return err
			}
			text = text[:0]
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
