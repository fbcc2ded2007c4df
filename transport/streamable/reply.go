package streamable

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// largeReply is the size from which a reply may exceed the buffers of the connection, so that
// writing it may wait for the client.
const largeReply = 32 << 10

// refuse returns an error response of the transport itself. The caller sets its ID if there is one.
func refuse(status int, format string, args ...any) *jsonrpc.Response {
	return &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...), HTTPStatus: status}
}

// busy refuses a request that exceeds a limit or comes during the shutdown. The client may retry it.
func busy(text string) *jsonrpc.Response {
	return &jsonrpc.Response{
		Error:      jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", text),
		HTTPStatus: http.StatusServiceUnavailable, RetryAfter: time.Second,
	}
}

func shuttingDown() *jsonrpc.Response { return busy("server is shutting down") }

// writeJSON writes resp as a JSON reply. The status applies if resp has none.
func (t *timedWriter) writeJSON(resp *jsonrpc.Response, status int) {
	if resp.RetryAfter > 0 {
		seconds := int64((resp.RetryAfter + time.Second - 1) / time.Second)
		t.w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	status = cmp.Or(resp.HTTPStatus, status)
	if resp.Error == nil && len(resp.Result) >= largeReply { // which is not copied
		t.writeParts(status, jsonrpc.AppendHead(nil, resp), resp.Result, []byte{'}'})
		return
	}
	t.writeParts(status, jsonrpc.AppendResponse(nil, resp))
}

// writeParts writes the parts of a JSON reply.
func (t *timedWriter) writeParts(status int, parts ...[]byte) {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	header := t.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(size))
	t.limit()
	t.w.WriteHeader(status)
	for _, part := range parts {
		if _, err := t.w.Write(part); err != nil {
			return
		}
	}
}

// Reserve reserves n bytes until the POST ends, in place of those reserved for the request before.
// Small results do not count. It implements [transport.Reserver].
func (e *exchange) Reserve(n int64) error {
	if n < largeReply {
		n = 0
	}
	if !e.held.Take(n - e.reserved) {
		return conn.ErrNoRoom
	}
	e.reserved = n
	return nil
}

// hold returns resp with its result in memory until the POST ends. If too much is unread, it returns
// an error response instead.
func (e *exchange) hold(resp *jsonrpc.Response) *jsonrpc.Response {
	if isStreamed(resp) {
		w := &conn.Held{Limit: cmp.Or(resp.MaxHeld, conn.DefaultMaxHeld), Spend: e.held.Take}
		if err := resp.Stream(w); err != nil {
			return &jsonrpc.Response{ID: resp.ID, Error: resp.Broken(err)}
		}
		return &jsonrpc.Response{ID: resp.ID, Result: w.Text}
	}
	if resp.Error == conn.ErrNoRoom || e.Reserve(int64(len(resp.Result))) != nil {
		full := busy(conn.ErrNoRoom.Message)
		full.ID = resp.ID
		return full
	}
	return resp
}

// A timedWriter writes a reply, and limits the time of each write.
type timedWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error // of the connection

	// Of an event stream:
	flush func() error
	every time.Duration // how long it may be silent
	alive *time.Timer   // runs out when it was silent
}

func (h *Handler) newWriter(w http.ResponseWriter) timedWriter {
	return timedWriter{w: w, rc: http.NewResponseController(w), every: h.opts.KeepAlive}
}

// Write writes a part of the reply.
func (t *timedWriter) Write(p []byte) (n int, err error) {
	t.limit()
	n, t.err = t.w.Write(p)
	return n, t.err
}

// limit gives the client until writeTimeout to take what is written next. net/http removes the
// deadline after the request.
func (t *timedWriter) limit() {
	_ = t.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // if it fails, the server sets its own
}

// beginStream sends the head of an event stream.
func (t *timedWriter) beginStream() {
	header := t.w.Header()
	header.Set("Content-Type", sse.ContentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	t.w.WriteHeader(http.StatusOK)
}

// writeEvent writes the parts of an event and flushes them. Then it removes the deadline, which over
// HTTP/2 ends a silent stream.
func (t *timedWriter) writeEvent(parts ...[]byte) error {
	t.limit()
	for _, part := range parts {
		if _, t.err = t.w.Write(part); t.err != nil {
			return t.err
		}
	}
	if t.err = t.flush(); t.err == nil {
		_ = t.rc.SetWriteDeadline(time.Time{})
	}
	t.alive.Reset(t.every)
	return t.err
}

// A dataWriter continues the data of an event.
type dataWriter struct{ w io.Writer }

func (d dataWriter) Write(p []byte) (int, error) {
	if _, err := d.w.Write(sse.Data(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
