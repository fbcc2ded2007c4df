// Package replicas tests what the replicas of a server promise to clients over Streamable HTTP,
// whatever engine they share.
package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// patience is how long tests wait for what happens soon.
const patience = time.Minute

// Run tests replicas that share a store. open returns an empty store for each test, which it removes
// with t.Cleanup. The tests run in parallel.
func Run(t *testing.T, open func(t testing.TB) fleettest.Store) {
	for _, f := range facts {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			t.Cleanup(cancel)
			wire := &http.Transport{}
			t.Cleanup(wire.CloseIdleConnections)
			f.test(&trial{T: t, ctx: ctx, store: open(t), http: &http.Client{Transport: wire}})
		})
	}
}

// A trial is the test of one fact.
type trial struct {
	*testing.T
	ctx   context.Context // of requests; it ends after patience
	store fleettest.Store
	http  *http.Client
}

// until waits until the condition holds.
func (x *trial) until(condition func() bool) {
	x.Helper()
	for !condition() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-x.ctx.Done():
			require.Fail(x, "it does not happen")
		}
	}
}

// receive returns what arrives on a channel.
func receive[T any](x *trial, c <-chan T) (v T) {
	x.Helper()
	select {
	case v = <-c:
	case <-x.ctx.Done():
		require.Fail(x, "nothing arrives")
	}
	return v
}

// A desk is a service that says which replica it is on.
type desk struct {
	_ struct {
		Today mcpkit.Resource `uri:"notes://today"`
		Gold  mcpkit.Resource `uri:"vault://gold" scopes:"vault:read"`
	}
	replica string

	started chan struct{} // a call of Work has begun
	finish  chan struct{} // lets it go on
	stopped chan error    // why it was cancelled
}

// Today returns what is on today.
func (d *desk) Today() string { return "nothing" }

// Gold returns how much there is.
func (d *desk) Gold() string { return "much" }

// Where returns the replica.
func (d *desk) Where() string { return d.replica }

// Tell sends a log message.
func (d *desk) Tell(log *slog.Logger) { log.Info("told") }

// Ask asks the user for a colour.
func (d *desk) Ask(ctx context.Context) (string, error) {
	c, err := mcpkit.Choose(ctx, "Which colour?", []string{"red", "blue"})
	return d.replica + ": " + c, err
}

// AskLater ends its stream before it asks.
func (d *desk) AskLater(ctx context.Context, call *mcpkit.Call) (string, error) {
	if err := call.CloseStream(time.Millisecond); err != nil {
		return "", err
	}
	return d.Ask(ctx)
}

// Work reports progress and waits.
func (d *desk) Work(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "begun")
	d.started <- struct{}{}
	select {
	case <-d.finish:
		call.Progress(2, 2, "done")
		return d.replica, nil
	case <-ctx.Done():
		d.stopped <- context.Cause(ctx)
		return "", ctx.Err()
	}
}

// A replica is one replica of the desk.
type replica struct {
	*desk
	x       *trial
	srv     *mcpkit.Server
	shelf   *mcpkit.Server // mounted in srv; it has shelf://book, and far://page of a remote server
	watched chan string    // the URIs that the remote server is asked to watch
	url     string
	stop    func() // ends it; may be called more than once
}

const maxSessions = 4 // of a replica

var keys = [][]byte{[]byte(strings.Repeat("k", 32)), []byte(strings.Repeat("x", 32))}

// replicas starts n replicas: r0, r1 and so on.
func (x *trial) replicas(n int) []*replica {
	x.Helper()
	all := make([]*replica, n)
	for i := range all {
		all[i] = x.start(fmt.Sprint("r", i), keys[0])
	}
	return all
}

// start starts one replica. The header X-User of requests is their principal.
func (x *trial) start(name string, key []byte) *replica {
	x.Helper()
	d := &desk{replica: name, started: make(chan struct{}, 9), finish: make(chan struct{}), stopped: make(chan error, 9)}
	r := &replica{desk: d, x: x, watched: make(chan string, 9)}
	silent := slog.New(slog.DiscardHandler)
	var err error
	r.srv, err = mcpkit.New(d, mcpkit.Name("desk", "1"), mcpkit.StateKeys(key), mcpkit.Fleet(x.store.Open(x)),
		mcpkit.Authenticated(), mcpkit.Logger(silent))
	require.NoError(x, err)
	r.shelf = mcpkit.MustNew(nil, mcpkit.Logger(silent))
	require.NoError(x, r.shelf.Add(mcpkit.NewResource("shelf://book", "book", func() string { return "" })))
	remote := &mcpkit.Upstream{Subscribe: func(_ context.Context, uri string) error { r.watched <- uri; return nil }}
	page, err := remote.Item("resources/list", json.RawMessage(`{"uri":"far://page","name":"page"}`))
	require.NoError(x, err)
	require.NoError(x, r.shelf.Add(page))
	require.NoError(x, r.srv.Mount("", r.shelf))
	require.NoError(x, r.srv.Start(x.ctx))
	handler := streamable.NewHandler(r.srv, &streamable.Options{Logger: silent, MaxSessions: maxSessions})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user := req.Header.Get("X-User"); user != "" {
			req = req.WithContext(oauth.NewContext(req.Context(), &oauth.Principal{Subject: user, Scopes: []string{"vault:read"}}))
		}
		handler.ServeHTTP(w, req)
	}))
	r.url = web.URL
	r.stop = sync.OnceFunc(func() {
		handler.Close()
		web.CloseClientConnections()
		web.Close()
		require.NoError(x, r.srv.Close())
	})
	x.Cleanup(r.stop)
	return r
}

