package httpserve

import (
	"io"
	"net/http"
	"time"
)

// Limits of what is read of the body of a request that is refused.
const (
	// DiscardBytes is how much of the rest of a body is read and thrown away.
	//
	//limit:message bytes that are read of the body of a refused HTTP request | the connection is closed
	DiscardBytes = 16 << 20
	// DiscardTimeout is how long that may take.
	//
	//limit:message time in which the body of a refused HTTP request is read | the connection is closed
	DiscardTimeout = 5 * time.Second
)

// Discard reads the rest of the body of a request that is about to be refused. Many clients write the whole body before they read: if
// the connection were closed on them they would see an error of the network in place of the answer. Over HTTP/2 a stream ends without
// that, and a client that waits to be told to go on (100-continue) sends nothing.
func Discard(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody || r.ContentLength > DiscardBytes || r.Header.Get("Expect") != "" {
		return
	}
	rc := http.NewResponseController(w)
	if rc.SetReadDeadline(time.Now().Add(DiscardTimeout)) != nil {
		return // nothing would end the reading
	}
	if _, err := io.CopyN(io.Discard, r.Body, DiscardBytes); err == io.EOF {
		_ = rc.SetReadDeadline(time.Time{})
	}
}
