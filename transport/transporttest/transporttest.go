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
	"strings"
	"sync"
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
	test   func(t *testing.T, x *exam)
}

var facts = []fact{
	{name: "responses have the IDs of their requests", test: responsesHaveIDs},
	{name: "a notification is handled before the request behind it", test: notificationsAreInOrder},
	{name: "notifications of a call come before its response", test: notificationsComeFirst},
	{name: "calls do not wait for each other", test: callsAreConcurrent},
	{name: "many calls at once are answered once each", test: manyCalls},
	{name: "a cancelled call ends without a response", test: cancellationEndsCalls},
	{name: "invalid messages get errors", test: garbageIsRefused},
	{name: "a message that is too large is refused", unless: Unlimited, test: largeMessagesAreRefused},
	{name: "a client that does not read blocks its call", test: backpressure},
	{name: "sessions have the version of initialize", unless: Sessionless, test: sessionsHaveTheVersion},
	{name: "the session reaches the client outside calls", unless: Sessionless, test: sessionReachesClient},
	{name: "the server sends a request during a call", unless: Sessionless, test: serverAsks},
	{name: "a server request ends with its context", unless: Sessionless, test: questionsEnd},
	{name: "a disconnect ends the calls", test: hangingUpEndsCalls},
	{name: "a disconnect ends a call that waits for the client", unless: Sessionless, test: hangingUpEndsQuestions},
	{name: "calls finish when the server stops", unless: Undrained, test: stoppingLetsCallsFinish},
	{name: "a Peer returns ErrClosed after the call", test: peersEnd},
}

// Run tests a transport. Each test gets its own connection and must leave no goroutine behind.
func Run(t *testing.T, connect Connect, traits ...Trait) {
	run(t, connect, traits, func(t *testing.T, test func(*testing.T)) { test(t) })
}

// RunInBubble is like Run, with each test in a bubble of [synctest.Test], so that none waits for the
// clock. The connections have to be in memory, such as those of [io.Pipe] and [net.Pipe].
func RunInBubble(t *testing.T, connect Connect, traits ...Trait) {
	run(t, connect, traits, synctest.Test)
}

func run(t *testing.T, connect Connect, traits []Trait, within func(*testing.T, func(*testing.T))) {
	has := func(trait Trait) bool {
		for _, x := range traits {
			if x == trait {
				return true
			}
		}
		return false
	}
	for _, f := range facts {
		if f.unless != 0 && has(f.unless) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			within(t, func(t *testing.T) {
				x := &exam{t: t, h: newHandler(), sessions: !has(Sessionless)}
				x.conn = connect(t, x.h)
				if x.sessions {
					x.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
					x.expect(`{"jsonrpc":"2.0","id":"init","result":{}}`)
				}
				f.test(t, x)
				x.disconnect()
			})
			testkit.VerifyNone(t, before)
		})
	}
}

// patience is how long the tests wait for an event. It is long, since machines are busy.
const patience = 2 * time.Minute

// An exam is a connection under test.
type exam struct {
	t        *testing.T
	h        *handler
	conn     Conn
	sessions bool
}

func (x *exam) send(message string) {
	x.t.Helper()
	require.NoError(x.t, x.conn.Send([]byte(message)))
}

// receive returns the next message.
func (x *exam) receive() string {
	x.t.Helper()
	message, err := x.tryReceive()
	require.NoError(x.t, err)
	return message
}

func (x *exam) tryReceive() (string, error) {
	type received struct {
		message []byte
		err     error
	}
	got := make(chan received, 1)
	// Ends when a message arrives or the connection ends.
	go func() {
		message, err := x.conn.Receive()
		got <- received{message, err}
	}()
	select {
	case r := <-got:
		return string(bytes.TrimSpace(r.message)), r.err
	case <-time.After(patience):
		return "", errors.New("nothing was received")
	}
}

func (x *exam) expect(message string) {
	x.t.Helper()
	require.Equal(x.t, message, x.receive())
}

// works requires that the connection still serves.
func (x *exam) works() {
	x.t.Helper()
	x.send(`{"jsonrpc":"2.0","id":"still","method":"echo","params":{}}`)
	x.expect(`{"jsonrpc":"2.0","id":"still","result":{}}`)
}

