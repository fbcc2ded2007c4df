// Package transporttest is the contract between a binding and those who use it, as tests: what [transport.Handler] and
// [transport.Peer] promise has to hold whatever carries the messages. A transport of your own is tested by one line:
//
//	transporttest.Run(t, connect)
//
// where connect serves a handler on the transport and returns the other end of a connection to it.
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
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// MaxMessageBytes is the limit that connect has to give the transport it serves on, unless that is [Unlimited].
const MaxMessageBytes = 64 << 10

// A Conn is the client's end of a connection to the handler under test. It is raw: it carries messages and knows nothing
// else, and it must not read ahead without bound. Send and Receive may be called at the same time, each by one goroutine.
type Conn interface {
	// Send sends one message. An error says that it was refused or that the connection is over.
	Send(message []byte) error

	// Receive returns the next message of the server. It waits for one, and returns an error when the connection is over.
	Receive() ([]byte, error)

	// Close hangs up, in whatever way clients of the binding do that, and makes Receive return.
	Close() error

	// Stop tells the server's side to end as it would at the end of its context: what is in flight may finish. It does
	// not wait.
	Stop()

	// Done is closed when the server's side is over.
	Done() <-chan struct{}
}

// Connect serves h on the transport under test, and returns the other end of a connection to it. What is in flight may go on for
// 200 ms at least and 5 s at most when the client hangs up.
type Connect func(t *testing.T, h transport.Handler) Conn

// A Trait is something that a binding is not able to do by its nature, so that what is promised of it is not tested.
type Trait int

// The traits that there are.
const (
	// Sessionless bindings have no sessions, and so no way to ask the client anything.
	Sessionless Trait = iota + 1
	// Unlimited bindings have no limit to the size of messages.
	Unlimited
	// Undrained bindings cancel what is in flight when they are stopped.
	Undrained
)

// A fact is one promise.
type fact struct {
	name   string
	unless Trait // it is not made by bindings with this trait
	test   func(t *testing.T, x *exam)
}

var facts = []fact{
	{name: "answers have the IDs of their requests", test: answersHaveIDs},
	{name: "a notification is handled before the request behind it", test: notificationsAreInOrder},
	{name: "notifications of a call come before its answer", test: notificationsComeFirst},
	{name: "calls do not wait for each other", test: callsAreConcurrent},
	{name: "many calls at once are answered once each", test: manyCalls},
	{name: "a cancelled call ends and is not answered", test: cancellationEndsCalls},
	{name: "what is no message does no harm", test: garbageIsRefused},
	{name: "a message that is too large does not get in", unless: Unlimited, test: largeMessagesAreRefused},
	{name: "a client that does not read holds up its call", test: backpressure},
	{name: "all calls have the same session", unless: Sessionless, test: oneSession},
	{name: "the session reaches the client outside calls", unless: Sessionless, test: sessionReachesClient},
	{name: "the server asks in the middle of a call", unless: Sessionless, test: serverAsks},
	{name: "a question ends with its context", unless: Sessionless, test: questionsEnd},
	{name: "a client that hangs up ends its calls", test: hangingUpEndsCalls},
	{name: "a client that hangs up in the middle of a question ends its call", unless: Sessionless, test: hangingUpEndsQuestions},
	{name: "calls finish when the server stops", unless: Undrained, test: stoppingLetsCallsFinish},
	{name: "a Peer is of no use after the call", test: peersEnd},
}

// Run tests the contract on a transport. Each fact gets a connection of its own, and must leave no goroutine behind.
func Run(t *testing.T, connect Connect, traits ...Trait) {
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
			x := &exam{t: t, h: newHandler(), sessions: !has(Sessionless)}
			x.conn = connect(t, x.h)
			if x.sessions {
				x.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
				x.expect(`{"jsonrpc":"2.0","id":"init","result":{}}`)
			}
			f.test(t, x)
			x.finish()
			leaktest.VerifyNone(t, before)
		})
	}
}

// patience is how long the tests wait for what has to happen. It is long: machines are busy.
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
	// Ends with what comes, or with the connection.
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

// finish hangs up, and requires that the server's side ends and says so, once for each session.
func (x *exam) finish() {
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

func answer(id int, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
}

// A handler is the server of the tests: it answers by method.
type handler struct {
	begun   chan struct{} // a call of "block" began
	over    chan struct{} // a call of "block" saw the end of its context
	release chan struct{} // lets calls of "release" answer

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

// ask asks the client, and is like "block" where the client does not answer.
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
