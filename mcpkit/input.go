package mcpkit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// askError is an outcome of a question that is no answer. Its text may be shown to the caller.
type askError struct{ text string }

func (e *askError) Error() string       { return e.text }
func (e *askError) UserMessage() string { return e.text }

// What becomes of questions that get no answer.
var (
	// ErrDeclined says that the user read the question and does not want to answer.
	ErrDeclined error = &askError{"the user declined"}
	// ErrCancelled says that the user closed the question without answering.
	ErrCancelled error = &askError{"the user cancelled"}
	// ErrUnsupported says that this client cannot be asked such a question: it declared no capability for it.
	ErrUnsupported error = &askError{"this client cannot be asked that"}
	// ErrNoWayBack says that this connection cannot carry a question to the client: a legacy client on a stateless
	// server. Serve it with sessions, or let the client use revision 2026-07-28.
	ErrNoWayBack error = &askError{"this connection cannot carry a question to the client"}
)

// ErrAsked says that a question was just put to a client of 2026-07-28, which will repeat the call with the answer: the method
// returns, and is run again from its beginning then. The questions are kept with the call, so it does not matter what the method
// makes of this error.
var ErrAsked error = &askError{"mcpkit: the question goes to the client; return this error"}

// asked is what a call knows of its questions.
type asked struct {
	state   *roundState            // of the rounds before; empty in the first
	offered json.RawMessage        // responses that came without a state: answers to questions that the client foresaw
	pending protocol.InputRequests // asked in this round
	digests map[string][]byte      // of the pending questions, by key
	counts  map[string]int         // how often a question without a key of its own was asked
}

// An AskOption says how a question is put.
type AskOption func(*askOptions)

type askOptions struct{ key string }

// Key names a question. By default its content does. A question that may change its words between two rounds of the
// same call needs a key to be known again; the answer is still used only for the same words.
func Key(key string) AskOption { return func(o *askOptions) { o.key = key } }

// takeState reads requestState and inputResponses of a retry (basic/patterns, multi round-trip requests).
// They come from the client: the state is opened and held to this very call.
func (c *Call) takeState() *jsonrpc.Error {
	responses := c.req.Param("inputResponses")
	if responses != nil && jsonx.Kind(responses) != '{' {
		return invalidParams("inputResponses is no object")
	}
	raw := c.req.Param("requestState")
	if raw == nil {
		if responses != nil {
			c.asked = &asked{state: &roundState{}, offered: responses}
		}
		return nil
	}
	if jsonx.Kind(raw) != '"' {
		return invalidParams("requestState is no string")
	}
	state, err := c.server.state.open(jsonx.String(raw))
	if err != nil || !state.fits(c) {
		return invalidParams("%v, or not for this call", errBadState)
	}
	for key, digest := range state.Waiting {
		value := jsonx.Member(responses, key)
		if value == nil {
			continue // asked again if it is still wanted
		}
		if jsonx.Kind(value) != '{' {
			return invalidParams("inputResponses: the response %q is no object", key)
		}
		state.answer(key, digest, value)
	}
	state.Waiting = nil
	c.asked = &asked{state: state}
	return nil
}

// answer keeps the answer to a question.
func (st *roundState) answer(key string, question []byte, value json.RawMessage) {
	if st.Answers == nil {
		st.Answers = map[string]answer{}
	}
	st.Answers[key] = answer{question, value}
}

// fits reports whether the state was made for this call: who, what, with which arguments, not too long ago.
func (st *roundState) fits(c *Call) bool {
	return st.Method == c.row.method && st.Name == c.name && st.Round <= maxRounds &&
		time.Now().Unix() <= st.Expires &&
		bytes.Equal(st.Arguments, c.argumentsDigest()) && bytes.Equal(st.Principal, c.principalDigest())
}

func (c *Call) argumentsDigest() []byte {
	args := c.req.Param("arguments") // the client's: it repeats those, not what middleware makes of them
	if args == nil {
		args = []byte("{}")
	}
	// Retries repeat the arguments, but a client may write them anew: white space does not count.
	compact, err := jsonx.Compact(bytes.Clone(args))
	if err != nil {
		compact = args
	}
	return digest(compact)
}

func (c *Call) principalDigest() []byte { return digest([]byte(c.principal.Key())) }

func digest(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(strconv.AppendInt(nil, int64(len(p)), 10))
		h.Write([]byte{':'})
		h.Write(p)
	}
	return h.Sum(nil)[:16]
}

// ask puts a question to the client and returns the result as JSON. On legacy revisions it waits for it; on modern ones
// it returns what the client sent with this round, or ErrAsked.
func (c *Call) ask(ctx context.Context, method string, params any, opts []AskOption) (json.RawMessage, error) {
	raw, err := jsonx.Marshal(params)
	if err != nil {
		return nil, err
	}
	c.consulted.Store(true)
	if !c.version.Modern() {
		return c.askLegacy(ctx, method, raw)
	}
	if !c.row.asks {
		return nil, ErrNoWayBack
	}
	return c.askModern(method, raw, opts)
}

