package streamable

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
				assertContains(t, w.body.String(), `"done":true`)
			})
		}
		calls.Wait()
		require.Equal(t, 600*time.Millisecond, time.Since(start), "three messages for each call, all calls at the same time")
	})
}

func assertContains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not contain %q", text, part)
	}
}
