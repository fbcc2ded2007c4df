package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// HTTPSSE is a server at an http or https URL that speaks HTTP+SSE, the transport of 2024-11-05
// that Streamable HTTP replaced. [Dial] with a URL detects such servers, after a request that they
// refuse; HTTPSSE saves that request.
func HTTPSSE(url string) Target { return sseTarget(url) }

type sseTarget string

func (s sseTarget) dial(ctx context.Context, c *Client) (roundTripper, error) {
	u, err := parseURL(string(s))
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q: the scheme of HTTP+SSE is http or https", s)
	}
	return newSSEConn(ctx, c, u)
}

// newSSEConn opens the stream at u.
func newSSEConn(ctx context.Context, c *Client, u *url.URL) (roundTripper, error) {
	l := &linkConn{c: c}
	l.connect = func(ctx context.Context) (_ conn.Wire, err error) {
		if l.sse, err = openSSE(ctx, c, u); err != nil {
			return nil, err
		}
		return l.sse, nil
	}
	if _, err := l.open(ctx); err != nil {
		return nil, err
	}
	l.sse.link = l.live.link
	return l, nil
}

// An sseConn is a [conn.Wire] that reads the server's messages from a stream and posts the
// client's messages to the endpoint that the stream names (2024-11-05, basic/transports, "HTTP with SSE").
type sseConn struct {
	c        *Client
	client   *http.Client
	endpoint string
	body     io.Closer
	events   *sse.Reader
	link     *conn.Conn // that uses the wire; set before the first call

	ctx    context.Context // of the stream and of all posts; ends with the connection
	cancel context.CancelFunc
	out    chan []byte   // messages to post; closed by Close
	posted chan struct{} // closed after the last post

	endOnce sync.Once
	err     error  // why the connection is over; set by endOnce
	part    []byte // of an incomplete message; used only by Write

	mu     sync.Mutex // held while writing to out
	closed bool       // whether out is closed; guarded by mu

	postings sync.Mutex
	calls    map[jsonrpc.ID]*posting // that wait for a response; guarded by postings
}

// A posting is a call whose request is posted.
type posting struct {
	ctx context.Context // of the call
	err error           // why the POST failed; guarded by postings
}

const (
	// maxPosts limits the POSTs in flight, and also the messages that wait behind them.
	maxPosts = 64
	// postPatience limits how long Close waits until the waiting messages are posted.
	postPatience = time.Second
)

// openSSE opens the stream and waits for its first event, which must name the endpoint. It waits
// until ctx is done, but not longer than ProbeTimeout.
func openSSE(ctx context.Context, c *Client, u *url.URL) (*sseConn, error) {
	w := &sseConn{
		c: c, client: newHTTPClient(c), out: make(chan []byte, maxPosts), posted: make(chan struct{}),
		calls: map[jsonrpc.ID]*posting{},
	}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(c.base))
	limited, d := withDeadline(ctx, c.cfg.probeTimeout, errors.New("the stream named no endpoint in time"))
	defer d.stop()
	stop := context.AfterFunc(limited, w.cancel)
	err := w.open(u)
	if !stop() {
		err = context.Cause(limited)
	}
	if err != nil {
		w.cancel()
		releaseHTTPClient(w.c, w.client)
		return nil, err
	}
	return w, nil
}

func (w *sseConn) open(u *url.URL) error {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	addHeader(req.Header, w.c.cfg.header)
	req.Header.Set("Accept", sse.ContentType)
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	w.body = resp.Body
	if media := mediaType(resp.Header); resp.StatusCode != http.StatusOK || media != sse.ContentType {
		status := statusError(resp)
		if resp.StatusCode/100 == 2 {
			return fmt.Errorf("the response to GET has the content type %.100q; want text/event-stream", media)
		}
		return status
	}
	w.events = sse.NewReader(resp.Body, w.c.cfg.maxMessage)
	if w.endpoint, err = firstEndpoint(w.events, u, resp.Request.URL); err != nil {
		_ = resp.Body.Close()
		return err
	}
	// Ends when Close closes out.
	go w.postAll()
	return nil
}

// firstEndpoint reads the URL to post to. It may be relative to the URL of the stream after
// redirects. It must have the origin that was dialed: otherwise the server could redirect messages
// and credentials to a host that the user did not choose.
func firstEndpoint(events *sse.Reader, dialed, found *url.URL) (string, error) {
	first, err := events.Next()
	if err != nil {
		return "", fmt.Errorf("the stream ended before it named the endpoint: %w", err)
	}
	if first.Type != "endpoint" {
		return "", fmt.Errorf("the stream begins with the event %.100q, not with \"endpoint\"", first.Type)
	}
	endpoint, err := found.Parse(string(bytes.TrimSpace(first.Data)))
	if err != nil {
		return "", fmt.Errorf("the endpoint that the stream names: %w", err)
	}
	if !sameOrigin(endpoint, dialed) || endpoint.User != nil {
		return "", fmt.Errorf("the stream names an endpoint of another origin, %.200q", endpoint.Redacted())
	}
	return endpoint.String(), nil
}

// sameOrigin reports whether a and b have the same scheme, host and port (RFC 6454, section 5).
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// Read implements [conn.Wire].
func (w *sseConn) Read() ([]byte, error) {
	for {
		e, err := w.events.Next()
		if err != nil {
			return nil, w.end(w.why(err))
		}
		if (e.Type == "" || e.Type == "message") && e.Data != nil {
			return e.Data, nil
		}
	}
}

