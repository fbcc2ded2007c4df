package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// The features of the table. Each is on in its own column only. Every call is audited, so that
// "audit log" is a call with nothing else around it.
const (
	withTimeout   = "timeout"
	withRateLimit = "rate limit"
	withCache     = "cache"
	withAuditLog  = "audit log"
	withScopes    = "scopes"
	mounted       = "mounted server"
	proxied       = "proxied server"
)

// The kinds of methods of the table.
const (
	returnsValue    = "returns a value"
	returnsIterator = "returns an iterator"
	returnsReader   = "returns a reader"
	asksQuestion    = "asks a question"
	usesOnce        = "asks after Once"
	panics          = "panics"
	isCancelled     = "is cancelled"
	streamsResource = "streams a long resource"
)

var (
	features = []string{withTimeout, withRateLimit, withCache, withAuditLog, withScopes, mounted, proxied}
	kinds    = []string{
		returnsValue, returnsIterator, returnsReader, asksQuestion, usesOnce, panics, isCancelled, streamsResource,
	}
)

// silent keeps what transports and proxies log out of the output of the tests.
var silent = slog.New(slog.DiscardHandler)

// A pair is one cell of the table.
type pair struct{ feature, kind string }

// invalid lists the cells whose feature does not apply to the kind, with the reason. The call must
// work as it does without the feature, and the feature must do nothing: the second call runs the
// method again.
var invalid = map[pair]string{
	{withCache, asksQuestion}:    "an answer of the user is for one call only",
	{withCache, usesOnce}:        "an answer of the user is for one call only",
	{withCache, panics}:          "errors are not cached",
	{withCache, isCancelled}:     "a cancelled call has no result",
	{withCache, streamsResource}: "the cache tag of a resource is a hint for clients; the server caches nothing",
}

// texts are the texts of the results. The resource is longer than the 64 KiB that the server reads
// before it starts the response, so that the rest is read while it is sent.
var texts = map[string]string{
	returnsValue: "used", returnsIterator: `["used","used"]`, returnsReader: "read", asksQuestion: "used", usesOnce: "used",
	panics: "internal error (ref ", streamsResource: strings.Repeat("row ", 20_000),
}

// outcomes are the outcomes in the audit log of calls that do not succeed.
var outcomes = map[string]middleware.Outcome{panics: middleware.Panicked, isCancelled: middleware.Cancelled}

// TestFeaturesWorkTogether calls each kind of method with each feature, in both families of
// protocol versions, on stdio and Streamable HTTP. Each call gets one response with the right text.
// The clean-ups run once, after the method returned and the result was written. Nothing stays in
// flight. The audit log has one record of the beginning and one of the end.
func TestFeaturesWorkTogether(t *testing.T) {
	for name, serve := range map[string]serveFunc{"stdio": serveStdio, "Streamable HTTP": serveHTTP} {
		for _, version := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			for _, feature := range features {
				for _, kind := range kinds {
					c := &cell{pair: pair{feature, kind}, version: version, wire: &wire{asked: map[string]bool{}, answered: map[string]int{}}}
					t.Run(fmt.Sprintf("%s %s/%s/%s", name, version, feature, kind), func(t *testing.T) {
						c.build(t)
						c.run(t, serve)
					})
				}
			}
		}
	}
}

// A cell is the server of one cell of the table, and what happens to it.
type cell struct {
	pair
	version protocol.Version

	origin    *mcpkit.Server // has the method
	front     *mcpkit.Server // the client talks to it: origin, or the server that it is mounted in, or a proxy
	prefix    string         // of the names of origin's tools in front
	principal atomic.Pointer[oauth.Principal]

	started     chan struct{} // a method that waits for its cancellation has started
	limited     atomic.Bool   // the context of the method has a deadline
	onceRuns    atomic.Int32  // how often the function given to Once ran
	leases      atomic.Int32  // how many were made
	leasesEnded atomic.Int32
	calls       atomic.Int32 // how many reached the method's middleware
	callsEnded  atomic.Int32 // how often OnEnd ran

	mu     sync.Mutex
	faults []string     // what happened in the wrong order
	result bytes.Buffer // of the streamed resource, as far as it was written
	audit  bytes.Buffer

	wire *wire
}

