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
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Limits of HTTP.
const (
	maxRedirects    = 5 // redirects of one HTTP request
	maxErrorBody    = 64 << 10
	maxSessionID    = 1024
	maxServerCalls  = 16      // requests of a legacy HTTP server in progress at a time
	maxServerBytes  = 8 << 20 // bytes of these requests
	cancelPatience  = 5 * time.Second
	drainPatience   = 50 * time.Millisecond // for the end of a stream after its response
	maxDrained      = 4 << 10
	contentTypeJSON = "application/json"
)

// An httpConn is the client's end of Streamable HTTP, for all versions.
type httpConn struct {
	c      *Client
	target *url.URL
	client *http.Client
	open   context.Context // ends in close
	cancel context.CancelFunc
	asked  conn.Ledger // requests of a legacy server; it may cancel one on a different stream

	mu        sync.Mutex
	version   protocol.Version   // agreed on; guarded by mu
	session   string             // guarded by mu
	listening context.CancelFunc // ends the stream of the session; guarded by mu
	heard     string             // the session that this stream belongs to; guarded by mu
}

func newHTTPConn(c *Client, u *url.URL) *httpConn {
	h := &httpConn{
		c: c, target: u, client: newHTTPClient(c),
		asked: conn.Ledger{Limits: conn.Tally{Calls: maxServerCalls, Bytes: maxServerBytes}},
	}
	h.open, h.cancel = context.WithCancel(context.WithoutCancel(c.base))
	return h
}

// newHTTPClient returns a copy of the user's HTTP client, or one with its own connections.
func newHTTPClient(c *Client) *http.Client {
	client := new(http.Client)
	if c.cfg.httpClient != nil {
		*client = *c.cfg.httpClient
	} else {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = own.MaxIdleConns // all connections are to one host
		client.Transport = own
	}
	theirs := client.CheckRedirect
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if err := checkRedirect(req, via); err != nil || theirs == nil {
			return err
		}
		return theirs(req, via)
	}
	return client
}

// releaseHTTPClient closes the idle connections of client unless they belong to the user's client.
func releaseHTTPClient(c *Client, client *http.Client) {
	if c.cfg.httpClient == nil {
		client.CloseIdleConnections()
	}
}

// addHeader adds the header fields that the user configured.
func addHeader(to, header http.Header) {
	for name, values := range header {
		to[name] = values[:len(values):len(values)]
	}
}

// checkRedirect refuses redirects to another origin, which would receive the messages and
// credentials, and redirects that change the HTTP method.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case !sameOrigin(req.URL, first.URL):
		return fmt.Errorf("the server redirects to another origin, %q; dial that if you trust it", req.URL.Scheme+"://"+req.URL.Host)
	case req.Method != first.Method:
		return fmt.Errorf("the server redirects a %s to a %s", first.Method, req.Method)
	}
	return nil
}

func (h *httpConn) mirrors() bool                      { return true }
func (h *httpConn) renew(context.Context, error) error { return nil }

func (h *httpConn) settled(v protocol.Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version = v
}

func (h *httpConn) state() (version protocol.Version, session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.session
}

// newRequest returns an HTTP request of version v, in the session if there is one.
func (h *httpConn) newRequest(ctx context.Context, verb string, body []byte, v protocol.Version, session string) *http.Request {
	req, _ := http.NewRequestWithContext(ctx, verb, h.target.String(), bytes.NewReader(body)) // of a URL that was parsed
	addHeader(req.Header, h.c.cfg.header)
	req.Header.Set("Accept", contentTypeJSON+", "+sse.ContentType)
	if verb == http.MethodGet {
		req.Header.Set("Accept", sse.ContentType)
	}
	if v >= protocol.V20250618 {
		req.Header.Set(protocol.HeaderProtocolVersion, string(v))
	}
	if session != "" && !v.Modern() {
		req.Header.Set(protocol.HeaderSessionID, session)
	}
	if body != nil {
		req.Header.Set("Content-Type", contentTypeJSON)
	}
	return req
}

// mediaType returns the Content-Type without its parameters, "" if there is none.
func mediaType(header http.Header) string {
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return media
}

// roundTrip posts x and returns its response.
func (h *httpConn) roundTrip(ctx context.Context, x *exchange) (*jsonrpc.Response, error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	resp, session, err := h.post(reading, x)
	if err == nil {
		defer resp.Body.Close()
		var answer *jsonrpc.Response
		answer, err = h.answer(reading, x, resp, session)
		if err == nil {
			drain(resp.Body, stop)
			return answer, nil
		}
	}
	if ctx.Err() != nil && x.req.Method != protocol.MethodInitialize && x.version != "" && !x.version.Modern() {
		// Up to and including 2025-11-25, closing the stream does not cancel the request.
		h.tellCancelled(ctx, x)
	}
	return nil, err
}

