// Package transporttest tests that a transport keeps the promises of [transport.Handler] and
// [transport.Peer]. One line tests a transport of your own:
//
//	transporttest.Run(t, connect)
//
// where connect serves a handler on the transport and returns the client's end of a connection to
// it.
package transporttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// MaxMessageBytes is the message limit that connect must set on the transport, unless it is
// [Unlimited].
const MaxMessageBytes = 64 << 10

// A Conn is the client's end of a connection to the handler under test. It only carries messages,
// and must not read ahead without limit. One goroutine may call Send and another Receive at the
// same time.
type Conn interface {
	// Send sends one message. It returns an error if the message is refused or the connection has
	// ended.
	Send(message []byte) error

	// Receive waits for the next message of the server. It returns an error if the connection has
	// ended.
	Receive() ([]byte, error)

	// Close disconnects as clients of the transport do, and makes Receive return.
	Close() error

	// Stop shuts down the server's side as the end of its context does: calls in flight may finish.
	// It does not wait.
	Stop()

	// Done is closed when the server's side has ended.
	Done() <-chan struct{}
}

// Connect serves h on the transport under test, and returns the client's end of a connection to it.
// After the client disconnects, calls in flight may continue for at least 200 ms and at most 5 s.
type Connect func(t *testing.T, h transport.Handler) Conn

// A Trait is something that a transport cannot do, so that Run skips the tests for it.
type Trait int

// Traits of transports.
const (
	// Sessionless transports have no sessions, so the server cannot send requests to the client.
	Sessionless Trait = iota + 1
	// Unlimited transports have no limit for the size of messages.
	Unlimited
	// Undrained transports cancel the calls in flight when they are stopped.
	Undrained
)

// A fact is one promise and its test.
type fact struct {
	name   string
	unless Trait // transports with this trait do not promise it
	test   func(x *exam)
}

var facts = []fact{
	{name: "responses have the IDs of their requests", test: responsesHaveIDs},
	{name: "a notification is handled before the request behind it", test: notificationsAreInOrder},
	{name: "notifications of a call come before its response", test: notificationsComeFirst},
	{name: "calls do not wait for each other, and are answered once each", test: manyCalls},
	{name: "a cancelled call ends without a response", test: cancellationEndsCalls},
	{name: "invalid messages get errors", test: garbageIsRefused},
	{name: "a message that is too large is refused", unless: Unlimited, test: largeMessagesAreRefused},
	{name: "a client that does not read blocks its call", test: backpressure},
	{name: "sessions have the version of initialize", unless: Sessionless, test: sessionsHaveTheVersion},
	{name: "the session reaches the client outside calls", unless: Sessionless, test: sessionReachesClient},
	{name: "the server sends a request during a call", unless: Sessionless, test: serverAsks},
	{name: "a server request ends with its call", unless: Sessionless, test: cancellationEndsQuestions},
	{name: "a disconnect ends the calls", test: hangingUpEndsCalls},
	{name: "a disconnect ends a call that waits for the client", unless: Sessionless, test: hangingUpEndsQuestions},
	{name: "calls finish when the server stops", unless: Undrained, test: stoppingLetsCallsFinish},
	{name: "a Peer returns ErrClosed after the call", test: peersEnd},
}

// Run tests a transport. Each test gets its own connection, which connect opens to a server that
// serves a given handler, and must leave no goroutine behind.
//
//	func TestContract(t *testing.T) { transporttest.Run(t, connect) }
func Run(t *testing.T, connect Connect, traits ...Trait) {
	run(t, connect, traits, func(t *testing.T, test func(*testing.T)) { test(t) })
}

// RunInBubble is like Run, with each test in a bubble of [synctest.Test], so that none waits for the
// clock. The connections have to be in memory, such as those of [io.Pipe] and [net.Pipe].
func RunInBubble(t *testing.T, connect Connect, traits ...Trait) {
	run(t, connect, traits, synctest.Test)
}

func run(t *testing.T, connect Connect, traits []Trait, within func(*testing.T, func(*testing.T))) {
	for _, f := range facts {
		if slices.Contains(traits, f.unless) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			within(t, func(t *testing.T) {
				x := &exam{T: t, handler: newHandler()}
				x.conn = connect(t, x.handler)
				// If a message does not come, Receive returns an error.
				watchdog := time.AfterFunc(patience, func() { _ = x.conn.Close() })
				defer watchdog.Stop()
				if !slices.Contains(traits, Sessionless) {
					x.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
					x.expect(`{"jsonrpc":"2.0","id":"init","result":{}}`)
				}
				f.test(x)
				require.True(t, watchdog.Stop(), "it took longer than %v", patience)
				x.disconnect()
			})
			testkit.VerifyNone(t, before)
		})
	}
}

// patience is how long a test may take, and how long it waits for an event. It is long, since machines
// are busy.
const patience = 2 * time.Minute

