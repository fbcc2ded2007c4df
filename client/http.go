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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Bounds of HTTP.
const (
	//limit:client redirects of one HTTP request | an error: `redirects`
	maxRedirects = 5
	maxErrorBody = 64 << 10
	maxSessionID = 1024
	//limit:client requests of a legacy HTTP server that are answered at a time | the server gets -32603: `busy: `
	maxServerCalls = 16
	//limit:client bytes of these requests | the server gets -32603: `busy: `
	maxServerBytes  = 8 << 20
	cancelPatience  = 5 * time.Second
	drainPatience   = 50 * time.Millisecond // for the end of a stream whose response is there
	maxDrained      = 4 << 10
	maxUndrained    = 3 // streams that did not end, after which none is waited for
	contentTypeJSON = "application/json"
)

// An httpConn is the client's end of Streamable HTTP, for all versions.
type httpConn struct {
	c      *Client
	target *url.URL
	client *http.Client
	asked  ledger.Ledger // requests of a legacy server, which may cancel one on another stream than it came on

	undrained atomic.Int32 // streams that did not end with the response

	mu        sync.Mutex
	version   protocol.Version   // agreed on; guarded by mu
	session   string             // guarded by mu
	listening context.CancelFunc // ends the stream outside of calls; guarded by mu
	heard     string             // the session that this stream is of; guarded by mu
}

func newHTTPConn(c *Client, u *url.URL) *httpConn {
	return &httpConn{
		c: c, target: u, client: newHTTPClient(c),
		asked: ledger.Ledger{Limits: ledger.Limits{MaxCalls: maxServerCalls, MaxBytes: maxServerBytes}},
	}
}

// newHTTPClient makes the client of a connection: that of the user, or one with connections of its
// own.
func newHTTPClient(c *Client) *http.Client {
	client := new(http.Client)
	if c.cfg.httpClient != nil {
		*client = *c.cfg.httpClient
	} else {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = own.MaxIdleConns // all are to one host; a call that finds none has to dial
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

// releaseHTTPClient closes the connections of a client that newHTTPClient made, unless they are the
// user's.
func releaseHTTPClient(c *Client, client *http.Client) {
	if c.cfg.httpClient == nil {
		client.CloseIdleConnections()
	}
}

// addHeader adds the fields that the user wants in every request.
func addHeader(to, header http.Header) {
	for name, values := range header {
		to[name] = values[:len(values):len(values)]
	}
}

// checkRedirect keeps messages and credentials at the origin that the user named, and a POST a
// POST.
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

// newRequest makes a request of version v, within the session if there is one.
func (h *httpConn) newRequest(ctx context.Context, verb string, body []byte, v protocol.Version, session string) *http.Request {
	req := plainRequest.WithContext(ctx) // as http.NewRequest makes it, without taking the URL apart each time
	target := *h.target
	header := make(http.Header, 8+len(h.c.cfg.header))
	addHeader(header, h.c.cfg.header)
	header["Accept"] = acceptBoth
	if verb == http.MethodGet {
		header["Accept"] = acceptStream
	}
	if v >= protocol.V20250618 {
		header[headerVersion] = []string{string(v)}
	}
	if session != "" && !v.Modern() {
		header[headerSession] = []string{session}
	}
	req.Method, req.URL, req.Host, req.Header = verb, &target, strings.TrimSuffix(target.Host, ":"), header
	if body != nil {
		header["Content-Type"] = contentJSON
		req.ContentLength = int64(len(body))
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return req
}

var plainRequest = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}

// What every request has. The slices are shared: whoever adds to one gets another.
var (
	acceptBoth   = []string{contentTypeJSON + ", " + sse.ContentType}
	acceptStream = []string{sse.ContentType}
	contentJSON  = []string{contentTypeJSON}

	headerVersion = http.CanonicalHeaderKey(protocol.HeaderProtocolVersion)
	headerSession = http.CanonicalHeaderKey(protocol.HeaderSessionID)
	headerMethod  = http.CanonicalHeaderKey(protocol.HeaderMethod)
	headerName    = http.CanonicalHeaderKey(protocol.HeaderName)
)

// mediaType is what a Content-Type says without its parameters; "" where it says nothing.
func mediaType(header http.Header) string {
	switch value := header.Get("Content-Type"); value {
	case contentTypeJSON, sse.ContentType:
		return value
	default:
		media, _, _ := mime.ParseMediaType(value)
		return media
	}
}

// roundTrip posts x and takes the response from what comes back.
func (h *httpConn) roundTrip(ctx context.Context, x *exchange) (*jsonrpc.Response, error) {
	resp, session, err := h.post(ctx, x)
	if err == nil {
		var answer *jsonrpc.Response
		answer, err = h.answer(ctx, x, resp, session)
		if err == nil {
			return answer, nil
		}
	}
	if ctx.Err() != nil && x.req.Method != protocol.MethodInitialize && x.version != "" && !x.version.Modern() {
		// Until 2025-11-25 a stream that closes means nothing; the server has to be told.
		h.tellCancelled(ctx, x)
	}
	return nil, err
}

// post sends the request of x.
func (h *httpConn) post(ctx context.Context, x *exchange) (resp *http.Response, session string, err error) {
	if x.version != "" {
		_, session = h.state()
	}
	body := jsonrpc.AppendRequest(make([]byte, 0, len(x.req.Params)+128), x.req)
	req := h.newRequest(ctx, http.MethodPost, body, x.version, session)
	if x.version.Modern() {
		req.Header[headerMethod] = []string{x.req.Method}
		if x.name != "" {
			req.Header[headerName] = []string{protocol.EncodeHeader(x.name)}
		}
		for name, value := range x.mirror {
			req.Header.Set(name, value)
		}
	}
	resp, err = h.client.Do(req)
	return resp, session, lost(err)
}

// lost marks an error after which nobody knows whether the server handled the request.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// answer reads what came back for x.
func (h *httpConn) answer(ctx context.Context, x *exchange, resp *http.Response, session string) (*jsonrpc.Response, error) {
	defer resp.Body.Close()
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
		answer, err := h.stream(ctx, x, resp.Body)
		if err == nil {
			h.drain(x, resp.Body)
		}
		return answer, err
	}
	data, err := readReply(resp, h.c.cfg.maxMessage)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, invalid(x.req.Method, "it is larger than %d bytes; raise MaxMessageBytes", h.c.cfg.maxMessage)
	case err != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%w: %w", errLost, err)
	case err != nil:
		return nil, err
	}
	return h.only(x, data)
}

