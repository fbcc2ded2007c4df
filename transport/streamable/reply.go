package streamable

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Shared by all replies; net/http and middleware replace header values and never write into them.
var (
	contentTypeJSON   = []string{"application/json"}
	contentTypeStream = []string{"text/event-stream"}
	noStore           = []string{"no-store"}
	noBuffering       = []string{"no"}
)

// largeReply is the size from which a reply may exceed the buffers of the connection, so that
// writing it may wait for the client.
const largeReply = 32 << 10

// retryBusy is the retry time for a client that the server had no room for.
const retryBusy = time.Second

// A refusal is an error response of the transport itself.
type refusal struct {
	status int
	err    *jsonrpc.Error
	retry  time.Duration // 0 for no retry time
}

func refuse(status, code int, format string, args ...any) *refusal {
	return &refusal{status: status, err: jsonrpc.Errorf(code, format, args...)}
}

// busy refuses a request that exceeds a limit or comes during the shutdown.
func busy(text string) *refusal {
	return &refusal{http.StatusServiceUnavailable, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", text), retryBusy}
}

func invalidRequest(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...)
}

func (f *refusal) write(w http.ResponseWriter) { f.writeTo(w, jsonrpc.ID{}) }

func (f *refusal) writeTo(w http.ResponseWriter, id jsonrpc.ID) {
	writeBad(w, &jsonrpc.Response{ID: id, Error: f.err, HTTPStatus: f.status, RetryAfter: f.retry})
}

func writeError(w http.ResponseWriter, status int, err *jsonrpc.Error) {
	writeBad(w, &jsonrpc.Response{Error: err, HTTPStatus: status})
}

// writeBad writes an error response.
func writeBad(w http.ResponseWriter, resp *jsonrpc.Response) {
	status := resp.HTTPStatus
	if status == 0 {
		status = http.StatusBadRequest
	}
	setRetry(w, resp)
	_ = writeBody(w, status, jsonrpc.AppendResponse(nil, resp))
}

// writeBody writes the parts of a JSON reply.
func writeBody(w http.ResponseWriter, status int, parts ...[]byte) error {
	header := w.Header()
	header["Content-Type"] = contentTypeJSON
	header["Content-Length"] = []string{strconv.Itoa(size(parts))}
	w.WriteHeader(status)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func size(parts [][]byte) int {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	return n
}

// writeReply writes resp as a JSON reply.
func (p *post) writeReply(resp *jsonrpc.Response) {
	if resp.Stream != nil {
		setRetry(p.w, resp)
		writeStreamed(p.w, p.r, cmp.Or(resp.HTTPStatus, http.StatusOK), resp)
		return
	}
	resp = p.afford(resp)
	setRetry(p.w, resp)
	status := cmp.Or(resp.HTTPStatus, http.StatusOK)
	if resp.Error == nil && len(resp.Result) >= largeReply { // which is not copied
		p.writeTimed(status, jsonrpc.AppendHead(nil, resp), resp.Result, closing)
		return
	}
	p.writeTimed(status, jsonrpc.AppendResponse(nil, resp))
}

var closing = []byte{'}'}

// setRetry adds the header field with the retry time of resp.
func setRetry(w http.ResponseWriter, resp *jsonrpc.Response) {
	if resp.RetryAfter > 0 {
		w.Header().Set("Retry-After", wholeSeconds(resp.RetryAfter))
	}
}

// wholeSeconds rounds a duration up to seconds for a header field.
func wholeSeconds(d time.Duration) string {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(seconds, 10)
}

// writeTimed writes the parts of a JSON reply with a deadline. If the server has a WriteTimeout, its deadline
// began with the request, and the method may have taken longer.
func (p *post) writeTimed(status int, parts ...[]byte) {
	w := p.w
	server, _ := p.r.Context().Value(http.ServerContextKey).(*http.Server)
	timeout := server != nil && server.WriteTimeout > 0
	if !timeout && size(parts) < largeReply {
		_ = writeBody(w, status, parts...)
		return
	}
	set := p.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil
	_ = writeBody(w, status, parts...)
	if flush := httpserve.Flusher(w); set && flush != nil && !timeout {
		// The next request on the connection may be for a handler that sets no deadline.
		if flush() == nil {
			_ = p.rc.SetWriteDeadline(time.Time{})
		}
	}
}

// writeStreamed writes a JSON reply of unknown length. If the stream fails, it closes the
// connection so that the reply does not look complete.
func writeStreamed(w http.ResponseWriter, r *http.Request, status int, resp *jsonrpc.Response) {
	w.Header()["Content-Type"] = contentTypeJSON
	rc := http.NewResponseController(w)
	out := &timedWriter{w: w, rc: rc, status: status}
	if err := jsonrpc.WriteResponse(out, resp); err != nil {
		if !out.begun {
			writeBad(w, &jsonrpc.Response{ID: resp.ID, Error: resp.Broken(err), HTTPStatus: http.StatusInternalServerError})
			return
		}
		panic(http.ErrAbortHandler)
	}
	if flush := httpserve.Flusher(w); flush != nil && flush() == nil {
		clearWriteDeadline(rc, r)
	}
}

// clearWriteDeadline removes the deadline of the last write, unless the server sets its own for
// each request.
func clearWriteDeadline(rc *http.ResponseController, r *http.Request) {
	if server, _ := r.Context().Value(http.ServerContextKey).(*http.Server); server == nil || server.WriteTimeout <= 0 {
		_ = rc.SetWriteDeadline(time.Time{})
	}
}

// A timedWriter sets a new deadline for every write.
type timedWriter struct {
	w      io.Writer
	rc     *http.ResponseController
	status int
	begun  bool
	err    error // of the connection
}

func (t *timedWriter) Write(p []byte) (int, error) {
	if !t.begun {
		t.begun = true
		if w, ok := t.w.(http.ResponseWriter); ok && t.status != 0 {
			w.WriteHeader(t.status)
		}
	}
	_ = t.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := t.w.Write(p)
	if err != nil {
		t.err = err
	}
	return n, err
}