// end ends the connection because of err, and returns why it is over. Only the first call counts.
func (w *sseConn) end(err error) error {
	w.endOnce.Do(func() {
		w.err = err
		w.cancel()
	})
	return w.err
}

// why returns the error of the connection for a stream that ended with err.
func (w *sseConn) why(err error) error {
	var large *sse.SizeError
	switch {
	case w.ctx.Err() != nil:
		return io.EOF
	case errors.Is(err, io.EOF):
		return errors.New("the server ended the stream")
	case errors.As(err, &large):
		return fmt.Errorf("response is larger than %d bytes; raise client.MaxMessageBytes", large.Max)
	}
	return err
}

// Write implements [conn.Wire].
func (w *sseConn) Write(lines []byte) (int, error) {
	for line := range bytes.Lines(lines) {
		w.part = append(w.part, line...)
		if line[len(line)-1] != '\n' {
			break
		}
		message := w.part[:len(w.part)-1]
		w.part = nil
		if err := w.queue(message); err != nil {
			return 0, err
		}
	}
	return len(lines), nil
}

// CloseRead does nothing: a waiting Read returns when the stream ends.
func (w *sseConn) CloseRead() error { return nil }

// queue queues a message for posting. It blocks while maxPosts messages are queued.
func (w *sseConn) queue(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return io.ErrClosedPipe
	}
	select {
	case w.out <- message:
		return nil
	case <-w.ctx.Done():
		return io.ErrClosedPipe
	}
}

// postAll posts the queued messages. Requests and responses are posted concurrently, since a server
// may take long for each POST. A notification is posted before the messages behind it.
func (w *sseConn) postAll() {
	defer close(w.posted)
	var open sync.WaitGroup
	defer open.Wait()
	places := make(chan struct{}, maxPosts)
	for message := range w.out {
		m, _ := jsonrpc.Decode(message)
		if m.Request != nil && m.Request.IsNotification() {
			w.post(message, jsonrpc.ID{})
			continue
		}
		var id jsonrpc.ID // of a request
		if m.Request != nil {
			id = m.Request.ID
		}
		places <- struct{}{} // a POST holds its place for at most its call and writeTimeout
		// Ends with its POST, or with ctx.
		open.Go(func() {
			defer func() { <-places }()
			w.post(message, id)
		})
	}
}

// post posts one message unless the connection has ended. If the POST of a request fails, only the
// request with this id fails; the connection continues. The POST may wait for a login as long as its
// call does.
func (w *sseConn) post(message []byte, id jsonrpc.ID) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.postings.Lock()
	call := w.calls[id]
	w.postings.Unlock()
	if call != nil {
		defer context.AfterFunc(call.ctx, func() { time.AfterFunc(writeTimeout, cancel) })()
	} else {
		defer time.AfterFunc(writeTimeout, cancel).Stop()
	}
	send := func() error { return w.postOnce(ctx, message) }
	var err error
	if id.IsValid() {
		err = send() // the caller decides whether to send a request again
	} else {
		err = repeat(ctx, unavailable, send)
	}
	status, refused := errors.AsType[*StatusError](err)
	switch {
	case err == nil, w.ctx.Err() != nil:
	case refused && (status.Code == http.StatusNotFound || status.Code == http.StatusGone):
		_ = w.end(errNoSession)
	case id.IsValid():
		w.refuse(id, err)
	default:
		w.c.warn("client: a message did not reach the server", "error", err)
	}
}

func (w *sseConn) postOnce(ctx context.Context, message []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.endpoint, bytes.NewReader(message))
	if err != nil {
		return err
	}
	addHeader(req.Header, w.c.cfg.header)
	req.Header.Set("Content-Type", contentTypeJSON)
	resp, err := w.client.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL, which has the session ID
	}
	if err != nil {
		return lost(err)
	}
	if status := statusError(resp); status.Code/100 != 2 {
		return status
	}
	return nil
}

// refuse fails the request id with the error of its POST.
func (w *sseConn) refuse(id jsonrpc.ID, err error) {
	w.postings.Lock()
	call := w.calls[id]
	if call != nil {
		call.err = err
	}
	w.postings.Unlock()
	if call != nil {
		w.link.Answer(&jsonrpc.Response{ID: id}) // see expect
	}
}

// expect records whether the POST of the request id fails. The function that it returns ends that
// and returns the error, nil if the POST did not fail.
func (w *sseConn) expect(ctx context.Context, id jsonrpc.ID) func() error {
	call := &posting{ctx: ctx}
	w.postings.Lock()
	defer w.postings.Unlock()
	w.calls[id] = call
	return func() error {
		w.postings.Lock()
		defer w.postings.Unlock()
		delete(w.calls, id)
		return call.err
	}
}

// Close posts the queued messages, for at most postPatience, and closes the stream.
func (w *sseConn) Close() error {
	late := time.AfterFunc(postPatience, w.cancel) // also unblocks Write
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.out)
	}
	w.mu.Unlock()
	<-w.posted
	late.Stop()
	w.cancel()
	_ = w.body.Close()
	releaseHTTPClient(w.c, w.client)
	return nil
}