// post sends the request of x.
func (h *httpConn) post(ctx context.Context, x *exchange) (resp *http.Response, session string, err error) {
	if x.version != "" {
		_, session = h.state()
	}
	body := jsonrpc.AppendRequest(nil, x.req)
	req := h.newRequest(ctx, http.MethodPost, body, x.version, session)
	if x.version.Modern() {
		req.Header.Set(protocol.HeaderMethod, x.req.Method)
		if x.name != "" {
			req.Header.Set(protocol.HeaderName, protocol.EncodeHeader(x.name))
		}
		for name, value := range x.mirror {
			req.Header.Set(name, value)
		}
	}
	resp, err = h.client.Do(req)
	return resp, session, lost(err)
}

// lost wraps err in errLost if the server may have handled the request.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// answer reads the HTTP response to x.
func (h *httpConn) answer(ctx context.Context, x *exchange, resp *http.Response, session string) (*jsonrpc.Response, error) {
	media := mediaType(resp.Header)
	switch {
	case resp.StatusCode == http.StatusNotFound && session != "" && !x.version.Modern():
		return nil, errNoSession
	case resp.StatusCode/100 != 2:
		return refused(x, resp)
	case media != sse.ContentType && media != contentTypeJSON:
		return nil, invalid(x.req.Method, "HTTP status %d with the content type %.100q; want application/json or text/event-stream", resp.StatusCode, media)
	}
	if err := h.begin(x, resp); err != nil {
		return nil, err
	}
	if media == sse.ContentType {
		return h.stream(ctx, x, resp.Body)
	}
	data, err := readBounded(resp.Body, h.c.cfg.maxMessage)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, invalid(x.req.Method, "it is larger than %d bytes; raise client.MaxMessageBytes", h.c.cfg.maxMessage)
	case err != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%w: %w", errLost, err)
	case err != nil:
		return nil, err
	}
	return h.only(x, data)
}

// refused interprets an unsuccessful status. It returns the JSON-RPC error in the body, whatever
// the content type is, or the status as an error.
func refused(x *exchange, resp *http.Response) (*jsonrpc.Response, error) {
	status := statusError(resp)
	if status.RPC == nil || status.aboutCaller() {
		return nil, status
	}
	return &jsonrpc.Response{ID: x.req.ID, Error: status.RPC}, nil
}

// drain reads the end of a body after the response, so that the connection can be reused, and calls
// stop if that takes too long.
func drain(body io.Reader, stop func()) {
	defer time.AfterFunc(drainPatience, stop).Stop()
	_, _ = io.CopyN(io.Discard, body, maxDrained)
}

// begin stores the session ID of the response to initialize.
func (h *httpConn) begin(x *exchange, resp *http.Response) error {
	if x.version != "" {
		return nil
	}
	id := resp.Header.Get(protocol.HeaderSessionID)
	if len(id) > maxSessionID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return invalid(x.req.Method, "the session ID is not valid")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session, h.version = id, ""
	return nil
}

var errTooLarge = errors.New("too large")

// readBounded reads all of r, or returns errTooLarge if it has more than most bytes.
func readBounded(r io.Reader, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(data) > most {
		err = errTooLarge
	}
	return data, err
}

// only returns the response in a JSON body. In version 2025-03-26 the body may be an array.
func (h *httpConn) only(x *exchange, data []byte) (*jsonrpc.Response, error) {
	resp, err := h.message(h.c.base, x, data)
	if err == nil && resp == nil {
		err = invalid(x.req.Method, "the body does not contain the response to the request")
	}
	return resp, err
}

// message handles one message, or a batch, received for x. It returns the response to x if that is
// among them.
func (h *httpConn) message(ctx context.Context, x *exchange, data []byte) (*jsonrpc.Response, error) {
	m, bad := jsonrpc.Decode(data)
	if bad == nil {
		return h.one(ctx, x, m, len(data))
	}
	elements, isBatch, badBatch := jsonrpc.Batch(data)
	if !isBatch || badBatch != nil || x.version != protocol.V20250326 {
		return nil, invalid(x.method(), "%s", bad.Error.Message)
	}
	var found *jsonrpc.Response
	for _, element := range elements {
		m, bad := jsonrpc.Decode(element)
		if bad != nil {
			return nil, invalid(x.method(), "%s", bad.Error.Message)
		}
		resp, err := h.one(ctx, x, m, len(element))
		if err != nil {
			return nil, err
		}
		if resp != nil {
			found = resp
		}
	}
	return found, nil
}