func (c *Call) askLegacy(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	resp, err := c.question(ctx, method, params)
	switch {
	case errors.Is(err, transport.ErrNoServerRequests):
		return nil, ErrNoWayBack
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
	question := digest([]byte(method), params)
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.questions()
	if o.key == "" {
		// The content names the question, so that the order in which goroutines ask does not matter.
		name := hex.EncodeToString(question[:4])
		a.counts[name]++
		o.key = shortName(method) + "-" + name
		if n := a.counts[name]; n > 1 {
			o.key += "-" + strconv.Itoa(n)
		}
	}
	if known, ok := a.state.Answers[o.key]; ok && bytes.Equal(known.Question, question) {
		return known.Value, nil
	}
	if value := jsonx.Member(a.offered, o.key); value != nil {
		if jsonx.Kind(value) != '{' {
			return nil, invalidParams("inputResponses: the response %q is no object", o.key)
		}
		a.state.answer(o.key, question, value)
		return value, nil
	}
	if _, ok := a.pending[o.key]; ok && !bytes.Equal(a.digests[o.key], question) {
		return nil, Errorf("two questions of this call have the key %q", o.key)
	}
	a.pending[o.key] = protocol.InputRequest{Method: method, Params: params}
	a.digests[o.key] = question
	return nil, ErrAsked
}

func shortName(method string) string {
	switch method {
	case protocol.MethodElicitationCreate:
		return "elicit"
	case protocol.MethodSamplingCreateMessage:
		return "sample"
	}
	return "roots"
}

// questions returns c.asked, made on first use. c.mu is held.
func (c *Call) questions() *asked {
	if c.asked == nil {
		c.asked = &asked{state: &roundState{}}
	}
	if c.asked.pending == nil {
		c.asked.pending = protocol.InputRequests{}
		c.asked.digests = map[string][]byte{}
		c.asked.counts = map[string]int{}
	}
	return c.asked
}

// settle replaces what a method returned by input_required when questions of it are open, whatever it made of the error.
func (c *Call) settle(result Result, err error) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil || len(c.asked.pending) == 0 {
		return result, err
	}
	a := c.asked
	if a.state.Round >= maxRounds {
		return nil, Errorf("the call asked questions in %d rounds, which is the most it may", maxRounds)
	}
	sealed, err := c.to.state.seal(&roundState{
		Method: c.req.Method, Name: c.sent, Arguments: c.argumentsDigest(), Principal: c.principalDigest(),
		Expires: time.Now().Add(stateLifetime).Unix(), Round: a.state.Round + 1,
		Answers: a.state.Answers, Once: a.state.Once, Waiting: a.digests,
	})
	if err != nil {
		return nil, err
	}
	c.to.warnOfRandomKey(c)
	return &InputRequiredResult{Requests: a.pending, state: sealed}, nil
}

// warnOfRandomKey says once that only this process can go on with what it began.
func (s *Server) warnOfRandomKey(c *Call) {
	if s.state.random && c.peer.Header() != nil && s.state.warned.CompareAndSwap(false, true) {
		s.config.logger.Warn("mcpkit: calls that ask questions are sealed with a random key: no other process, and not this one after a restart, can go on with them; give mcpkit.StateKeys")
	}
}

// Once runs f at most once in a call that asks questions, however often the method is run again for the rounds of
// 2026-07-28: what it returned is kept with the call, under key, until the call is over. The value travels, sealed,
// through the client, so it has to be small and to survive JSON. An error is not kept.
//
// What has to happen exactly once even if the client repeats a round of its own accord needs more than that.
func Once[T any](ctx context.Context, key string, f func() (T, error)) (T, error) {
	c := CallFrom(ctx)
	if c == nil || !c.version.Modern() {
		return f()
	}
	c.mu.Lock()
	raw, ok := c.questions().state.Once[key]
	c.mu.Unlock()
	var v T
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
	defer c.mu.Unlock()
	state := c.asked.state
	if state.Once == nil {
		state.Once = map[string]json.RawMessage{}
	}
	state.Once[key] = raw
	return v, nil
}

// Ask runs several functions that each ask a question, so that all the questions reach the client at once, and joins
// their errors.
func Ask(ctx context.Context, questions ...func(ctx context.Context) error) error {
	errs := make([]error, len(questions))
	done := make(chan struct{})
	for i, q := range questions {
		// Ends when its question is answered; Ask waits for all.
		go func() {
			defer func() { done <- struct{}{} }()
			defer recoverAs(&errs[i])
			errs[i] = q(ctx)
		}()
	}
	for range questions {
		<-done
	}
	return errors.Join(errs...)
}
