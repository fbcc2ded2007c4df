package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// HTTPSSE is a server at an http or https URL that speaks HTTP+SSE of 2024-11-05, the transport
// with two endpoints that Streamable HTTP replaced. [Dial] finds that out by itself where the
// server refuses Streamable HTTP; this saves the question.
func HTTPSSE(url string) Target { return sseTarget(url) }

type sseTarget string

func (s sseTarget) dial(ctx context.Context, c *Client) (conn, error) {
	u, err := parseURL(string(s))
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q: the scheme of HTTP+SSE is http or https", s)
	}
	l, err := newSSEConn(ctx, c, u)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// newSSEConn opens the stream at u.
func newSSEConn(ctx context.Context, c *Client, u *url.URL) (*linkConn, error) {
	return newLinkConn(ctx, c, true, func(ctx context.Context) (duplex.Wire, error) { return openSSE(ctx, c, u) })
}

// An sseWire reads the messages of the server from a stream, and posts those of the client to the
// endpoint that the stream names (2024-11-05, basic/transports, "HTTP with SSE").
type sseWire struct {
	c        *Client
	client   *http.Client
	endpoint string
	body     io.Closer

	ctx    context.Context // of the stream and of all posts; ends with Close
	cancel context.CancelFunc
	in     chan []byte   // messages of the server
	out    chan []byte   // messages that wait for being posted; closed by Close
	posted chan struct{} // closed when nothing is posted any more
	ended  chan struct{} // closed when the connection is over
	err    error         // why; set before
	unread chan struct{} // closed by CloseRead

	endOnce, unreadOnce, closeOnce sync.Once

	mu     sync.Mutex // held while out is written to
	closed bool       // out is; guarded by mu
	line   []byte     // what was written of a message that is not complete; for Write alone

	refusing sync.Mutex
	refused  map[jsonrpc.ID]*StatusError // requests whose POSTs are watched; nil while not refused; guarded by refusing
}

const (
	// maxPosts is how many messages may be on their way at once, and how many may wait behind them.
	maxPosts = 64
	// postPatience is how long those that wait may take once the connection is being closed.
	postPatience = time.Second
)

// openSSE opens the stream and waits for its first event, which has to name the endpoint, as long
// as ctx and the time for probes go.
func openSSE(ctx context.Context, c *Client, u *url.URL) (*sseWire, error) {
	w := &sseWire{
		c: c, in: make(chan []byte), out: make(chan []byte, maxPosts), posted: make(chan struct{}),
		ended: make(chan struct{}), unread: make(chan struct{}),
	}
	w.client = newHTTPClient(c)
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

func (w *sseWire) open(u *url.URL) error {
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
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || media != sse.ContentType {
		status := statusError(resp)
		if resp.StatusCode/100 == 2 {
			return fmt.Errorf("GET answers with the content type %.100q, not with a stream", media)
		}
		return status
	}
	events := sse.NewReader(resp.Body, w.c.cfg.maxMessage)
	if w.endpoint, err = firstEndpoint(events, u, resp.Request.URL); err != nil {
		_ = resp.Body.Close()
		return err
	}
	// Ends with the stream, which Close ends.
	go w.read(events)
	// Ends when Close closes out.
	go w.postAll()
	return nil
}

// firstEndpoint reads where to post: a URL, or one relative to where the stream was found in the
// end, behind all redirects. An endpoint elsewhere than at the origin that was dialed would have
// messages and credentials sent to whom the user did not name.
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

// sameOrigin compares scheme, host and port (RFC 6454, section 5), however they are written.
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

// read hands the messages of the stream on until it ends.
func (w *sseWire) read(events *sse.Reader) {
	for {
		e, err := events.Next()
		if err != nil {
			w.end(w.why(err))
			return
		}
		if e.Type != "" && e.Type != "message" || e.Data == nil {
			continue
		}
		if !w.hand(e.Data) {
			w.end(io.EOF)
			return
		}
	}
}

// end says that the connection is over, and why. The first word counts.
func (w *sseWire) end(err error) {
	w.endOnce.Do(func() {
		w.err = err
		close(w.ended)
	})
}

// why says what the end of the stream means.
func (w *sseWire) why(err error) error {
	var large *sse.SizeError
	switch {
	case w.ctx.Err() != nil:
		return io.EOF
	case errors.Is(err, io.EOF):
		return &duplex.GoneError{Err: errors.New("the server ended the stream")}
	case errors.As(err, &large):
		return &duplex.GoneError{Err: fmt.Errorf("message is larger than %d bytes; raise MaxMessageBytes", large.Max)}
	}
	return &duplex.GoneError{Err: err}
}

// hand gives a message to Read.
func (w *sseWire) hand(message []byte) bool {
	select {
	case w.in <- message:
		return true
	case <-w.ctx.Done():
	case <-w.unread:
	case <-w.ended:
	}
	return false
}

func (w *sseWire) Read() ([]byte, error) {
	select {
	case message := <-w.in:
		return message, nil
	case <-w.unread:
		return nil, io.EOF
	case <-w.ended:
		return nil, w.err
	}
}

func (w *sseWire) Buffered() bool { return false }

// Write has each line posted. It waits only when too many wait already.
func (w *sseWire) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, io.ErrClosedPipe
	}
	for rest := lines; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte{'\n'})
		w.line = append(w.line, line...)
		rest = after
		if !complete {
			break
		}
		select {
		case w.out <- w.line:
			w.line = nil
		case <-w.ended:
			return 0, w.err
		case <-w.ctx.Done():
			return 0, io.ErrClosedPipe
		}
	}
	return len(lines), nil
}