// fault records that something happened in the wrong order.
func (c *cell) fault(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, text)
}

// A lease is what the server provides to methods. It ends with the call.
type lease struct {
	cell    *cell
	running atomic.Bool // the method has not returned
	ended   atomic.Bool
}

// hold marks the method as running until the returned function is called.
func (l *lease) hold() (release func()) {
	l.running.Store(true)
	return func() { l.running.Store(false) }
}

func (l *lease) use() string {
	if l.ended.Load() {
		l.cell.fault("a lease was used after its end")
	}
	return "used"
}

func (l *lease) end() {
	if !l.ended.CompareAndSwap(false, true) {
		l.cell.fault("a lease ended twice")
	}
	l.cell.cleanedUp("a lease ended", l.running.Load())
	l.cell.leasesEnded.Add(1)
}

// cleanedUp checks that a clean-up runs after the method has returned and the result was written.
func (c *cell) cleanedUp(what string, running bool) {
	if running {
		c.fault(what + " before the method returned")
	}
	c.mu.Lock()
	whole := bytes.HasSuffix(c.result.Bytes(), []byte("}")) // the text has none
	c.mu.Unlock()
	if c.kind == streamsResource && !whole {
		c.fault(what + " before the last byte of the result was written")
	}
}

// tool is the method of the cell's kind.
func (c *cell) tool() any {
	switch c.kind {
	case returnsValue:
		return func(l *lease) string { defer l.hold()(); return l.use() }
	case returnsIterator:
		return func(l *lease) iter.Seq[string] {
			defer l.hold()()
			return func(yield func(string) bool) {
				for range 2 {
					if !yield(l.use()) {
						return
					}
				}
			}
		}
	case returnsReader:
		return func(l *lease) io.Reader {
			defer l.hold()()
			return &leaseReader{l, strings.NewReader(texts[returnsReader])}
		}
	case asksQuestion:
		return func(ctx context.Context, l *lease) (string, error) {
			defer l.hold()()
			if yes, err := mcpkit.Confirm(ctx, "Sure?"); err != nil || !yes {
				return "", err
			}
			return l.use(), nil
		}
	case usesOnce:
		return func(ctx context.Context, l *lease) (string, error) {
			defer l.hold()()
			value, err := mcpkit.Once(ctx, "value", func() (string, error) { c.onceRuns.Add(1); return l.use(), nil })
			if err != nil {
				return "", err
			}
			_, err = mcpkit.Confirm(ctx, "Sure?")
			return value, err
		}
	case panics:
		return func(l *lease) string { defer l.hold()(); panic("oops") }
	default: // isCancelled
		return func(ctx context.Context, l *lease) (string, error) {
			defer l.hold()()
			c.started <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}
	}
}

// A leaseReader uses a lease each time it is read.
type leaseReader struct {
	lease *lease
	text  *strings.Reader
}

func (r *leaseReader) Read(p []byte) (int, error) {
	r.lease.use()
	return r.text.Read(p)
}

// rows is the service behind the long resource. Its annotation is in the types that embed it.
type rows struct{}

func (rows) Rows(l *lease) io.Reader {
	defer l.hold()()
	return &leaseReader{l, strings.NewReader(texts[streamsResource])}
}

// resources are services with the long resource, by feature.
var resources = map[string]any{
	withTimeout: &struct {
		_ struct {
			Rows mcpkit.Resource `uri:"rows://all" mime:"text/plain" timeout:"1m"`
		}
		rows
	}{},
	withRateLimit: &struct {
		_ struct {
			Rows mcpkit.Resource `uri:"rows://all" mime:"text/plain" rate:"1/h"`
		}
		rows
	}{},
	withCache: &struct {
		_ struct {
			Rows mcpkit.Resource `uri:"rows://all" mime:"text/plain" cache:"60s"`
		}
		rows
	}{},
	withScopes: &struct {
		_ struct {
			Rows mcpkit.Resource `uri:"rows://all" mime:"text/plain" scopes:"use"`
		}
		rows
	}{},
}

// plainResource is the service with the long resource where the feature does not need an
// annotation.
type plainResource struct {
	_ struct {
		Rows mcpkit.Resource `uri:"rows://all" mime:"text/plain"`
	}
	rows
}