// wait waits for a signal of the handler.
func (x *exam) wait(what string, signal <-chan struct{}) {
	x.t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		require.FailNow(x.t, "this did not happen: "+what)
	}
}

// disconnect closes the connection. It requires that the server's side ends and calls SessionEnded
// once for each session.
func (x *exam) disconnect() {
	x.t.Helper()
	_ = x.conn.Close()
	x.conn.Stop()
	x.wait("the server's side ends", x.conn.Done())
	x.h.mu.Lock()
	defer x.h.mu.Unlock()
	for s, ended := range x.h.ended {
		require.Equal(x.t, 1, ended, "SessionEnded of session %q", s.ID())
	}
	require.Len(x.t, x.h.ended, len(x.h.seen), "sessions that ended, of those that were seen")
}

func request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

func response(id int, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
}

// A handler is the server of the tests. Its methods select what it does.
type handler struct {
	begun   chan struct{} // a call of "block" began
	over    chan struct{} // a call of "block" saw the end of its context
	release chan struct{} // lets calls of "release" return

	mu    sync.Mutex
	heard []string                   // the params of notifications; guarded by mu
	told  int                        // notes that "flood" could send; guarded by mu
	seen  map[*transport.Session]int // calls by session; guarded by mu
	ended map[*transport.Session]int // guarded by mu
	peer  transport.Peer             // of the last "echo"; guarded by mu
}

func newHandler() *handler {
	return &handler{
		begun: make(chan struct{}, 1000), over: make(chan struct{}, 1000), release: make(chan struct{}),
		seen: make(map[*transport.Session]int), ended: make(map[*transport.Session]int),
	}
}

// SessionEnded implements [transport.SessionHandler].
func (h *handler) SessionEnded(s *transport.Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended[s]++
}

// ServeRPC implements [transport.Handler].
func (h *handler) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	h.mu.Lock()
	if s := peer.Session(); s != nil {
		h.seen[s]++
	}
	if req.Method == "echo" {
		h.peer = peer
	}
	h.mu.Unlock()
	if req.Method == "said slowly" {
		// Long enough for a request that does not wait to overtake it.
		time.Sleep(50 * time.Millisecond)
	}
	if req.IsNotification() {
		h.mu.Lock()
		h.heard = append(h.heard, string(req.Params))
		h.mu.Unlock()
	}
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
	nothing := json.RawMessage(`{}`)
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
			if err := peer.Notify(ctx, note(i)); err != nil {
				return nil, err
			}
		}
	case "block":
		h.begun <- struct{}{}
		<-ctx.Done()
		h.over <- struct{}{}
	case "release":
		h.begun <- struct{}{}
		select {
		case <-h.release:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	case "flood":
		return nothing, h.flood(ctx, peer)
	case "ask":
		return h.ask(ctx, req, peer)
	case "tell":
		return nothing, peer.Session().Notify(ctx, note(7))
	}
	return nothing, nil
}

// ask sends a request to the client. If the client does not respond, it acts like "block".
func (h *handler) ask(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) (json.RawMessage, error) {
	if string(req.Param("impatient")) == "true" {
		timed, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := peer.Call(timed, &jsonrpc.Request{Method: "roots/list"})
		if !errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("the question ended with %v", err)
		}
		return json.RawMessage(`"in vain"`), nil
	}
	resp, err := peer.Call(ctx, &jsonrpc.Request{Method: "roots/list"})
	if err != nil {
		h.over <- struct{}{}
		return nil, err
	}
	if resp.Error != nil {
		return nil, resp.Error
	}
	return resp.Result, nil
}

const (
	floodNotes = 1024
	floodSize  = 64 << 10
)

// flood sends far more than connections buffer.
func (h *handler) flood(ctx context.Context, peer transport.Peer) error {
	h.begun <- struct{}{}
	n := &jsonrpc.Request{Method: "note", Params: json.RawMessage(`{"x":"` + strings.Repeat("x", floodSize) + `"}`)}
	for range floodNotes {
		if err := peer.Notify(ctx, n); err != nil {
			return err
		}
		h.mu.Lock()
		h.told++
		h.mu.Unlock()
	}
	return nil
}

func note(i int) *jsonrpc.Request {
	return &jsonrpc.Request{Method: "note", Params: fmt.Appendf(nil, `{"n":%d}`, i)}
}
