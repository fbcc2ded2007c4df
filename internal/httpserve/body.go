package httpserve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
)

// Limits of the bodies of requests.
const (
	// BodyTimeout limits the time to receive the body of a request.
	BodyTimeout = 30 * time.Second

	// FreeBodyBytes of each body do not count against the limit of bytes in memory: a connection
	// costs as much, and clients must be able to send cancellations and responses at any time.
	FreeBodyBytes = 16 << 10
)

// A BodyError tells why a body was not read, and which status to respond with.
type BodyError struct {
	Status int
	Text   string
}

// ReadBody reads the whole body of r, of at most limit bytes. The memory for it is taken from held,
// except for [FreeBodyBytes]. The result belongs to the caller.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64, held *conn.Share) ([]byte, *BodyError) {
	if r.ContentLength > limit {
		return nil, unreadable(&http.MaxBytesError{Limit: limit})
	}
	// Without a deadline a client could hold the connection by sending nothing. If the writer has
	// no deadlines, the server around it must set one.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(BodyTimeout))
	body, err := readAll(r, limit, held)
	if err != nil {
		return nil, unreadable(err)
	}
	_ = rc.SetReadDeadline(time.Time{})
	return body, nil
}

// readAll reads into one buffer, which grows only as data arrives.
func readAll(r *http.Request, limit int64, held *conn.Share) ([]byte, error) {
	size := int64(FreeBodyBytes)
	if r.ContentLength >= 0 { // a hint: the body may have another length
		size = min(size, r.ContentLength+1) // with room to see the end
	}
	body := make([]byte, 0, size)
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, &http.MaxBytesError{Limit: limit}
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, err
		case len(body) == cap(body):
			larger := max(2*cap(body), 512)
			if !held.Take(int64(max(larger-max(cap(body), FreeBodyBytes), 0))) {
				return nil, conn.ErrNoRoom
			}
			body = append(make([]byte, 0, larger), body...)
		}
	}
}

func unreadable(err error) *BodyError {
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isTooLarge: // for us, or for middleware
		return &BodyError{http.StatusRequestEntityTooLarge, fmt.Sprintf("request body is larger than %d bytes", tooLarge.Limit)}
	case errors.Is(err, conn.ErrNoRoom):
		return &BodyError{http.StatusServiceUnavailable, conn.ErrNoRoom.Message}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &BodyError{http.StatusRequestTimeout, fmt.Sprintf("body took longer than %v", BodyTimeout)}
	}
	return &BodyError{http.StatusBadRequest, "body could not be read"}
}

// Limits for reading the body of a refused request.
const (
	// DiscardBytes limits the bytes that are read and dropped.
	DiscardBytes = 16 << 20
	// DiscardTimeout limits the time for that.
	DiscardTimeout = 5 * time.Second
)

// Discard reads the rest of the body of a request that is about to be refused. Many clients write
// the whole body before they read: if the server closed the connection, they would see a network
// error instead of the response. HTTP/2 does not need this, and a client that waits for
// 100-continue sends nothing.
func Discard(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody || r.ContentLength > DiscardBytes || r.Header.Get("Expect") != "" {
		return
	}
	rc := http.NewResponseController(w)
	if rc.SetReadDeadline(time.Now().Add(DiscardTimeout)) != nil {
		return // the read could block without end
	}
	_, _ = io.CopyN(io.Discard, r.Body, DiscardBytes)
}
