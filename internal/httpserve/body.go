package httpserve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
)

// Limits of the bodies of requests.
const (
	// BodyTimeout limits the time to receive the body of a request.
	//
	//limit:message time of the body of an HTTP request | 408: `body took longer than `
	BodyTimeout = 30 * time.Second

	// FreeBodyBytes of each body do not count against the memory limit of the caller: a connection
	// costs as much, and a caller at its limit must still be able to send cancellations and
	// responses.
	FreeBodyBytes = 16 << 10

	// blockBytes is the block size for reading a body whose length is not known or not trusted.
	blockBytes = 64 << 10
)

// A BodyError tells why a body was not read, and which status to respond with.
type BodyError struct {
	Status int
	Text   string
}

// Error returns e.Text.
func (e *BodyError) Error() string { return e.Text }

var blocks = sync.Pool{New: func() any { return new([blockBytes]byte) }}

// ReadBody reads the whole body of r, of at most limit bytes. Its bytes count against account as
// they arrive. Reading takes at most twice the length of the body in memory, for a moment: the
// blocks are joined at the end. The result belongs to the caller.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64, account *admission.Account) ([]byte, *BodyError) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	// Without a deadline a client could hold the connection by sending nothing. If the writer has
	// no deadlines, the server around it must set one.
	rc := http.NewResponseController(w)
	timed := rc.SetReadDeadline(time.Now().Add(BodyTimeout)) == nil
	body, err := readBody(r, limit, account)
	if timed && err == nil {
		_ = rc.SetReadDeadline(time.Time{})
	}
	return body, err
}

// readBody reads a body whose declared length is within limit. The length is only a hint: a
// middleware may have decompressed the body, and the client may never send what it declared.
func readBody(r *http.Request, limit int64, account *admission.Account) ([]byte, *BodyError) {
	hint := int64(512)
	if r.ContentLength >= 0 {
		hint = min(r.ContentLength, blockBytes) + 1 // room to see the end
	}
	first := make([]byte, hint)
	n, ended, err := fill(r.Body, first)
	if err != nil {
		return nil, err
	}
	first = first[:n]
	if ended {
		if int64(n) > limit {
			return nil, tooLarge(limit)
		}
		if !account.Spend(int64(n) - FreeBodyBytes) {
			return nil, busyBytes()
		}
		return first, nil
	}
	return readBlocks(r.Body, first, limit, account)
}

// readBlocks reads the rest of the body after first, and returns all of it.
func readBlocks(body io.Reader, first []byte, limit int64, account *admission.Account) ([]byte, *BodyError) {
	var held []*[blockBytes]byte
	defer func() {
		for _, b := range held {
			blocks.Put(b)
		}
	}()
	total := int64(len(first))
	for ended := false; !ended; {
		if total > limit {
			return nil, tooLarge(limit)
		}
		if !account.Spend(blockBytes) {
			return nil, busyBytes()
		}
		b := blocks.Get().(*[blockBytes]byte)
		held = append(held, b)
		var n int
		var err *BodyError
		if n, ended, err = fill(body, b[:]); err != nil {
			return nil, err
		}
		total += int64(n)
	}
	if total > limit {
		return nil, tooLarge(limit)
	}
	whole := append(make([]byte, 0, total), first...)
	for _, b := range held {
		whole = append(whole, b[:min(int64(blockBytes), total-int64(len(whole)))]...)
	}
	return whole, nil
}

// fill reads until buf is full or the body ends.
func fill(body io.Reader, buf []byte) (n int, ended bool, _ *BodyError) {
	for n < len(buf) {
		m, err := body.Read(buf[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, unreadable(err)
		}
	}
	return n, false, nil
}

func tooLarge(limit int64) *BodyError {
	return &BodyError{http.StatusRequestEntityTooLarge, fmt.Sprintf("body is larger than %d bytes", limit)}
}

func busyBytes() *BodyError {
	return &BodyError{http.StatusServiceUnavailable, BusyBytes}
}

// BusyBytes is the error text for a caller whose requests and unread responses hold too much
// memory.
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
