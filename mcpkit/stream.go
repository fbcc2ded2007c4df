package mcpkit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// streamed is the result of a resource whose contents are read while they are sent, whatever their
// size.
type streamed struct {
	call      *Call
	uri, mime string
	contents  *bufio.Reader // its buffer has the first block
	cache     protocol.Cache
}

const (
	// sniffed is how many bytes are used to detect a media type.
	sniffed = 3072
	// firstBlock is how many bytes are read before a response begins. An error until then is an
	// ordinary error, and a reader that ends until then an ordinary result.
	firstBlock = 64 << 10
)

// newStreamed returns the contents of r, as a plain result if the first block is everything. The
// reader may use the context of the call until it is closed: when the call is over, and when its time
// is up, since that may end a Read that blocks.
func newStreamed(ctx context.Context, call *Call, res *resource, r io.Reader) (Result, error) {
	s := &streamed{call: call, uri: call.name, mime: res.mime, contents: bufio.NewReaderSize(r, firstBlock), cache: cacheHint(res.ttl, res.private)}
	if closer, ok := r.(io.Closer); ok {
		shut := sync.OnceFunc(func() { s.closeReader(closer) })
		stop := context.AfterFunc(&call.limit, shut)
		call.OnEnd(func() { stop(); shut() })
	}
	first, err := s.contents.Peek(firstBlock)
	if err != nil && err != io.EOF {
		return nil, cmp.Or(ctx.Err(), err)
	}
	if s.mime == "" {
		s.mime = mimetype.Detect(first[:min(len(first), sniffed)]).String()
	}
	if err == nil {
		return s, nil
	}
	contents := protocol.ResourceContents{URI: s.uri, MIMEType: s.mime, Blob: first}
	if isText(s.mime) {
		text := validText(first)
		contents.Text, contents.Blob = &text, nil
	}
	return &protocol.ReadResourceResult{Contents: []protocol.ResourceContents{contents}, Cache: s.cache}, nil
}

// closeReader closes the reader. Its error does not matter for what was read; its panic is logged.
func (s *streamed) closeReader(c io.Closer) {
	defer func() {
		if v := recover(); v != nil {
			s.call.server.config.logger.ErrorContext(s.call.ctx, "mcpkit: closing a reader panicked",
				"ref", s.call.Ref(), "method", s.call.row.method, "uri", s.call.name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	_ = c.Close()
}

// A readError is an error of the reader or the call, not of the connection.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// block returns what was read and is not sent: at least one character, unless it is the last block.
// The error is a *readError.
func (s *streamed) block() (b []byte, last bool, err error) {
	defer func() {
		if err != nil {
			err = &readError{err}
		}
	}()
	defer recoverAs(&err)
	_, err = s.contents.Peek(utf8.UTFMax)
	if ended := s.call.limit.ended(); ended != nil {
		return nil, false, ended
	}
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	last = err == io.EOF
	b, err = s.contents.Peek(s.contents.Buffered())
	return b, last, err
}

// validText returns b with U+FFFD for each byte that is not UTF-8, like streamed contents.
func validText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}

func (s *streamed) broken(call *Call, err error) error {
	if failed, ok := errors.AsType[*readError](err); ok {
		return call.server.brokeOff(call, failed.err)
	}
	return err
}

// brokeOff returns the error for contents that could not be read to their end, and logs it, since a
// caller over HTTP only sees that the connection breaks.
func (s *Server) brokeOff(call *Call, err error) (told *jsonrpc.Error) {
	defer func() {
		if v := recover(); v != nil { // in the methods of the error
			s.config.logger.ErrorContext(call.ctx, "mcpkit: a result or an error panicked",
				"ref", call.Ref(), "method", call.row.method, "uri", call.name, "panic", v, "stack", string(debug.Stack()))
			told = jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error (ref %s)", call.Ref())
		}
	}()
	if errors.Is(err, context.Canceled) && call.ctx.Err() != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the call was cancelled")
	}
	ref := call.Ref()
	attrs := []any{"ref", ref, "method", call.row.method, "uri", call.name, "error", err.Error()}
	if p, ok := errors.AsType[*PanicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	s.config.logger.ErrorContext(call.ctx, "mcpkit: a result ended early because reading failed", attrs...)
	text := "internal error (ref " + ref + ")"
	if user, ok := errors.AsType[UserMessenger](err); ok {
		text = user.UserMessage() + " (ref " + ref + ")"
	} else if s.config.exposeErrors {
		text = err.Error() + " (ref " + ref + ")"
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}
}

func (s *streamed) writeTo(w io.Writer, call *Call) error {
	members, err := call.server.encode(&protocol.ReadResourceResult{Cache: s.cache}, call.version)
	if err != nil {
		return err
	}
	head := append([]byte(nil), `{"contents":[{"uri":`...)
	head = jsonx.AppendString(head, s.uri)
	head = append(head, `,"mimeType":`...)
	head = jsonx.AppendString(head, s.mime)
	text := isText(s.mime)
	if text {
		head = append(head, `,"text":"`...)
	} else {
		head = append(head, `,"blob":"`...)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	keep, put := partOfBlob, base64.StdEncoding.AppendEncode
	if text {
		keep, put = incomplete, appendText
	}
	if err := s.send(w, keep, put); err != nil {
		return err
	}
	_, err = w.Write(append([]byte(`"}]`), bytes.TrimPrefix(members, []byte(`{"contents":[]`))...))
	return err
}

// send writes the contents, which put turns into the inside of a JSON string. keep says how many
// bytes at the end of a block have to wait for the next one.
func (s *streamed) send(w io.Writer, keep func([]byte) int, put func(dst, b []byte) []byte) error {
	var out []byte
	for {
		b, last, err := s.block()
		if err != nil {
			return err
		}
		end := len(b)
		if !last {
			end -= keep(b)
		}
		out = put(out[:0], b[:end])
		if _, err := w.Write(out); err != nil || last {
			return err
		}
		_, _ = s.contents.Discard(end) // it is in the buffer
	}
}

// partOfBlob returns how many bytes at the end of b are not yet four digits of base 64.
func partOfBlob(b []byte) int { return len(b) % 3 }

// appendText appends the inside of a JSON string. Bytes that are not UTF-8 become U+FFFD, since the
// text before them was sent already.
func appendText(dst, b []byte) []byte {
	start := len(dst)
	dst = jsonx.AppendString(dst, b)
	return append(dst[:start], dst[start+1:len(dst)-1]...)
}

// incomplete returns how many bytes at the end of b are the beginning of a character.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
