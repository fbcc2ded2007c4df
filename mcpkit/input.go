package mcpkit

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/rounds"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// askError is an outcome of a question other than an answer. Callers may see its text.
type askError struct{ text string }

func (e *askError) Error() string       { return e.text }
func (e *askError) UserMessage() string { return e.text }

// Errors of questions.
var (
	// ErrDeclined means that the user refused to answer.
	ErrDeclined error = &askError{"the user declined"}
	// ErrCancelled means that the user closed the question without answering.
	ErrCancelled error = &askError{"the user cancelled"}
	// ErrUnsupported means that the client did not declare the capability for such a question.
	ErrUnsupported error = &askError{"this client cannot be asked that"}
	// ErrCannotAsk means that this connection cannot carry a question: a legacy client uses a
	// stateless server. Serve it with sessions, or let the client use version 2026-07-28.
	ErrCannotAsk error = &askError{"this connection cannot carry a question to the client"}
)

// ErrAsked means that the client gets a question and will send the call again with the answer
// (2026-07-28). The method should return it, and runs again from its beginning. The call keeps the
// question, so the client gets it even if the method ignores this error.
var ErrAsked error = &askError{"mcpkit: the question goes to the client; return this error"}

// errOver is the error of questions after the end of their call.
var errOver = errors.New("mcpkit: the call is over; ask before its method returns")

// answerTime is how long a client of 2026-07-28 may take to send a call again with its answers.
const answerTime = time.Hour

// MaxRounds is how many times a client of 2026-07-28 may send a call again with answers.
const MaxRounds = 32

// An AskOption configures a question.
type AskOption func(*askOptions)

type askOptions struct{ key string }

// Key names a question for the client; by default its content does. An answer is used only for a
// question with the same text. If several questions are asked at once, their numbers stand before
// their keys: "1-size".
func Key(key string) AskOption { return func(o *askOptions) { o.key = key } }

// A dialog is what a call keeps of its questions, and from round to round.
type dialog struct {
	begun     time.Time   // when the first round began
	consulted atomic.Bool // the client was asked a question

	mu       sync.Mutex
	ref      string            // guarded by mu
	asked    *rounds.Questions // guarded by mu; see input.go
	detached bool              // guarded by mu: runs continue the call
}

// Asked reports whether the method has asked the client a question, for instance with [Elicit]:
// then its result is for this call only.
func (d *dialog) Asked() bool { return d.consulted.Load() }

// Round returns how many times the client has sent the call again with answers. It is always 0 on
// legacy versions, where the method waits for answers.
func (d *dialog) Round() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked == nil {
		return 0
	}
	return d.asked.State.Round
}

// Ref returns a short random name of this call for logs. A caller sees it in internal errors. It is
// the same in all rounds of a call that asks questions.
func (d *dialog) Ref() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refLocked()
}

// refLocked is like Ref. The caller holds mu.
func (d *dialog) refLocked() string {
	if d.ref == "" {
		d.ref = newRef()
	}
	return d.ref
}

// Begun returns when the first round of the call began.
func (d *dialog) Begun() time.Time { return d.begun }

// takeState reads requestState and inputResponses of a retry (basic/patterns, multi round-trip
// requests). They come from the client, so the state must fit this call.
func (c *Call) takeState() *jsonrpc.Error {
	responses := c.req.Param("inputResponses")
	if responses != nil && jsonx.Kind(responses) != '{' {
		return invalidParams("inputResponses is not an object")
	}
	raw := c.req.Param("requestState")
	if raw == nil {
		if responses != nil {
			c.asked, _ = rounds.Answered(nil, responses)
		}
		return nil
	}
	if jsonx.Kind(raw) != '"' {
		return invalidParams("requestState is not a string")
	}
	state, err := c.server.state.Open(jsonx.String(raw))
	if err != nil || !c.fits(state) {
		return invalidParams("%v, or not for this call", rounds.ErrBadState)
	}
	var bad *jsonrpc.Error
	if c.asked, bad = rounds.Answered(state, responses); bad != nil {
		return bad
	}
	c.ref, c.begun = state.Ref, time.UnixMilli(state.Begun)
	return nil
}