// build makes the servers.
func (c *cell) build(t *testing.T) {
	c.started = make(chan struct{}, 1)
	c.principal.Store(&oauth.Principal{Subject: "ann", Scopes: []string{"use"}})
	provide := mcpkit.Provide(func(ctx context.Context) (*lease, error) {
		c.leases.Add(1)
		_, limited := ctx.Deadline()
		c.limited.Store(limited)
		return &lease{cell: c}, nil
	}, (*lease).end)
	var service any
	if c.kind == streamsResource {
		if service = resources[c.feature]; service == nil {
			service = &plainResource{}
		}
	}
	var err error
	c.origin, err = mcpkit.New(service, quiet, mcpkit.Authenticated(), mcpkit.ToolTimeout(0), provide)
	require.NoError(t, err)
	require.NoError(t, c.origin.Add(mcpkit.NewTool("idle", func() string { return "idle" })))
	if service == nil {
		tool := mcpkit.NewTool("tool", c.tool())
		switch c.feature {
		case withTimeout:
			tool.Timeout(time.Minute)
		case withRateLimit:
			tool.Rate("1/h")
		case withCache:
			tool.Hints("readonly").Cache("60s")
		case withScopes:
			tool.Scopes("use")
		}
		require.NoError(t, c.origin.Add(tool))
	}
	c.origin.Use(middleware.Audit(slog.NewJSONHandler(auditOf{c}, nil), middleware.AuditBegin()), c.countEnds)
	c.front = c.origin
	switch c.feature {
	case mounted:
		c.front = newServer(t)
		require.NoError(t, c.front.Mount("m", c.origin))
		c.prefix = "m_"
	case proxied:
		c.front, err = proxy.New(client.InMemory(&seam{c.origin, c}), proxy.Dial(client.Version(c.version)), proxy.Logger(silent))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.front.Close() })
	}
}

// measured reports whether the call is of the method of the cell.
func measured(call *mcpkit.Call) bool {
	return strings.HasSuffix(call.Name(), "tool") || call.Method() == protocol.MethodResourcesRead
}

// countEnds is a middleware with a clean-up.
func (c *cell) countEnds(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		if !measured(call) {
			return next(ctx, call)
		}
		var running atomic.Bool
		running.Store(true)
		defer running.Store(false)
		c.calls.Add(1)
		call.OnEnd(func() {
			c.cleanedUp("OnEnd ran", running.Load())
			c.callsEnded.Add(1)
		})
		return next(ctx, call)
	}
}

// auditOf is the audit log of a cell.
type auditOf struct{ *cell }

func (a auditOf) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.audit.Write(p)
}

// audited are the events in the audit log of calls of the method, with their outcomes.
func (c *cell) audited(t *testing.T) (events []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	refs := map[string]bool{}
	for line := range strings.Lines(c.audit.String()) {
		var record struct{ Event, Ref, Method, Name, Outcome string }
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		if strings.HasSuffix(record.Name, "tool") || record.Method == protocol.MethodResourcesRead {
			events = append(events, strings.TrimSpace(record.Event+" "+record.Outcome))
			refs[record.Ref] = true
		}
	}
	require.Len(t, refs, 1, "all records are of one call")
	return events
}

// A seam is a server whose callers are all the principal of the cell. It sees results as they are
// written.
type seam struct {
	*mcpkit.Server
	cell *cell
}

func (s *seam) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	resp := s.Server.ServeRPC(oauth.NewContext(ctx, s.cell.principal.Load()), req, peer)
	if resp != nil && resp.Stream != nil && (s.cell.feature != proxied || s.Server == s.cell.origin) {
		s.cell.mu.Lock()
		s.cell.result.Reset()
		s.cell.mu.Unlock()
		stream := resp.Stream
		resp.Stream = func(w io.Writer) error { return stream(io.MultiWriter(w, resultOf{s.cell})) }
	}
	return resp
}

// resultOf takes the result of a cell's call as it is written.
type resultOf struct{ *cell }

func (r resultOf) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result.Write(p)
}

// patience bounds each wait. A test that passes does not wait for long.
const patience = time.Minute