// postAll posts what is written. Requests and answers do not wait for each other: a server may take
// its time for each POST. What their order means something for keeps it: a notification is taken
// before what comes behind it is sent, and a request before it is cancelled.
func (w *sseWire) postAll() {
	defer close(w.posted)
	var (
		open   sync.WaitGroup
		places = make(chan struct{}, maxPosts)
		mu     sync.Mutex
		taken  = map[jsonrpc.ID]chan struct{}{} // closed when the POST of the request is over; guarded by mu
	)
	defer open.Wait()
	for message := range w.out {
		m, _ := jsonrpc.Decode(message)
		if m.Request != nil && m.Request.IsNotification() && m.Request.Method != protocol.NotificationCancelled {
			w.post(message, jsonrpc.ID{})
			continue
		}
		var (
			id           jsonrpc.ID // of the request that the message is
			after, while chan struct{}
		)
		if m.Request != nil {
			mu.Lock()
			if id = m.Request.ID; id.IsValid() {
				while = make(chan struct{})
				taken[id] = while
			} else if cancelled, ok := jsonrpc.ParseID(m.Request.Param("requestId")); ok {
				after = taken[cancelled]
			}
			mu.Unlock()
		}
		places <- struct{}{} // which no POST keeps for longer than writeTimeout
		// Ends with its POST, and with ctx.
		open.Go(func() {
			defer func() { <-places }()
			if after != nil {
				<-after
			}
			w.post(message, id)
			if while != nil {
				mu.Lock()
				delete(taken, id)
				mu.Unlock()
				close(while)
			}
		})
	}
}

// post sends one message, unless nobody is there to take it. What the server refuses fails the
// request that it was, which has this id; the connection goes on.
func (w *sseWire) post(message []byte, id jsonrpc.ID) {
	select {
	case <-w.ended:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(w.ctx, writeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.endpoint, bytes.NewReader(message))
	if err != nil {
		w.end(err)
		return
	}
	addHeader(req.Header, w.c.cfg.header)
	req.Header.Set("Content-Type", contentTypeJSON)
	resp, err := w.client.Do(req)
	switch {
	case err != nil && w.ctx.Err() != nil:
		w.end(io.ErrClosedPipe)
		return
	case err != nil:
		w.end(&duplex.GoneError{Err: err})
		return
	}
	status := statusError(resp) // or a success
	switch {
	case status.Code/100 == 2:
	case status.Code == http.StatusNotFound || status.Code == http.StatusGone:
		w.end(&duplex.GoneError{Err: errNoSession})
	case id.IsValid():
		w.refuse(id, status)
	}
}

// refuse ends the request id by the status that its POST came back with.
func (w *sseWire) refuse(id jsonrpc.ID, status *StatusError) {
	w.refusing.Lock()
	if _, waits := w.refused[id]; waits {
		w.refused[id] = status
	}
	w.refusing.Unlock()
	w.hand(jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: id, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", status)}))
}

// expect begins to note how the POST of the request id is refused, until the function that it
// returns is called, which returns that.
func (w *sseWire) expect(id jsonrpc.ID) func() *StatusError {
	w.refusing.Lock()
	defer w.refusing.Unlock()
	if w.refused == nil {
		w.refused = map[jsonrpc.ID]*StatusError{}
	}
	w.refused[id] = nil
	return func() *StatusError {
		w.refusing.Lock()
		defer w.refusing.Unlock()
		status := w.refused[id]
		delete(w.refused, id)
		return status
	}
}

func (w *sseWire) CloseRead() error {
	w.unreadOnce.Do(func() { close(w.unread) })
	return nil
}

// Close ends the stream, when what was written is posted or that takes too long.
func (w *sseWire) Close() error {
	w.closeOnce.Do(func() {
		late := time.AfterFunc(postPatience, w.cancel) // which also ends a Write that waits
		w.mu.Lock()
		w.closed = true
		close(w.out)
		w.mu.Unlock()
		<-w.posted
		late.Stop()
		w.cancel()
		_ = w.body.Close()
		<-w.ended
		releaseHTTPClient(w.c, w.client)
	})
	return nil
}
