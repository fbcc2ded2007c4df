package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestMalformedResponseEndsTheServerRequest(t *testing.T) {
	got := make(chan *jsonrpc.Response, 1)
	s := serve(t, script{"ask": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		resp, err := peer.Call(ctx, notification("ping", ""))
		if err == nil {
			got <- resp
		}
		return result(req, `{"done":true}`)
	}}, nil)
	c := s.legacy("2025-06-18")
	ev := eventsOf(t, c.call(7, "ask"))
	ev.data()
	resp := c.post(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.NotNil(t, (<-got).Error)
	require.Equal(t, answer7, ev.data())
}

// A brokenStore keeps nothing.
type brokenStore struct{ eventStore }

func (brokenStore) append(context.Context, *legacySession, event) error {
	return errors.New("disk full")
}

func TestBrokenEventStoreCostsOnlyResumption(t *testing.T) {
	s := serve(t, script{"talk": talkative}, nil)
	s.handler.events = brokenStore{s.handler.events}
	c := s.legacy("2025-11-25")
	ev := eventsOf(t, c.call(7, "talk"))
	require.Regexp(t, "_1-0$", ev.next().ID)
	require.Equal(t, progress1, ev.data())
	require.Equal(t, progress2, ev.data())
	require.Equal(t, answer7, ev.data())
	ev.end()
	require.Contains(t, s.log.String(), `level=ERROR msg="streamable: event store did not keep a message" err="disk full"`)
	c.send(http.MethodDelete, "")
	require.NoError(t, s.handler.Shutdown(t.Context()))
}

func TestListenerThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: time.Minute})
		defer h.Close()
		id := begin(t, h, "")
		w := &stuckWriter{ResponseRecorder: httptest.NewRecorder(), stuck: true}
		begin := time.Now()
		h.ServeHTTP(w, newGet(t.Context(), id))
		require.Equal(t, 30*time.Second, time.Since(begin))
		require.False(t, known(h, id).out.listening())
	})
}

func TestListenerOutlivesTheTimeoutsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: 40 * time.Second})
		defer h.Close()
		client, closeAll := testkit.Serve(&http.Server{Handler: h, ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second})
		defer closeAll()
		open := httptest.NewRecorder()
		h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`))
		id := open.Header().Get("Mcp-Session-Id")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://mcp.test", nil)
		require.NoError(t, err)
		r.Header = newGet(t.Context(), id).Header
		begun := time.Now()
		resp, err := client.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		var comments [3 * len(": keep-alive\n\n")]byte
		_, err = io.ReadFull(resp.Body, comments[:])
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begun), time.Minute)
		require.NoError(t, known(h, id).Notify(t.Context(), notification("n", "")))
		require.Equal(t, `{"jsonrpc":"2.0","method":"n"}`, eventsOf(t, resp).data())
	})
}

func TestListenersEndWithTheirCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: time.Second})
		defer h.Close()
		ctx := func() context.Context {
			return oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann", Expires: time.Now().Add(time.Minute)})
		}
		open := httptest.NewRecorder()
		h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`).WithContext(ctx()))
		for range 2 { // the client resumes with another token
			begin := time.Now()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, newGet(ctx(), open.Header().Get("Mcp-Session-Id")))
			require.Equal(t, time.Minute, time.Since(begin))
			require.Equal(t, http.StatusOK, w.Code)
		}
	})
}

func TestSessionOfAnInitializeThatPanicsEnds(t *testing.T) {
	s := serve(t, script{"initialize": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
		panic("at the door")
	}}, nil)
	_, err := s.client().do(t.Context(), http.MethodPost, call1(1, "initialize"))
	require.Error(t, err)
	require.Eventually(t, func() bool { return len(s.rpc.endedSessions()) == 1 }, time.Minute, time.Millisecond)
}

// A storeOf calls a function before it keeps a message, as the store of a fleet that may be slow.
type storeOf struct {
	eventStore
	before func()
}

func (s storeOf) append(ctx context.Context, session *legacySession, e event) error {
	s.before()
	return s.eventStore.append(ctx, session, e)
}

// delay lets h call before each time that it stores a message.
func delay(h *Handler, before func()) { h.events = storeOf{h.events, before} }

// memoryOf returns what h keeps for clients that resume streams.
func memoryOf(h *Handler) *memoryStore { return h.memory }

func TestCallsDoNotQueueForASlowEventStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(&scripted{methods: script{"talk": talkative}}, nil)
		delay(h, func() { time.Sleep(200 * time.Millisecond) })
		defer h.Close()
		id := begin(t, h, "")
		start := time.Now()
		var calls sync.WaitGroup
		for i := range 10 {
			calls.Go(func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, newPost(call1(i, "talk"), "Mcp-Session-Id", id))
				assert.Contains(t, w.Body.String(), `"done":true`)
			})
		}
		calls.Wait()
		require.Equal(t, 600*time.Millisecond, time.Since(start), "three messages for each call, all calls at the same time")
	})
}

func TestMemoryStore(t *testing.T) {
	ctx := t.Context()
	m := &memoryStore{sessionBytes: 1000, sessionEvents: 3, totalBytes: 1500}
	sessions := map[string]*legacySession{"a": {}, "b": {}, "never seen": {}}
	add := func(session, stream string, seq uint64, size int) {
		t.Helper()
		require.NoError(t, m.append(ctx, sessions[session], event{stream: stream, seq: seq, data: []byte(strings.Repeat("x", size))}))
	}
	seqs := func(session, stream string, after uint64) []uint64 {
		t.Helper()
		events, err := m.after(ctx, sessions[session], stream, after)
		require.NoError(t, err)
		var all []uint64
		for _, ev := range events {
			all = append(all, ev.seq)
		}
		return all
	}
	require.Empty(t, seqs("a", "1", 0), "an unknown stream has no messages")
	add("a", "1", 1, 10)
	add("a", "2", 1, 10)
	add("a", "1", 2, 10)
	require.Equal(t, []uint64{1, 2}, seqs("a", "1", 0))
	require.Equal(t, []uint64{2}, seqs("a", "1", 1))
	require.Equal(t, []uint64{1}, seqs("a", "2", 0))
	add("a", "2", 2, 10)
	require.Equal(t, []uint64{2}, seqs("a", "1", 0), "beyond the number of a session, the oldest is dropped")
	add("a", "1", 3, 800)
	require.Equal(t, []uint64{3}, seqs("a", "1", 0), "beyond the bytes of a session, the oldest are dropped")
	require.Empty(t, seqs("a", "2", 0))
	require.Equal(t, errTooLarge, m.append(ctx, sessions["a"], event{stream: "1", seq: 4, data: make([]byte, 901)}))
	add("b", "1", 1, 800)
	require.Empty(t, seqs("a", "1", 0), "beyond the bytes of all, the session that was silent longest is dropped")
	m.forget(sessions["b"])
	m.forget(sessions["never seen"])
	require.Empty(t, seqs("b", "1", 0))
	require.Zero(t, m.bytes)
	require.Zero(t, m.order.Len())
}

func TestEachCallerHasItsOwnStreams(t *testing.T) {
	s := callerStreams{max: 2}
	require.True(t, s.begin("ann"))
	require.True(t, s.begin("ann"))
	require.False(t, s.begin("ann"))
	require.True(t, s.begin("ben"))
	s.end("ann")
	require.True(t, s.begin("ann"))
	s.end("ann")
	s.end("ann")
	s.end("ben")
	require.Empty(t, s.open, "nothing is kept of callers without streams")
}