// fits reports whether the state was made for this call: by its caller, target, arguments and time.
func (c *Call) fits(st *rounds.State) bool {
	return st.Method == c.row.method && st.Name == c.name && st.Round <= MaxRounds &&
		time.Now().Unix() <= st.Expires &&
		bytes.Equal(st.Arguments, c.argumentsDigest()) && bytes.Equal(st.Principal, c.principalDigest())
}

func (c *Call) argumentsDigest() []byte {
	args := c.req.Param("arguments") // the client's, which it repeats, not those of SetArguments
	if args == nil {
		args = []byte("{}")
	}
	// Clients repeat the arguments, perhaps with other white space.
	compact, err := jsonx.Compact(bytes.Clone(args))
	if err != nil {
		compact = args
	}
	return rounds.Digest(compact)
}

func (c *Call) principalDigest() []byte { return rounds.Digest([]byte(c.principal.Key())) }

// ask sends a question and returns the result as JSON. On legacy versions it waits; on modern ones
// it returns the answer that the client sent, or ErrAsked.
func (c *Call) ask(ctx context.Context, method string, params json.RawMessage, opts []AskOption) (json.RawMessage, error) {
	if c.progress.isOver() {
		return nil, errOver
	}
	c.consulted.Store(true)
	if !c.version.Modern() {
		return c.askLegacy(ctx, method, params)
	}
	if !c.row.asks {
		return nil, ErrCannotAsk
	}
	return c.askModern(method, params, opts)
}

func (c *Call) askLegacy(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	resp, err := c.question(ctx, method, params)
	switch {
	case errors.Is(err, transport.ErrNoServerRequests):
		return nil, ErrCannotAsk
	case err != nil:
		return nil, err
	case resp.Error != nil && resp.Error.Code == protocol.CodeUserRejected:
		return nil, ErrDeclined
	case resp.Error != nil:
		return nil, Errorf("the client answered %s with an error: %s", method, resp.Error.Message)
	}
	return resp.Result, nil
}

func (c *Call) askModern(method string, params json.RawMessage, opts []AskOption) (json.RawMessage, error) {
	var o askOptions
	for _, opt := range opts {
		opt(&o)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	value, err := c.questions().Ask(c.owner(), method, params, o.key)
	if value == nil && err == nil {
		err = ErrAsked
	}
	return value, err
}

// questions returns c.asked, which it makes on first use. c.mu is held.
func (c *Call) questions() *rounds.Questions {
	if c.asked == nil {
		c.asked = &rounds.Questions{}
	}
	return c.asked
}

// settle replaces the result of a method by input_required if it asked questions that have no
// answer yet, even if the method has ignored the error.
func (c *Call) settle(result Result, err error) (Result, error) {
	next, requests := c.nextRound()
	switch {
	case requests == nil:
		return result, err
	case next.Round > MaxRounds:
		return nil, Errorf("the call asked questions in %d rounds, which is the most it may; "+
			"a question whose text changes from round to round finds no answer: leave out what changes, or keep it with mcpkit.Once", MaxRounds)
	case c.run != nil:
		return &protocol.InputRequiredResult{InputRequests: requests}, nil // the journal has the rest
	}
	sealed, err := c.server.state.Seal(next)
	if err != nil {
		return nil, err
	}
	c.server.warnOfRandomKey(c)
	return &protocol.InputRequiredResult{InputRequests: requests, RequestState: &sealed}, nil
}

// nextRound returns the open questions and the state of the round that answers them; nil if there are
// none.
func (c *Call) nextRound() (*rounds.State, protocol.InputRequests) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		return nil, nil
	}
	next := &rounds.State{
		Method: c.req.Method, Name: c.name, Arguments: c.argumentsDigest(), Principal: c.principalDigest(),
		Expires: time.Now().Add(answerTime).Unix(), Round: c.asked.State.Round + 1, Ref: c.refLocked(), Begun: c.begun.UnixMilli(),
	}
	return next, c.asked.Pending(next)
}

