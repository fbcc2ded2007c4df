package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A gate is a method that signals when it runs, waits for release, and reports why its context
// ended.
type gate struct {
	started chan struct{}
	release chan struct{}
	cause   chan error
}

func newGate() *gate {
	return &gate{make(chan struct{}, 10), make(chan struct{}), make(chan error, 10)}
}

func (g *gate) serve(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	g.started <- struct{}{}
	select {
	case <-g.release:
		g.cause <- ctx.Err()
		return result(req, `{"done":true}`)
	case <-ctx.Done():
		g.cause <- context.Cause(ctx)
		return nil
	}
}

func TestLegacyCallsOfClientsThatLeftAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		h := NewHandler(&scripted{methods: script{"wait": g.serve}}, &Options{Stateless: true})
		defer h.Close()
		h.abandoned.max = 2
		ctx, leave := context.WithCancel(t.Context())
		for range 3 {
			go h.ServeHTTP(httptest.NewRecorder(), newPost(call1(1, "wait")).WithContext(ctx)) // ends with the call
			<-g.started
		}
		leave()
		require.ErrorIs(t, <-g.cause, context.Canceled)
		synctest.Wait()
		require.Empty(t, g.cause)
		close(g.release)
		for range 2 {
			require.NoError(t, <-g.cause)
		}
		synctest.Wait()
		require.True(t, h.abandoned.begin("address 192.0.2.1"))
		require.True(t, h.abandoned.begin("address 192.0.2.1"))
	})
}

func TestCallsOfASessionAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		h := NewHandler(&scripted{methods: script{"wait": g.serve}}, nil)
		defer h.Close()
		id := begin(t, h, "")
		for n := range 1024 {
			go status(h, "", id, call1(n, "wait")) // ends with h
			<-g.started
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, newPost(call1(1024, "echo"), "Mcp-Session-Id", id))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "busy: 1024 requests are in flight")
		close(g.release)
		for range 1024 {
			<-g.cause
		}
	})
}

// background sends a request in the background.
func (c *client) background(ctx context.Context, body string) (reply chan *http.Response) {
	reply = make(chan *http.Response, 1)
	// Ends with the reply or with ctx.
	go func() {
		resp, err := c.do(ctx, http.MethodPost, body)
		if err != nil {
			resp = nil
		}
		reply <- resp
	}()
	return reply
}