// An exam is a connection under test.
type exam struct {
	*testing.T
	*handler
	conn Conn
}

func (x *exam) send(message string) {
	x.Helper()
	require.NoError(x, x.conn.Send([]byte(message)))
}

// receive returns the next message.
func (x *exam) receive() string {
	x.Helper()
	message, err := x.conn.Receive()
	require.NoError(x, err)
	return string(bytes.TrimSpace(message))
}

func (x *exam) expect(message string) {
	x.Helper()
	require.Equal(x, message, x.receive())
}

// works requires that the connection still serves.
func (x *exam) works() {
	x.Helper()
	x.send(`{"jsonrpc":"2.0","id":"still","method":"echo","params":{}}`)
	x.expect(`{"jsonrpc":"2.0","id":"still","result":{}}`)
}

// wait waits for a signal.
func (x *exam) wait(what string, signal <-chan struct{}) {
	x.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		require.FailNow(x, "this did not happen: "+what)
	}
}

// disconnect closes the connection. It requires that the server's side ends and calls SessionEnded
// once for each session.
func (x *exam) disconnect() {
	x.Helper()
	_ = x.conn.Close()
	x.conn.Stop()
	x.wait("the server's side ends", x.conn.Done())
	x.mu.Lock()
	defer x.mu.Unlock()
	for s, ended := range x.sessions {
		require.Equal(x, 1, ended, "SessionEnded of session %q", s.ID())
	}
}

// A handler is the server of the tests. Its methods select what it does.
type handler struct {
	Sessions
	begun   chan struct{} // a call of "block" or "flood" began
	over    chan struct{} // a call of "block" or "ask" saw the end of its context
	release chan struct{} // lets calls of "block" return
	told    atomic.Int64  // notes that "flood" could send

	mu       sync.Mutex
	heard    []string                   // the params of notifications; guarded by mu
	sessions map[*transport.Session]int // how often each has ended; guarded by mu
	peer     transport.Peer             // of the last "echo"; guarded by mu
}

func newHandler() *handler {
	return &handler{
		begun: make(chan struct{}, 100), over: make(chan struct{}, 100), release: make(chan struct{}),
		sessions: make(map[*transport.Session]int),
	}
}

// SessionEnded implements [transport.SessionHandler].
func (h *handler) SessionEnded(s *transport.Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[s]++
}

// ServeRPC implements [transport.Handler].
func (h *handler) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if req.Method == "said slowly" {
		time.Sleep(50 * time.Millisecond) // long enough for a request that does not wait to overtake it
	}
	h.mu.Lock()
	if s := peer.Session(); s != nil {
		h.sessions[s] += 0
	}
	if req.Method == "echo" {
		h.peer = peer
	}
	if req.IsNotification() {
		h.heard = append(h.heard, string(req.Params))
	}
	h.mu.Unlock()
	if req.IsNotification() {
		return nil
	}
	result, err := h.call(ctx, req, peer)
	if err != nil {
		return &jsonrpc.Response{Error: jsonrpc.Errorf(-32000, "%v", err)}
	}
	return &jsonrpc.Response{Result: result}
}

func (h *handler) call(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) (json.RawMessage, error) {
	var err error
	switch req.Method {
	case "initialize":
		if s := peer.Session(); s != nil {
			s.SetVersion("2025-11-25")
		}
	case "echo":
		return req.Params, nil
	case "heard":
		h.mu.Lock()
		defer h.mu.Unlock()
		return json.Marshal(strings.Join(h.heard, " "))
	case "notes":
		for i := range 100 {
			err = errors.Join(err, peer.Notify(ctx, note(i)))
		}
	case "block":
		h.begun <- struct{}{}
		select {
		case <-h.release:
		case <-ctx.Done():
			h.over <- struct{}{}
			err = context.Cause(ctx)
		}
	case "flood":
		h.begun <- struct{}{}
		n := &jsonrpc.Request{Method: "note", Params: json.RawMessage(`"` + strings.Repeat("x", floodSize) + `"`)}
		for range floodNotes {
			err = errors.Join(err, peer.Notify(ctx, n))
			h.told.Add(1)
		}
	case "ask":
		resp, err := peer.Call(ctx, &jsonrpc.Request{Method: "roots/list"})
		if err != nil {
			h.over <- struct{}{}
			return nil, err
		}
		if resp.Error != nil {
			return nil, resp.Error
		}
		return resp.Result, nil
	case "tell":
		err = peer.Session().Notify(ctx, note(7))
	}
	return json.RawMessage(`{}`), err
}

// A flood is far more than connections buffer.
const (
	floodNotes = 1024
	floodSize  = 64 << 10
)

func note(i int) *jsonrpc.Request {
	return &jsonrpc.Request{Method: "note", Params: fmt.Appendf(nil, `{"n":%d}`, i)}
}