// one handles one message, which has size bytes.
func (h *httpConn) one(ctx context.Context, x *exchange, m jsonrpc.Message, size int) (*jsonrpc.Response, error) {
	switch {
	case m.Response != nil:
		if x.req != nil && (m.Response.ID == x.req.ID || !m.Response.ID.IsValid() && m.Response.Error != nil) {
			return m.Response, nil
		}
		h.c.warn("client: a stream carried the response to a request of another stream", "id", clip(m.Response.ID.String()))
	case m.Request.Method == protocol.NotificationCancelled:
		h.asked.Cancel(m.Request)
	case m.Request.IsNotification():
		h.c.hear(m.Request, x.flight)
	default:
		h.answerServer(ctx, x, m.Request, size)
	}
	return nil, nil
}

// method returns the name of the request for errors.
func (x *exchange) method() string {
	if x.req == nil {
		return "the stream of the session"
	}
	return x.req.Method
}

// answerServer responds to a request of a legacy server. It works in the background, so that the
// client keeps reading the stream.
func (h *httpConn) answerServer(ctx context.Context, x *exchange, req *jsonrpc.Request, size int) {
	if x.version.Modern() {
		h.c.serve(ctx, req, x.flight) // logs it; modern servers may not send requests
		return
	}
	call, refused := h.asked.Begin(ctx, req, size)
	if refused != nil {
		h.reply(ctx, req, &jsonrpc.Response{Error: refused})
		return
	}
	if !h.c.background(func(context.Context) {
		defer call.End()
		if resp := h.c.serve(call.Context(), req, x.flight); resp != nil && call.Wanted() {
			h.reply(ctx, req, resp)
		}
	}) {
		call.End()
	}
}

// reply posts the response to a request of the server.
func (h *httpConn) reply(ctx context.Context, req *jsonrpc.Request, resp *jsonrpc.Response) {
	resp.ID = req.ID
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := h.send(limited, jsonrpc.AppendResponse(nil, resp)); err != nil && ctx.Err() == nil {
		h.c.warn("client: a response did not reach the server", "method", clip(req.Method), "error", err)
	}
}

// send posts a notification or a response, which the server may get twice.
func (h *httpConn) send(ctx context.Context, body []byte) error {
	return repeat(ctx, unavailable, func() error { return h.sendOnce(ctx, body) })
}

func (h *httpConn) sendOnce(ctx context.Context, body []byte) error {
	v, session := h.state()
	resp, err := h.client.Do(h.newRequest(ctx, http.MethodPost, body, v, session))
	if err != nil {
		return lost(err)
	}
	if resp.StatusCode/100 != 2 {
		return statusError(resp)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody) // so that the connection can be reused
	return nil
}

func (h *httpConn) notify(ctx context.Context, n *jsonrpc.Request) error {
	ctx, d := withDeadline(ctx, h.c.cfg.timeout, &timeoutError{n.Method, "", h.c.cfg.timeout})
	defer d.stop()
	err := h.send(ctx, jsonrpc.AppendRequest(nil, n))
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// tellCancelled tells the server, in the background, that x is cancelled.
func (h *httpConn) tellCancelled(ctx context.Context, x *exchange) {
	n, err := jsonrpc.NewNotification(protocol.NotificationCancelled, &protocol.CancelledParams{RequestID: x.req.ID, Reason: "the caller canceled the request"})
	if err != nil {
		return
	}
	// Close waits for it, and then closes the connection.
	h.c.background(func(context.Context) {
		ctx, cancel := context.WithTimeout(h.open, cancelPatience)
		defer cancel()
		_ = h.send(ctx, jsonrpc.AppendRequest(nil, n)) // the server need not know
	})
}

// close ends the session.
func (h *httpConn) close() error {
	h.cancel()
	v, session := h.state()
	if session != "" && !v.Modern() {
		ctx, cancel := context.WithTimeout(context.Background(), h.c.cfg.shutdownTimeout)
		defer cancel()
		if resp, err := h.client.Do(h.newRequest(ctx, http.MethodDelete, nil, v, session)); err == nil {
			_ = statusError(resp) // closes the body
		}
		// Errors are ignored: servers may refuse to end sessions.
	}
	releaseHTTPClient(h.c, h.client)
	return nil
}

// isEmpty reports whether data is empty or all whitespace.
func isEmpty(data []byte) bool { return len(jsonx.TrimSpace(data)) == 0 }