func TestDisconnectDoesNotCancelLegacyRequests(t *testing.T) {
	for name, test := range map[string]struct {
		opts Options
		body string
	}{
		"session":      {Options{}, call1(1, "wait")},
		"stateless":    {Options{Stateless: true}, call1(1, "wait")},
		"notification": {Options{}, `{"jsonrpc":"2.0","method":"wait"}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			gone := make(chan struct{})
			s := serve(t, script{"wait": g.serve}, &test.opts)
			inner := s.handler
			outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				context.AfterFunc(r.Context(), func() { gone <- struct{}{} })
				inner.ServeHTTP(w, r)
			})
			c := s.client()
			if !test.opts.Stateless {
				c = s.legacy("2025-06-18")
			}
			c.url = serveHTTP(t, outer)
			ctx, cancel := context.WithCancel(t.Context())
			reply := c.background(ctx, test.body)
			<-g.started
			cancel()
			<-gone
			<-reply
			close(g.release)
			require.NoError(t, <-g.cause)
		})
	}
}

// serveHTTP serves h on a loopback address for the time of the test.
func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

func TestCancelledNotification(t *testing.T) {
	g := newGate()
	s := serve(t, script{"wait": g.serve}, nil)
	c, other := s.legacy("2025-06-18"), s.legacy("2025-06-18")
	reply := c.background(t.Context(), call1(7, "wait"))
	<-g.started

	// An ID of another type, an unknown one, no ID, and the ID of a call of another session have no
	// effect.
	for _, n := range []struct {
		c  *client
		id string
	}{{c, `"7"`}, {c, `8`}, {c, `null`}, {c, `{}`}, {other, `7`}} {
		require.Equal(t, http.StatusAccepted, n.c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+n.id+`}}`).StatusCode)
	}
	require.Equal(t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`).StatusCode)
	select {
	case cause := <-g.cause:
		require.Fail(t, "cancelled", "%v", cause)
	default:
	}

	require.Equal(t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`).StatusCode)
	require.EqualError(t, <-g.cause, "cancelled by the peer")
	resp := <-reply
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
	require.Empty(t, read(t, resp))
	require.Empty(t, s.rpc.heard, "the handler does not get cancellations")
}

func TestCancelledRequestGetsNoResponse(t *testing.T) {
	started := make(chan struct{}, 2)
	answer := func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		if req.Method == "talk" {
			_ = talkative(ctx, req, peer)
		}
		started <- struct{}{}
		<-ctx.Done()
		return result(req, `{"late":true}`)
	}
	s := serve(t, script{"wait": answer, "talk": answer}, nil)
	for _, test := range []struct {
		name, version, request string
		status                 int
		want                   string
	}{
		{"before anything is sent", "2025-06-18", call1(7, "wait"), http.StatusAccepted, ""},
		{"on an open stream", "2025-06-18", call1(7, "talk"), http.StatusOK, "event: message\nid: 1-1\ndata: " + progress1 + "\n\nevent: message\nid: 1-2\ndata: " + progress2 + "\n\n"},
		{"in a batch", "2025-03-26", `[` + call1(7, "wait") + `]`, http.StatusAccepted, ""},
		{"in a batch of several", "2025-03-26", `[` + call1(1, "echo") + `,` + call1(7, "wait") + `]`, http.StatusOK, `[{"jsonrpc":"2.0","id":1,"result":{"a":1}}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := s.legacy(test.version)
			reply := c.background(t.Context(), test.request)
			<-started
			c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
			resp := <-reply
			require.Equal(t, test.status, resp.StatusCode)
			require.Equal(t, test.want, tags.ReplaceAllString(read(t, resp), "$1"))
		})
	}
}

func TestIDInFlightIsRefused(t *testing.T) {
	g := newGate()
	s := serve(t, script{"wait": g.serve}, nil)
	c := s.legacy("2025-06-18")
	reply := c.background(t.Context(), call1(7, "wait"))
	<-g.started
	resp := c.call(7, "echo")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"a request with the id 7 is in flight"}}`, read(t, resp))
	// The string "7" is another ID, and other sessions have their own IDs.
	require.Equal(t, http.StatusOK, c.post(`{"jsonrpc":"2.0","id":"7","method":"echo"}`).StatusCode)
	require.Equal(t, http.StatusOK, s.legacy("2025-06-18").call(7, "echo").StatusCode)
	close(g.release)
	require.Equal(t, answer7, read(t, <-reply))
	require.Equal(t, http.StatusOK, c.call(7, "echo").StatusCode, "the ID of an answered request can be reused")
}

func TestDeleteEndsTheSession(t *testing.T) {
	g := newGate()
	s := serve(t, script{"wait": g.serve}, nil)
	c := s.legacy("2025-11-25")
	ev := eventsOf(t, c.get())
	ev.next()
	reply := c.background(t.Context(), call1(1, "wait"))
	<-g.started

	resp := c.send(http.MethodDelete, "")
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	require.ErrorIs(t, <-g.cause, transport.ErrClosed)
	require.NotNil(t, <-reply)
	ev.end()
	session := s.rpc.sessions[0]

	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		require.Equal(t, http.StatusNotFound, c.send(method, call1(1, "echo")).StatusCode, method)
	}
	require.ErrorIs(t, session.Notify(t.Context(), notification("x", "")), transport.ErrClosed)
	require.Zero(t, memoryOf(s.handler).order.Len())
}

func TestFailedInitializeLeavesNoSession(t *testing.T) {
	s := serve(t, script{"initialize": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		require.NoError(t, notify(ctx, peer, 1))
		return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(-32602, "no")}
	}}, nil)
	resp := s.client().call(1, "initialize")
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`, read(t, resp))
	require.Empty(t, resp.Header.Get("Mcp-Session-Id"))
	require.Len(t, s.rpc.endedSessions(), 1)
	require.Empty(t, s.handler.sessions.all)
	require.Zero(t, memoryOf(s.handler).order.Len())
}

