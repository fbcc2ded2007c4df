package mcpkit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

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
	s := &streamed{call, mime, bufio.NewReaderSize(timedReader{r, call.limit}, firstBlock), cache}
	if closer, ok := r.(io.Closer); ok {
		shut := sync.OnceFunc(func() { call.limit.clean(func() { _ = closer.Close() }) })
		stop := context.AfterFunc(call.limit, shut)
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
