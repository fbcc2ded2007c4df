package httpserve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
)

// Limits of the bodies of requests.
const (
	// BodyTimeout limits the time to receive the body of a request.
	BodyTimeout = 30 * time.Second

	// FreeBodyBytes of each body do not count against the limit of bytes in memory: a connection
	// costs as much, and clients must be able to send cancellations and responses at any time.
	FreeBodyBytes = 16 << 10

	// trustedBytes is how much memory the declared length of a body may claim before it arrives.
	trustedBytes = 64 << 10
)

// A BodyError tells why a body was not read, and which status to respond with.
type BodyError struct {
	Status int
	Text   string
}

// Error returns e.Text.
func (e *BodyError) Error() string { return e.Text }

// ReadBody reads the whole body of r, of at most limit bytes. The memory for it is taken from held,
// except for [FreeBodyBytes]. The result belongs to the caller.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64, held *admission.Held) ([]byte, *BodyError) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	// Without a deadline a client could hold the connection by sending nothing. If the writer has
	// no deadlines, the server around it must set one.
	rc := http.NewResponseController(w)
	timed := rc.SetReadDeadline(time.Now().Add(BodyTimeout)) == nil
	body, err := readBody(r, limit, held)
	if timed && err == nil {
		_ = rc.SetReadDeadline(time.Time{})
	}
	return body, err
}

// readBody reads a body whose declared length is within limit. The length is only a hint: a
// middleware may have decompressed the body, and the client may never send what it declared.
func readBody(r *http.Request, limit int64, held *admission.Held) ([]byte, *BodyError) {
	size := int64(512)
	if r.ContentLength >= 0 {
		size = min(r.ContentLength, trustedBytes) + 1 // room to see the end
	}
	var body []byte
	for {
		if !held.Take(size - max(int64(cap(body)), FreeBodyBytes+1)) {
			return nil, &BodyError{http.StatusServiceUnavailable, BusyBytes}
		}
		body = append(make([]byte, 0, size), body...)
		for len(body) < cap(body) {
			n, err := r.Body.Read(body[len(body):cap(body)])
			body = body[:len(body)+n]
			switch {
			case int64(len(body)) > limit:
				return nil, tooLarge(limit)
			case err == io.EOF:
				return body, nil
			case err != nil:
				return nil, unreadable(err)
			}
		}
		declared := r.ContentLength + 1
		if size *= 2; declared > int64(len(body)) {
			size = min(size, declared)
		}
		size = min(size, limit+1)
	}
}

func tooLarge(limit int64) *BodyError {
	return &BodyError{http.StatusRequestEntityTooLarge, fmt.Sprintf("body is larger than %d bytes", limit)}
}

// BusyBytes is the error text for a request for which there is no memory left.
const BusyBytes = "busy: too many bytes of requests and unread responses are in memory; try again later"

func unreadable(err error) *BodyError {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &BodyError{http.StatusRequestEntityTooLarge, "body is larger than this server takes"}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &BodyError{http.StatusRequestTimeout, fmt.Sprintf("body took longer than %v", BodyTimeout)}
	}
	return &BodyError{http.StatusBadRequest, "body could not be read"}
}