func TestShutdownLetsCallsFinish(t *testing.T) {
	g := newGate()
	listening := make(chan error, 1)
	asked := make(chan *jsonrpc.Response, 1)
	s := serve(t, script{
		"wait": g.serve,
		"subscriptions/listen": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_ = notify(ctx, peer, 1)
			<-ctx.Done()
			listening <- context.Cause(ctx)
			return result(req, `{"done":true}`)
		},
		"ask": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			resp, err := peer.Call(ctx, notification("ping", ""))
			require.NoError(t, err)
			asked <- resp
			return result(req, `{"done":true}`)
		},
	}, nil)
	c := s.legacy("2025-06-18")
	get := eventsOf(t, c.get())
	listen := eventsOf(t, s.modern().call(7, "subscriptions/listen"))
	require.Equal(t, progress1, listen.data())
	ask := eventsOf(t, c.call(8, "ask"))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, ask.data())
	reply := c.background(t.Context(), call1(7, "wait"))
	<-g.started

	ended := make(chan error, 1)
	go func() { ended <- s.handler.Shutdown(t.Context()) }() // ends with the calls
	require.ErrorIs(t, <-listening, transport.ErrClosed, "a subscription ends")
	require.Equal(t, answer7, listen.data(), "with a response")
	listen.end()
	get.end()

	resp := s.modern().call(9, "echo")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	require.Equal(t, `{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"server is shutting down"}}`, read(t, resp))
	require.Equal(t, http.StatusServiceUnavailable, c.call(9, "echo").StatusCode)
	require.Equal(t, http.StatusServiceUnavailable, s.client().call(9, "initialize").StatusCode)

	// A call in flight still gets the response to its server request.
	require.Equal(t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","id":1,"result":{"pong":true}}`).StatusCode)
	require.JSONEq(t, `{"pong":true}`, string((<-asked).Result))

	close(g.release)
	require.Equal(t, answer7, read(t, <-reply))
	require.NoError(t, <-ended)
}

func TestShutdownCancelsUnfinishedCalls(t *testing.T) {
	g := newGate()
	s := serve(t, script{"wait": g.serve}, nil)
	modern := s.modern().background(t.Context(), call1(1, "wait"))
	legacy := s.legacy("2025-06-18").background(t.Context(), call1(1, "wait"))
	<-g.started
	<-g.started
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	require.EqualError(t, s.handler.Shutdown(ctx), "no time")
	require.ErrorIs(t, <-g.cause, transport.ErrClosed)
	require.ErrorIs(t, <-g.cause, transport.ErrClosed)
	for _, reply := range []chan *http.Response{modern, legacy} {
		resp := <-reply
		require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
		_ = resp.Body.Close()
	}
}

func TestStreamsCanBeResumedDuringShutdown(t *testing.T) {
	closed, goOn := make(chan error, 1), make(chan struct{})
	s := serve(t, script{"poll": func(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		closed <- peer.(transport.StreamCloser).CloseStream(0)
		<-goOn
		return result(req, `{"done":true}`)
	}}, nil)
	c := s.legacy("2025-11-25")
	first := eventsOf(t, c.call(7, "poll")).next().ID
	require.NoError(t, <-closed)
	ended := make(chan error, 1)
	go func() { ended <- s.handler.Shutdown(t.Context()) }() // ends with the call
	<-s.handler.life.Draining.Done()
	require.Equal(t, http.StatusServiceUnavailable, c.get().StatusCode, "new streams are refused")
	ev := eventsOf(t, c.with("Last-Event-ID", first).get())
	close(goOn)
	require.Equal(t, answer7, ev.data())
	ev.end()
	require.NoError(t, <-ended)
}

