package streamable

import (
	"context"
	"fmt"
	"net"
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

func TestNoSessionOutlivesTheHandler(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	s := serve(t, script{"initialize": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		close(started)
		<-release
		return result(req, `{"ok":true}`)
	}}, nil)
	reply := s.client().background(t.Context(), call1(1, "initialize"))
	<-started
	s.handler.Close()
	close(release)
	resp := <-reply
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Empty(t, resp.Header.Get("Mcp-Session-Id"))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"server is shutting down"}}`, read(t, resp))
	require.Len(t, s.rpc.endedSessions(), 1)
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
	before func(session string)
}

func (s storeOf) append(ctx context.Context, session, stream string, e event) error {
	s.before(session)
	return s.eventStore.append(ctx, session, stream, e)
}

// delay lets h call before each time that it stores a message.
func delay(h *Handler, before func(session string)) { h.events = storeOf{h.events, before} }

// memoryOf returns what h keeps for clients that resume streams.
func memoryOf(h *Handler) *memoryStore { return h.events.(*memoryStore) }

// open opens a session of h without a network.
func open(t *testing.T, h http.Handler) (id string) {
	t.Helper()
	w := newRecorder()
	h.ServeHTTP(w, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`))
	require.Equal(t, http.StatusOK, w.status)
	return w.Header().Get("Mcp-Session-Id")
}

func TestCallsDoNotQueueForASlowEventStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(&scripted{methods: script{"talk": talkative}}, nil)
		delay(h, func(string) { time.Sleep(200 * time.Millisecond) })
		defer h.Close()
		id := open(t, h)
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

func TestBlockedEventStoreAffectsOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, release := "", make(chan struct{})
		rpc := &scripted{}
		h := NewHandler(rpc, nil)
		delay(h, func(session string) {
			if session == hung {
				<-release
			}
		})
		defer h.Close()
		defer close(release)
		hung = open(t, h)
		good := open(t, h)
		ctx, cancel := context.WithCancel(t.Context())
		listening := newRecorder()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.ServeHTTP(listening, newGet(ctx, good))
		}()
		synctest.Wait()
		told := make(chan struct{})
		go func() { // as when lists change; ends when all sessions are notified
			defer close(told)
			for _, s := range rpc.sessions {
				for n := range 3 {
					_ = s.Notify(t.Context(), notification("changed", fmt.Sprintf(`{"n":%d}`, n)))
				}
			}
		}()
		select {
		case <-told:
		case <-time.After(time.Minute):
			require.Fail(t, "the notifications wait for the store of one session")
		}
		synctest.Wait()
		require.Equal(t, 3, strings.Count(listening.body.String(), `"method":"changed"`))
		// The session with the blocked store can end too.
		w := newRecorder()
		del := newPost("", "Mcp-Session-Id", hung)
		del.Method = http.MethodDelete
		h.ServeHTTP(w, del)
		require.Equal(t, http.StatusNoContent, w.status)
		cancel()
		<-ended
	})
}

func TestNotificationsAreDroppedWhenTheStoreIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		rpc := &scripted{}
		var log lockedBuffer
		h := NewHandler(rpc, &Options{Logger: textLogger(&log)})
		delay(h, func(string) { <-release })
		defer h.Close()
		open(t, h)
		var errs int
		for range maxPending + 10 {
			if rpc.sessions[0].Notify(t.Context(), notification("n", "")) != nil {
				errs++
			}
		}
		require.InDelta(t, 10, errs, 1)
		close(release)
		synctest.Wait()
		require.NoError(t, rpc.sessions[0].Notify(t.Context(), notification("n", "")))
		synctest.Wait()
	})
}

func TestKeepAliveSurvivesASlowEventStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := false
		rpc := &scripted{methods: script{"slow": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_ = notify(ctx, peer, 1)
			slow = true
			_ = notify(ctx, peer, 2) // 9 seconds
			time.Sleep(10 * time.Second)
			return result(req, `{"done":true}`)
		}}}
		h := NewHandler(rpc, &Options{KeepAlive: 4 * time.Second})
		delay(h, func(string) {
			if slow {
				time.Sleep(9 * time.Second)
			}
		})
		defer h.Close()
		w := newRecorder()
		h.ServeHTTP(w, newPost(call1(7, "slow"), "Mcp-Session-Id", open(t, h)))
		require.Equal(t, 6, strings.Count(w.body.String(), ": keep-alive"), "two in the first 9 s, two in the 10 s after, two in the last 9 s: %s", w.body.String())
	})
}

// A countingListener counts its open connections.
type countingListener struct {
	net.Listener
	mu   sync.Mutex
	open int // guarded by mu
}

type countedConn struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *countedConn) Close() error { c.once.Do(c.closed); return c.Conn.Close() }

func (l *countingListener) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += n
}

func (l *countingListener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.add(1)
	return &countedConn{Conn: c, closed: func() { l.add(-1) }}, nil
}

func TestCallOfADisconnectedClientHoldsNoConnection(t *testing.T) {
	for name, test := range map[string]struct {
		opts Options
		talk bool
	}{
		"session": {}, "session, stream": {talk: true}, "stateless": {opts: Options{Stateless: true}}, "stateless, stream": {opts: Options{Stateless: true}, talk: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			s := serve(t, script{"wait": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
				if test.talk {
					_ = notify(ctx, peer, 1)
				}
				resp := g.serve(ctx, req, peer)
				_ = notify(ctx, peer, 2)
				return resp
			}}, &test.opts)
			c := s.client()
			if !test.opts.Stateless {
				c = s.legacy("2025-06-18")
			}
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			l := &countingListener{Listener: inner}
			server := &http.Server{Handler: s.handler}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = server.Serve(l)
			}()
			defer func() { _ = server.Close(); <-done }()
			c.url = "http://" + inner.Addr().String()
			const n = 20
			var left []context.CancelFunc
			for i := range n {
				ctx, cancel := context.WithCancel(t.Context())
				left = append(left, cancel)
				reply := c.background(ctx, call1(i+1, "wait"))
				defer func() {
					if resp := <-reply; resp != nil {
						_ = resp.Body.Close()
					}
				}()
				<-g.started
			}
			require.Equal(t, n, l.count())
			for _, leave := range left {
				leave()
			}
			require.Eventually(t, func() bool { return l.count() == 0 }, time.Minute, time.Millisecond, "while the calls continue")
			close(g.release)
			for range n {
				require.NoError(t, <-g.cause)
			}
			require.NoError(t, s.handler.Shutdown(t.Context()))
		})
	}
}
