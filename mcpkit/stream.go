package mcpkit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// streamed is the result of a resource whose contents are read while they are sent, so that their size does not matter.
type streamed struct {
	uri, mime string
	from      *bufio.Reader
	cache     protocol.Cache
	release   func() // closes the reader and lets go of what it needs; may be called often
}

// sniffed is how many bytes are looked at to find a media type.
const sniffed = 3072

// newStreamed prepares the contents of r for sending. The reader may use the context of the call until it is closed.
func newStreamed(ctx context.Context, call *Call, mime string, r io.Reader) *streamed {
	s := &streamed{uri: call.name, mime: mime, from: bufio.NewReaderSize(r, 32<<10)}
	closer, _ := r.(io.Closer)
	s.release = sync.OnceFunc(func() {
		if closer != nil {
			closer.Close()
		}
	})
	// A response that is never sent is never read: the end of the request closes the reader then.
	context.AfterFunc(call.ctx, s.release)
	if s.mime == "" {
		head, _ := s.from.Peek(sniffed) // an error comes again when the rest is read
		s.mime = mimetype.Detect(head).String()
	}
	return s
}

// keep runs f, too, when the contents were sent.
func (s *streamed) keep(f func()) {
	release := s.release
	s.release = func() { release(); f() }
}

// response answers the call with the contents.
func (s *streamed) response(srv *Server, call *Call) *jsonrpc.Response {
	return &jsonrpc.Response{ID: call.req.ID, Stream: func(w io.Writer) error {
		defer s.release()
		return s.writeTo(w, srv, call.version)
	}}
}

func (s *streamed) writeTo(w io.Writer, srv *Server, v protocol.Version) error {
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
	send := s.sendBlob
	if text {
		send = s.sendText
	}
	if err := send(w); err != nil {
		return err
	}
	tail := []byte(`"}]`)
	if v.Modern() {
		cache, err := jsonx.Marshal(s.cache)
		if err != nil {
			return err
		}
		tail = append(append(tail, ','), bytes.TrimSuffix(bytes.TrimPrefix(cache, []byte{'{'}), []byte{'}'})...)
		tail = append(tail, `,"resultType":"complete","_meta":`...)
		tail = srv.appendServerMeta(tail)
	}
	_, err := w.Write(append(tail, '}'))
	return err
}

func (s *streamed) sendBlob(w io.Writer) error {
	enc := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := io.Copy(enc, s.from); err != nil {
		return err
	}
	return enc.Close()
}

// sendText sends text as the inside of a JSON string. A character that a read cuts in two waits for its rest; bytes that
// are no UTF-8 become U+FFFD, since what came before them is on its way already.
func (s *streamed) sendText(w io.Writer) error {
	buf := make([]byte, 32<<10)
	var out []byte
	rest := 0
	for {
		n, err := s.from.Read(buf[rest:])
		n += rest
		end := n
		if err == nil {
			end = n - incomplete(buf[:n])
		}
		out = jsonx.AppendString(out[:0], buf[:end])
		if _, err := w.Write(out[1 : len(out)-1]); err != nil {
			return err
		}
		rest = copy(buf, buf[end:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// incomplete is how many bytes at the end of b are the beginning of a character.
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