func TestPanicOfAHandlerEndsItsExchangeAlone(t *testing.T) {
	s := serve(t, script{"panic": func(ctx context.Context, _ *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		_ = notify(ctx, peer, 1)
		panic("at the disco")
	}}, nil)
	c := s.legacy("2025-11-25")
	for range 2 {
		_, err := io.ReadAll(c.call(1, "panic").Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	c.works()
	require.NoError(t, s.handler.Shutdown(t.Context()), "nothing is in flight")
}

func TestListenServesOnePathAndLogsWhatItCancels(t *testing.T) {
	var log bytes.Buffer
	addrs, begun, over := make(chan net.Addr, 1), make(chan struct{}), make(chan error, 1)
	h := &scripted{methods: map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response{
		"quick": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response { return &jsonrpc.Response{} },
		"block": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			close(begun)
			<-ctx.Done()
			return &jsonrpc.Response{Result: []byte(`"ended"`)}
		},
	}}
	server := Listen("127.0.0.1:0", &Options{Stateless: true, ShutdownTimeout: 20 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil)), OnListen: func(a net.Addr) { addrs <- a }})
	ctx, stop := context.WithCancel(t.Context())
	go func() { over <- server.Serve(ctx, h) }()
	url := "http://" + (<-addrs).String()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(path, method string) string {
		resp, err := client.Post(url+path, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.Status + " " + string(body)
	}
	require.Equal(t, `200 OK {"jsonrpc":"2.0","id":1,"result":{}}`, post("/mcp?x=1", "quick"))
	for _, path := range []string{"/", "/mcp/", "/mcp/x", "/MCP"} {
		require.Equal(t, "404 Not Found 404 page not found\n", post(path, "quick"), path)
	}
	require.Equal(t, "404 Not Found there is no server card\n", post("/mcp/server-card", "quick"))
	go func() { <-begun; stop() }()
	require.Contains(t, post("/mcp", "block"), `"ended"`)
	require.NoError(t, <-over)
	require.Contains(t, log.String(), `level=WARN msg="streamable: requests were cancelled at the end of the shutdown timeout" timeout=20ms`)
}

func TestListenReportsErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	require.EqualError(t, Listen("127.0.0.1:0", &Options{Path: "mcp"}).Serve(t.Context(), &scripted{}), `streamable: path "mcp" must begin with a slash`)
	require.ErrorContains(t, Listen(taken.Addr().String(), nil).Serve(t.Context(), &scripted{}), "address already in use")
	require.EqualError(t, Listen("8080", nil).Serve(t.Context(), &scripted{}),
		"streamable: listen tcp: address 8080: missing port in address; give Listen a free address, such as 127.0.0.1:8080")
}

func TestServersThatOtherMachinesReachWarnOnce(t *testing.T) {
	for addr, warns := range map[string]int{"127.0.0.1:0": 0, "[::1]:0": 0, "0.0.0.0:0": 1, ":0": 1} {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		s := Listen(addr, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), OnListen: func(net.Addr) { cancel() }})
		err := s.Serve(ctx, &scripted{})
		if addr == "[::1]:0" && err != nil {
			continue // this machine has no IPv6
		}
		require.NoError(t, err, addr)
		require.Equal(t, warns, strings.Count(log.String(), "level=WARN"), addr)
		require.Equal(t, warns, strings.Count(log.String(), "does not authenticate callers"), addr)
	}
}

// keyed returns a handler of a server with the key.
func keyed(t *testing.T, key string, opts *Options) *Handler {
	t.Helper()
	srv := mcpkit.MustNew(&desk{}, mcpkit.Name("desk", "1"), mcpkit.StateKeys([]byte(strings.Repeat(key, 32))))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	h := NewHandler(srv, opts)
	t.Cleanup(h.Close)
	return h
}

// begin opens a session for a user, or nobody.
func begin(t *testing.T, h *Handler, user string) (id string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, as(user, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+canElicit+`}}`)))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Header().Get("Mcp-Session-Id")
}

func as(user string, r *http.Request) *http.Request {
	if user == "" {
		return r
	}
	return r.WithContext(oauth.NewContext(r.Context(), &oauth.Principal{Subject: user}))
}

// status sends a request in a session and returns its status.
func status(h *Handler, user, id, body string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, as(user, newPost(body, "Mcp-Session-Id", id)))
	return w.Code
}

const (
	pingBody     = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	setLevelBody = `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`
)