// warnOfRandomKey logs once that only this process can continue calls that ask questions.
func (s *Server) warnOfRandomKey(c *Call) {
	if s.state.Random && c.peer.Header() != nil {
		s.warned.ofKey.Do(func() {
			s.config.logger.Warn("mcpkit: calls that ask questions are sealed with a random key: only this process can continue them, until it restarts; set mcpkit.StateKeys")
		})
	}
}

// Once runs f at most once in a call that asks questions, even if the method runs again for the
// rounds of 2026-07-28: the call keeps the value under key. The value travels through the client,
// sealed, so it has to be small and to survive JSON. If f fails, nothing is kept.
//
// A client may repeat a round, so Once alone does not make a side effect happen exactly once.
func Once[T any](ctx context.Context, key string, f func() (T, error)) (T, error) {
	c := CallFrom(ctx)
	if c == nil || !c.version.Modern() {
		return f()
	}
	own := key
	key = hex.EncodeToString(c.owner()[:4]) + ":" + key // mounted servers have keys of their own
	c.mu.Lock()
	raw, ok := c.questions().KeptValue(key)
	c.mu.Unlock()
	var v T
	c.event(ctx, Event{Kind: EventOnce, Name: own, Kept: ok})
	if ok {
		err := jsonx.Unmarshal(raw, &v)
		return v, err
	}
	v, err := f()
	if err != nil {
		return v, err
	}
	if raw, err = jsonx.Marshal(v); err != nil {
		return v, err
	}
	c.mu.Lock()
	state := &c.asked.State
	if state.Once == nil {
		state.Once = map[string]json.RawMessage{}
	}
	state.Once[key] = raw
	c.mu.Unlock()
	return v, c.keepOnce()
}

// Ask runs functions that each ask a question, one after the other, and joins their errors. In
// version 2026-07-28 all questions reach the client at once, since none of the functions waits. On
// legacy versions each waits for its answer. A function may ask more questions when it has an answer.
func Ask(ctx context.Context, questions ...func(ctx context.Context) error) error {
	errs := make([]error, len(questions))
	for i, ask := range questions {
		errs[i] = ask(ctx)
	}
	return errors.Join(errs...)
}

// send sends a question to the client and waits for the answer, for a limited time.
func (c *Call) send(ctx context.Context, method string, params json.RawMessage, meta protocol.Meta) (*jsonrpc.Response, error) {
	params, err := withMeta(params, meta)
	if err != nil {
		return nil, err
	}
	req, err := jsonrpc.NewRequest(jsonrpc.ID{}, method, params)
	if err != nil {
		return nil, err
	}
	if c.progress.isOver() {
		return nil, errors.New("mcpkit: the call is over; its client can no longer be asked")
	}
	// The time in which a person answers does not count.
	c.limit.Pause()
	defer c.limit.Resume()
	var late error
	if limit := c.server.config.questions; limit > 0 {
		late = Errorf("the question was not answered within %s", limit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, late)
		defer cancel()
	}
	resp, err := c.peer.Call(ctx, req)
	if err != nil && late != nil && context.Cause(ctx) == late {
		return nil, late
	}
	if err == nil && resp == nil {
		err = errors.New("mcpkit: the transport has neither an answer nor an error")
	}
	return resp, err
}

// withMeta returns the object params with meta as its _meta, unless meta is empty.
func withMeta(params json.RawMessage, meta protocol.Meta) (json.RawMessage, error) {
	if len(meta) == 0 {
		return params, nil
	}
	text, err := meta.AppendJSON(nil)
	if err != nil {
		return nil, fmt.Errorf("mcpkit: the _meta of a question: %w", err)
	}
	b := jsonx.AppendWithout(nil, params, "_meta")
	return append(jsonx.AppendMember(b[:len(b)-1], []byte(`"_meta"`), text), '}'), nil
}