// run calls the method and checks what became of it.
func (c *cell) run(t *testing.T, serve serveFunc) {
	target, stopped := serve(t, &seam{c.front, c}, c.wire)
	caller, err := client.Dial(t.Context(), target, client.Version(c.version), client.Handlers(agreeing{}))
	require.NoError(t, err)
	closed := false
	defer func() {
		if !closed { // the test failed
			_ = caller.Close()
			stopped()
		}
	}()

	text, isError, err := c.call(t, caller)
	if c.kind == isCancelled {
		require.ErrorIs(t, err, context.Canceled)
	} else {
		require.NoError(t, err)
		if c.kind == panics {
			require.Contains(t, text, texts[panics])
		} else {
			require.True(t, text == texts[c.kind], "the text is %.100q", text) // it may be long
		}
		require.Equal(t, c.kind == panics, isError)
	}

	// A method that was cancelled returns after its caller.
	events := []string{"begin", "end ok"}
	if outcome, ok := outcomes[c.kind]; ok {
		events[1] = "end " + string(outcome)
	}
	c.settle(t, caller)
	rounds := int32(1)
	if c.version.Modern() && (c.kind == asksQuestion || c.kind == usesOnce) {
		rounds = 2 // the method runs again for the answer
		events = []string{"begin", "end input_required", "end ok"}
	}
	require.Equal(t, events, c.audited(t))
	require.Equal(t, rounds, c.leases.Load())
	require.Equal(t, rounds, c.calls.Load())
	if c.kind == usesOnce {
		require.Equal(t, int32(1), c.onceRuns.Load())
	}
	requests := int(rounds)

	// The feature was at work.
	switch c.feature {
	case withTimeout:
		require.True(t, c.limited.Load(), "the method has a deadline")
	case withRateLimit:
		text, _, err := c.call(t, caller)
		require.Contains(t, text+fmt.Sprint(err), "too many", "one call an hour; its rounds are one call")
		require.Equal(t, rounds, c.leases.Load())
		requests++
	case withScopes:
		c.principal.Store(&oauth.Principal{Subject: "ann"})
		_, _, err := c.call(t, caller)
		require.Error(t, err, "the principal does not have the scope any longer")
		require.Equal(t, rounds, c.leases.Load())
		requests++
	case withCache:
		again, _, _ := c.call(t, caller)
		if reason, ok := invalid[c.pair]; ok {
			require.Equal(t, 2*rounds, c.leases.Load(), "the method ran again: %s", reason)
			requests *= 2
		} else {
			require.Equal(t, rounds, c.leases.Load(), "the result is cached")
			require.Equal(t, text, again)
			requests++
		}
	}
	c.settle(t, caller)
	require.Equal(t, c.leases.Load(), c.leasesEnded.Load())
	require.Equal(t, c.calls.Load(), c.callsEnded.Load())

	closed = true
	require.NoError(t, caller.Close())
	stopped() // from now on nothing more is sent
	c.mu.Lock()
	require.Empty(t, c.faults)
	c.mu.Unlock()
	cancelled := 0
	if c.kind == isCancelled {
		cancelled = int(c.leases.Load()) // calls that ran, and were not refused
	}
	c.wire.check(t, requests, cancelled)
}