func TestSessionsOutliveTheProcess(t *testing.T) {
	id := begin(t, keyed(t, "k", nil), "ann")
	require.LessOrEqual(t, len(id), 256)
	again := keyed(t, "k", nil)
	require.Equal(t, http.StatusOK, status(again, "ann", id, pingBody))
	require.Equal(t, http.StatusNotFound, status(keyed(t, "x", nil), "ann", id, pingBody), "other keys")
}

func TestSessionIDsAreShort(t *testing.T) {
	h := keyed(t, "k", nil)
	long := strings.Repeat("n", 1000)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"`+long+`","version":"`+long+`"}}}`))
	id := w.Header().Get("Mcp-Session-Id")
	require.LessOrEqual(t, len(id), 256)
	require.Equal(t, http.StatusOK, status(h, "", id, pingBody))
}

func TestSessionsThatAreNotOpened(t *testing.T) {
	h := keyed(t, "k", nil)
	id := begin(t, h, "ann")
	middle := len(id) / 2
	changed := "A"
	if id[middle] == 'A' {
		changed = "B"
	}
	for name, bad := range map[string]string{
		"made up": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "long": strings.Repeat("A", 5000), "cut": id[:len(id)-4], "changed": id[:middle] + changed + id[middle+1:],
		"with a line break": id[:4] + "\n" + id[4:], "with more": id + "AAAA",
	} {
		require.Equal(t, http.StatusNotFound, status(h, "ann", bad, pingBody), name)
	}
	for _, other := range []string{"bob", ""} {
		require.Equal(t, http.StatusNotFound, status(h, other, id, pingBody), "another caller: %q", other)
	}
	require.Equal(t, http.StatusNotFound, status(h, "ann", begin(t, h, ""), pingBody), "the session of nobody")
	require.Equal(t, http.StatusOK, status(h, "ann", id, pingBody))
}

func TestHandlersThatStoreNoSessionsAreStateless(t *testing.T) {
	h := NewHandler(struct{ transport.Handler }{silentRPC{}}, nil)
	require.Empty(t, begin(t, h, ""))
	require.Equal(t, http.StatusOK, status(h, "", "", pingBody))
}

func TestSessionsLiveForAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(silentRPC{}, nil)
		defer h.Close()
		id := begin(t, h, "")
		time.Sleep(7*24*time.Hour - time.Second)
		require.Equal(t, http.StatusOK, status(h, "", id, pingBody))
		time.Sleep(2 * time.Second)
		require.Equal(t, http.StatusNotFound, status(h, "", id, pingBody))
	})
}

func TestDeletedSessionsStayDeleted(t *testing.T) {
	h := keyed(t, "k", nil)
	id := begin(t, h, "")
	r := newPost("", "Mcp-Session-Id", id)
	r.Method = http.MethodDelete
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Equal(t, http.StatusNotFound, status(h, "", id, pingBody))
	for range maxDeleted + 10 {
		h.sessions.end(begin(t, h, ""))
	}
	require.Equal(t, maxDeleted, h.sessions.deleted.Len())
}

func TestTheSessionThatWasIdleLongestIsDropped(t *testing.T) {
	h := keyed(t, "k", &Options{MaxSessions: 2})
	changed, other := begin(t, h, ""), begin(t, h, "")
	require.Equal(t, http.StatusOK, status(h, "", changed, setLevelBody))
	require.Equal(t, http.StatusOK, status(h, "", other, setLevelBody))
	require.Equal(t, http.StatusOK, status(h, "", changed, pingBody))
	third := begin(t, h, "")
	require.Equal(t, http.StatusOK, status(h, "", third, setLevelBody))
	require.Equal(t, http.StatusNotFound, status(h, "", other, pingBody), "its log level was only here, so it ended")
	require.Equal(t, http.StatusOK, status(h, "", changed, pingBody))
	require.Equal(t, http.StatusOK, status(h, "", third, pingBody))
	require.Len(t, h.sessions.all, 2)
}

func TestSessionsInUseAreNotDropped(t *testing.T) {
	h := keyed(t, "k", &Options{MaxSessions: 2})
	ids := []string{begin(t, h, ""), begin(t, h, ""), begin(t, h, "")}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := range 3000 {
				s, refusal := h.sessions.use(ids[i%len(ids)], (*oauth.Principal)(nil).Key())
				if !assert.Nil(t, refusal) {
					return
				}
				q, err := s.ledger.Ask(jsonrpc.ID{})
				if !assert.NoError(t, err, "a session in use has not ended") {
					return
				}
				q.End()
				h.sessions.release(s)
			}
		})
	}
	workers.Wait()
}

func TestSessionsInUseAreLimited(t *testing.T) {
	g := newGate()
	h := NewHandler(&scripted{methods: script{"wait": g.serve}}, &Options{MaxSessions: 1})
	defer h.Close()
	one, two := begin(t, h, ""), begin(t, h, "")
	ended := make(chan int)
	go func() { ended <- status(h, "", one, call1(1, "wait")) }() // ends with the call
	<-g.started
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newPost(pingBody, "Mcp-Session-Id", two))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "60", w.Header().Get("Retry-After"))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"too many sessions; try again later"}}`, w.Body.String())
	close(g.release)
	require.Equal(t, http.StatusOK, <-ended)
	require.Equal(t, http.StatusOK, status(h, "", two, call1(1, "echo")))
}