// A client sends requests with its header fields to a replica.
type client struct {
	*replica
	header http.Header
}

// open opens a session of version at r, with more header fields.
func (r *replica) open(version string, fields ...string) *client {
	r.x.Helper()
	c := &client{r, http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}}
	c = c.with(fields...)
	resp := c.send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}`, version))
	require.Equal(r.x, http.StatusOK, resp.StatusCode, read(r.x, resp))
	c = c.with("Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", version)
	c.accepted(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// with returns a client with other header fields; "" removes one.
func (c *client) with(fields ...string) *client {
	d := &client{c.replica, c.header.Clone()}
	for i := 0; i < len(fields); i += 2 {
		if d.header.Set(fields[i], fields[i+1]); fields[i+1] == "" {
			d.header.Del(fields[i])
		}
	}
	return d
}

// at returns a client of another replica.
func (c *client) at(r *replica) *client { return &client{r, c.header} }

// send sends a request. The body of the response is closed with the test.
func (c *client) send(method, body string) *http.Response {
	c.x.Helper()
	r, err := http.NewRequestWithContext(c.x.ctx, method, c.url, strings.NewReader(body))
	require.NoError(c.x, err)
	r.Header = c.header.Clone()
	if method != http.MethodPost {
		r.Header.Del("Content-Type")
	}
	resp, err := c.x.http.Do(r)
	require.NoError(c.x, err)
	c.x.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func read(x *trial, resp *http.Response) string {
	x.Helper()
	body, err := io.ReadAll(resp.Body)
	require.NoError(x, err)
	return string(body)
}

// accepted sends a notification or a response.
func (c *client) accepted(message string) {
	c.x.Helper()
	require.Equal(c.x, http.StatusAccepted, c.send(http.MethodPost, message).StatusCode)
}

// request sends a request.
func (c *client) request(id int, method, params string) *http.Response {
	c.x.Helper()
	return c.send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
}

// call calls a tool without arguments.
func (c *client) call(id int, tool string) *http.Response {
	c.x.Helper()
	return c.request(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{},"_meta":{"progressToken":1}}`, tool))
}

// works requires that the replica answers a call.
func (c *client) works() {
	c.x.Helper()
	require.Contains(c.x, read(c.x, c.call(4711, "where")), `"text":"`+c.desk.replica+`"`)
}

// subscribes subscribes to a resource, or ends that.
func (c *client) subscribes(method, uri string) {
	c.x.Helper()
	require.Contains(c.x, read(c.x, c.request(1, method, fmt.Sprintf(`{"uri":%q}`, uri))), `"result"`)
}

// A stream is an event stream of a response.
type stream struct {
	x    *trial
	body io.Closer
	r    *sse.Reader
}

func (x *trial) stream(resp *http.Response) *stream {
	x.Helper()
	require.Equal(x, http.StatusOK, resp.StatusCode)
	require.Equal(x, "text/event-stream", resp.Header.Get("Content-Type"))
	return &stream{x, resp.Body, sse.NewReader(resp.Body, 4<<20)}
}

// listen opens the stream of the session, after an event; "" for none.
func (c *client) listen(last string) *stream {
	c.x.Helper()
	s := c.x.stream(c.with("Last-Event-ID", last).send(http.MethodGet, ""))
	s.next() // priming
	return s
}

// resume reads on a stream of a call after an event.
func (c *client) resume(last string) *stream {
	c.x.Helper()
	return c.x.stream(c.with("Last-Event-ID", last).send(http.MethodGet, ""))
}

func (s *stream) next() sse.Event {
	s.x.Helper()
	ev, err := s.r.Next()
	require.NoError(s.x, err)
	return ev
}

// has requires that the next message has a text.
func (s *stream) has(text string) sse.Event {
	s.x.Helper()
	ev := s.next()
	for len(ev.Data) == 0 {
		ev = s.next() // after priming
	}
	require.Contains(s.x, string(ev.Data), text)
	return ev
}

// ends requires that nothing follows.
func (s *stream) ends() {
	s.x.Helper()
	_, err := s.r.Next()
	require.Equal(s.x, io.EOF, err)
}