// call calls the method, and cancels the call if that is the cell's kind.
func (c *cell) call(t *testing.T, caller *client.Client) (text string, isError bool, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if c.kind == streamsResource {
		var result protocol.ReadResourceResult
		if err := caller.Request(ctx, protocol.MethodResourcesRead, json.RawMessage(`{"uri":"rows://all"}`), &result); err != nil {
			return "", false, err
		}
		require.Len(t, result.Contents, 1)
		return *result.Contents[0].Text, false, nil
	}
	if c.kind == isCancelled {
		go func() { // ends with the call
			select {
			case <-c.started:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	var result protocol.CallToolResult
	if err := caller.Request(ctx, protocol.MethodToolsCall, json.RawMessage(`{"name":"`+c.prefix+`tool"}`), &result); err != nil {
		return "", false, err
	}
	require.Len(t, result.Content, 1)
	return result.Content[0].(*protocol.TextContent).Text, result.IsError, nil
}

// settle waits until nothing is in flight. The transports take one request at a time, so that one
// that stayed in their tables would keep out the next.
func (c *cell) settle(t *testing.T, caller *client.Client) {
	idle := func() bool {
		return c.leasesEnded.Load() >= c.leases.Load() && c.callsEnded.Load() >= c.calls.Load() &&
			c.origin.Overdue() == 0 && c.front.Overdue() == 0
	}
	if !assert.Eventually(t, idle, patience, time.Millisecond) {
		require.FailNow(t, "something stays in flight", "%d of %d leases and %d of %d calls ended; %d methods are overdue",
			c.leasesEnded.Load(), c.leases.Load(), c.callsEnded.Load(), c.calls.Load(), c.origin.Overdue()+c.front.Overdue())
	}
	free := func() bool {
		var result protocol.CallToolResult
		return caller.Request(t.Context(), protocol.MethodToolsCall, json.RawMessage(`{"name":"`+c.prefix+`idle"}`), &result) == nil
	}
	require.Eventually(t, free, patience, time.Millisecond, "the transport still counts a request as in flight")
}

// agreeing is a user who agrees to everything.
type agreeing struct{}

func (agreeing) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"confirm":true}`)}, nil
}

// A serveFunc serves a handler, one request at a time, and copies what is sent to w. stopped
// returns when the transport has ended by itself, since its client has disconnected.
type serveFunc func(t *testing.T, h transport.Handler, w *wire) (target any, stopped func())

func serveStdio(t *testing.T, h transport.Handler, w *wire) (target any, stopped func()) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	received, sent := &lineReader{take: w.fromClient}, &lineReader{take: w.fromServer}
	served := make(chan error, 1)
	// Ends when the client closes its end.
	go func() {
		server := stdio.NewIO(io.TeeReader(in, received), io.MultiWriter(sent, out), &stdio.Options{MaxInFlight: 1, Logger: silent})
		served <- server.Serve(context.Background(), h)
	}()
	return client.Stream(duplex{fromServer, toServer}), func() { require.NoError(t, <-served) }
}

func serveHTTP(t *testing.T, h transport.Handler, w *wire) (target any, stopped func()) {
	handler := streamable.NewHandler(h, &streamable.Options{Logger: silent})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.fromClient(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		sent := &lineReader{take: w.fromServer}
		defer sent.rest() // JSON has no line break at its end
		handler.ServeHTTP(&copyingWriter{rw, sent}, r)
	}))
	return server.URL, func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, handler.Shutdown(ctx), "nothing is in flight")
		server.Close()
	}
}

// A copyingWriter copies the body of a response.
type copyingWriter struct {
	http.ResponseWriter
	sent *lineReader
}

func (w *copyingWriter) Write(p []byte) (int, error) {
	_, _ = w.sent.Write(p)
	return w.ResponseWriter.Write(p)
}

func (w *copyingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A lineReader takes each line that is written to it.
type lineReader struct {
	take func(line []byte)
	part []byte
}

func (l *lineReader) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.take(line)
		l.part = rest
	}
}

// rest takes what has no line break after it.
func (l *lineReader) rest() { l.take(l.part) }

// A wire is what the two sides of a transport sent, as far as it is about the method.
type wire struct {
	mu       sync.Mutex
	asked    map[string]bool // ids of the requests
	answered map[string]int  // how many responses each id got
}

// A message is the part of a JSON-RPC message that says what it is.
type message struct {
	ID            json.RawMessage
	Method        string
	Params        struct{ Name string }
	Result, Error json.RawMessage
}

func (w *wire) fromClient(line []byte) {
	var m message
	if json.Unmarshal(line, &m) == nil && (m.Method == protocol.MethodResourcesRead || strings.HasSuffix(m.Params.Name, "tool")) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked[string(m.ID)] = true
	}
}

func (w *wire) fromServer(line []byte) {
	var m message
	if json.Unmarshal(bytes.TrimPrefix(line, []byte("data: ")), &m) == nil && m.Method == "" && (m.Result != nil || m.Error != nil) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.answered[string(m.ID)]++
	}
}

// check requires one response to each of so many requests, except those that were cancelled: they
// get none.
func (w *wire) check(t *testing.T, requests, cancelled int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.asked, requests)
	responses := 0
	for id := range w.asked {
		require.LessOrEqual(t, w.answered[id], 1, "responses to request %s", id)
		responses += w.answered[id]
	}
	require.Equal(t, requests-cancelled, responses, "responses")
}