// agree packs what initialize agreed on and unpacks it.
func agree(t *testing.T, p protocol.InitializeParams, extensions []string) (got protocol.InitializeParams) {
	agreed, err := json.Marshal(p)
	require.NoError(t, err)
	text := packAgreement(agreed, extensions)
	require.LessOrEqual(t, len(text), 148)
	again, err := unpackAgreement(text, extensions)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(again, &got))
	return got
}

func TestAgreementsKeepWhatServersUse(t *testing.T) {
	for declared, kept := range map[string]string{
		`{}`: `{}`,
		`{"roots":{},"sampling":{},"elicitation":{}}`:                          `{"roots":{},"sampling":{},"elicitation":{}}`,
		`{"roots":{"listChanged":false},"elicitation":{"form":{"x":1}}}`:       `{"roots":{},"elicitation":{"form":{}}}`,
		`{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}}}`:  `{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`,
		`{"elicitation":{"url":{}},"extensions":{"a.b/c":{"x":1},"d.e/f":{}}}`: `{"elicitation":{"url":{}},"extensions":{"a.b/c":{}}}`,
	} {
		p := protocol.InitializeParams{ProtocolVersion: protocol.V20250618}
		p.ClientInfo = protocol.Implementation{Name: "x" + strings.Repeat("ä", 40), Version: "1"}
		require.NoError(t, json.Unmarshal([]byte(declared), &p.Capabilities))
		got := agree(t, p, []string{"other/x", "a.b/c"})
		require.Equal(t, protocol.V20250618, got.ProtocolVersion)
		require.Equal(t, protocol.Implementation{Name: "x" + strings.Repeat("ä", 31), Version: "1"}, got.ClientInfo, "64 bytes, without a part of a character")
		again, err := json.Marshal(got.Capabilities)
		require.NoError(t, err)
		require.JSONEq(t, kept, string(again))
	}
}

func TestDamagedAgreementsAreRefused(t *testing.T) {
	whole := packAgreement([]byte(`{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"n","version":"v"}}`), nil)
	for n := range len(whole) {
		_, err := unpackAgreement(whole[:n], nil)
		require.EqualError(t, err, "streamable: the session is not one that this server stored")
	}
	_, err := unpackAgreement(bytes.Replace(whole, []byte(`"v":`), []byte(`"v":9`), 1), nil)
	require.Error(t, err)
}

func TestAgreementsAlwaysFitIntoAnID(t *testing.T) {
	var extensions []string
	p := protocol.InitializeParams{ProtocolVersion: protocol.V20251125}
	p.ClientInfo = protocol.Implementation{Name: strings.Repeat("\x00", 64), Version: strings.Repeat("v", 64)}
	p.Capabilities.Extensions = map[string]protocol.Object{}
	for n := range 40 {
		extensions = append(extensions, fmt.Sprintf("example.com/%d", n))
		p.Capabilities.Extensions[extensions[n]] = protocol.Object{}
	}
	require.Len(t, agree(t, p, extensions).Capabilities.Extensions, 8)
}
