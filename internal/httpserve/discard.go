package httpserve

import (
	"io"
	"net/http"
	"time"
)

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