// refused returns what a status other than a success means: the error response that it came with,
// whatever its content type says, or the status.
func refused(x *exchange, resp *http.Response) (*jsonrpc.Response, error) {
	status := statusError(resp)
	if status.RPC == nil || status.aboutCaller() {
		return nil, status
	}
	return &jsonrpc.Response{ID: x.req.ID, Error: status.RPC}, nil
}

// drain reads the end of a stream whose response is there, so that its connection can be used
// again. Servers end a stream with the response; one that does not is not waited for any more after
// a few times.
func (h *httpConn) drain(x *exchange, body io.Reader) {
	if x.flight == nil || h.undrained.Load() >= maxUndrained {
		return
	}
	late := time.AfterFunc(drainPatience, func() { x.flight.deadline.cancel(nil) })
	defer late.Stop()
	if n, err := io.CopyN(io.Discard, body, maxDrained); n == maxDrained || err != io.EOF {
		h.undrained.Add(1)
	}
}

// begin takes the session that the answer to initialize names.
func (h *httpConn) begin(x *exchange, resp *http.Response) error {
	if x.version != "" {
		return nil
	}
	id := resp.Header.Get(protocol.HeaderSessionID)
	if len(id) > maxSessionID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return invalid(x.req.Method, "the session id is none")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session, h.version = id, ""
	return nil
}

var errTooLarge = errors.New("too large")

// readBounded reads all of r, up to most bytes.
func readBounded(r io.Reader, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(data) > most {
		err = errTooLarge
	}
	return data, err
}

// maxPromised is how many bytes are made room for because a server says that they will come.
const maxPromised = 1 << 20

// readReply reads the body of resp, up to most bytes.
func readReply(resp *http.Response, most int) ([]byte, error) {
	n := resp.ContentLength
	if n < 0 || n > maxPromised || n > int64(most) {
		return readBounded(resp.Body, most)
	}
	data := make([]byte, n)
	_, err := io.ReadFull(resp.Body, data)
	return data, err
}

// only takes the response out of a JSON reply: it is the reply, or in 2025-03-26 one of an array.
func (h *httpConn) only(x *exchange, data []byte) (*jsonrpc.Response, error) {
	resp, err := h.message(h.c.base, x, data)
	if err == nil && resp == nil {
		err = invalid(x.req.Method, "the reply does not hold the response to the request")
	}
	return resp, err
}

// message handles what came for x. It returns the response if that was it.
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
		h.c.warn("client: the server answered a request that this stream is not for", "id", clip(m.Response.ID.String()))
	case m.Request.Method == protocol.NotificationCancelled:
		h.asked.Cancel(m.Request)
	case m.Request.IsNotification():
		h.c.hear(m.Request, x.flight)
	default:
		h.answerServer(ctx, x, m.Request, size)
	}
	return nil, nil
}

// method names the request of x in errors.
func (x *exchange) method() string {
	if x.req == nil {
		return "the stream of the session"
	}
	return x.req.Method
}

// answerServer answers a request of a legacy server, in the background: the stream has to be read
// on.
func (h *httpConn) answerServer(ctx context.Context, x *exchange, req *jsonrpc.Request, size int) {
	if x.version.Modern() {
		h.c.serve(ctx, req, x.flight) // which refuses it
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

// send posts a message that has no response.
func (h *httpConn) send(ctx context.Context, body []byte) error {
	v, session := h.state()
	resp, err := h.client.Do(h.newRequest(ctx, http.MethodPost, body, v, session))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return statusError(resp)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody) // so that the connection can be used again
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
	n, err := jsonrpc.NewNotification(protocol.NotificationCancelled, &protocol.CancelledParams{RequestID: x.req.ID, Reason: "the caller does not wait any longer"})
	if err != nil {
		return
	}
	h.c.background(func(base context.Context) {
		ctx, cancel := context.WithTimeout(base, cancelPatience)
		defer cancel()
		_ = h.send(ctx, jsonrpc.AppendRequest(nil, n)) // a courtesy
	})
}

// close ends the session.
func (h *httpConn) close() error {
	v, session := h.state()
	if session != "" && !v.Modern() {
		ctx, cancel := context.WithTimeout(context.Background(), h.c.cfg.shutdownTimeout)
		defer cancel()
		if resp, err := h.client.Do(h.newRequest(ctx, http.MethodDelete, nil, v, session)); err == nil {
			_ = statusError(resp) // whatever it is
		}
		// A server need not let clients end sessions, and one that is gone has none.
	}
	releaseHTTPClient(h.c, h.client)
	return nil
}

// isEmpty reports whether data is blank.
func isEmpty(data []byte) bool { return jsonx.SkipSpace(data, 0) == len(data) }
