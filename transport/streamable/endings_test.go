package streamable

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

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
				w := newRecorder()
				h.ServeHTTP(w, newPost(call1(i, "talk"), "Mcp-Session-Id", id))
				assert.Contains(t, w.body.String(), `"done":true`)
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
