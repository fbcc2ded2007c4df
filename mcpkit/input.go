package mcpkit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
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

// errOver is what questions get whose call is over.
var errOver = errors.New("mcpkit: the call is over; ask before its method returns")

// asked is what a call knows of its questions. Goroutines may use it that its method has left behind, so nothing of it is
// used without the call's lock.
type asked struct {
	state   *roundState     // of the rounds before; empty in the first
	offered json.RawMessage // responses that came without a state: answers to questions that the client foresaw
	pending []pending       // asked in this round, in this order
	used    map[string]bool // keys of the answers that questions of this round got
	counts  map[string]int  // how often a question without a key of its own was asked
}

// A pending question goes to the client when the method returns.
type pending struct {
	waiting
	request protocol.InputRequest
}

// An AskOption says how a question is put.
type AskOption func(*askOptions)

type askOptions struct{ key string }

// Key names a question for the client. By default its content does. The answer is used only for a question of the same words,
// whatever its key. Where several questions are asked at once, their numbers stand before their keys: "1-size".
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
	for name, question := range state.Waiting {
		value := jsonx.Member(responses, name)
		if value == nil {
			continue // asked again if it is still wanted
		}
		if jsonx.Kind(value) != '{' {
			return invalidParams("inputResponses: the response %q is no object", name)
		}
		state.answer(question, value)
	}
	state.Waiting = nil
	c.asked = &asked{state: state}
	c.ref, c.begun = state.Ref, time.UnixMilli(state.Begun)
	return nil
}

// answer keeps the answer to a question.
func (st *roundState) answer(q waiting, value json.RawMessage) {
	if st.Answers == nil {
		st.Answers = map[string]answer{}
	}
	st.Answers[q.Key] = answer{q.Question, q.Text, st.Round, value}
}

// fits reports whether the state was made for this call: who, what, with which arguments, not too long ago.
func (st *roundState) fits(c *Call) bool {
	return st.Method == c.row.method && st.Name == c.name && st.Round <= MaxRounds &&
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
	c.mu.Lock()
	over := c.finished
	c.mu.Unlock()
	if over {
		return nil, errOver
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
	q := waiting{Key: o.key, Question: digest(c.server.state.owner, []byte(method), params), Text: questionText(params)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return nil, errOver
	}
	a := c.questions()
	if q.Key == "" {
		// The content names the question, so that the order in which goroutines ask does not matter.
		name := hex.EncodeToString(digest([]byte(method), params)[:4])
		a.counts[name]++
		q.Key = shortName(method) + "-" + name
		if n := a.counts[name]; n > 1 {
			q.Key += "-" + strconv.Itoa(n)
		}
	}
	if known, ok := a.state.Answers[q.Key]; ok && bytes.Equal(known.Question, q.Question) {
		a.used[q.Key] = true
		return known.Value, nil
	}
	if value := jsonx.Member(a.offered, q.Key); value != nil {
		if jsonx.Kind(value) != '{' {
			return nil, invalidParams("inputResponses: the response %q is no object", q.Key)
		}
		a.state.answer(q, value)
		a.used[q.Key] = true
		return value, nil
	}
	for _, p := range a.pending {
		switch {
		case p.Key != q.Key:
		case !bytes.Equal(p.Question, q.Question):
			return nil, Errorf("two questions of this call have the key %q", q.Key)
		default:
			return nil, ErrAsked
		}
	}
	a.pending = append(a.pending, pending{q, protocol.InputRequest{Method: method, Params: params}})
	return nil, ErrAsked
}

// maxQuestionText is how many bytes of a question's text are kept for the log.
const maxQuestionText = 100

// questionText is what a question says, shortened; "" for those without words.
func questionText(params json.RawMessage) string {
	text := jsonx.String(jsonx.Member(params, "message"))
	if text == "" {
		text = string(jsonx.Member(params, "messages")) // of sampling
	}
	if len(text) > maxQuestionText {
		text = strings.ToValidUTF8(text[:maxQuestionText], "") + "..."
	}
	return text
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
	if c.asked.counts == nil {
		c.asked.used = map[string]bool{}
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
	if a.state.Round >= MaxRounds {
		c.logChangingQuestion()
		return nil, Errorf("the call asked questions in %d rounds, which is the most it may", MaxRounds)
	}
	requests, waiting := a.number()
	sealed, err := c.to.state.seal(&roundState{
		Method: c.req.Method, Name: c.sent, Arguments: c.argumentsDigest(), Principal: c.principalDigest(),
		Expires: time.Now().Add(AnswerTime).Unix(), Round: a.state.Round + 1, Ref: c.refLocked(), Begun: c.begun.UnixMilli(),
		Answers: a.state.Answers, Once: a.state.Once, Waiting: waiting,
	})
	if err != nil {
		return nil, err
	}
	c.to.warnOfRandomKey(c)
	return &InputRequiredResult{Requests: requests, state: sealed}, nil
}

// number gives the pending questions the keys that the client knows them by: their own, or, where there are several, with
// their number in front. Members of JSON objects have no order, and clients that keep them in maps sort by key.
func (a *asked) number() (protocol.InputRequests, map[string]waiting) {
	requests, questions := protocol.InputRequests{}, map[string]waiting{}
	width := len(strconv.Itoa(len(a.pending)))
	for i, p := range a.pending {
		name := p.Key
		if len(a.pending) > 1 {
			name = fmt.Sprintf("%0*d-%s", width, i+1, p.Key)
		}
		requests[name], questions[name] = p.request, p.waiting
	}
	return requests, questions
}

// logChangingQuestion tells the operator of a question that was answered in the round before, and asked again in other
// words. c.mu is held.
func (c *Call) logChangingQuestion() {
	a := c.asked
	for _, p := range a.pending {
		before, ok := a.state.Answers[p.Key]
		if !ok {
			before, ok = a.lastUnused(p.Key)
		}
		if ok {
			c.to.config.logger.WarnContext(c.ctx, "mcpkit: a question changes its words from round to round, so that no answer fits it; keep what changes out of it, or fix it with mcpkit.Once",
				"method", c.req.Method, "name", c.sent, "before", before.Text, "now", p.Text)
			return
		}
	}
}

// lastUnused returns an answer that no question of this round got, of those to questions of the same kind as key the one that
// was given last.
func (a *asked) lastUnused(key string) (last answer, ok bool) {
	kind, _, _ := strings.Cut(key, "-")
	for other, answer := range a.state.Answers {
		if !a.used[other] && strings.HasPrefix(other, kind+"-") && (!ok || answer.Round > last.Round) {
			last, ok = answer, true
		}
	}
	return last, ok
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
	key = hex.EncodeToString(c.server.state.owner[:4]) + ":" + key // each server has keys of its own
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

// Ask runs several functions that each ask a question, so that all the questions reach the client at once, in the order of
// the functions, and joins their errors. A function may ask further questions when it has the answer to its first.
//
// On 2026-07-28 the functions run one after the other, since none of them waits. On legacy revisions each runs on a goroutine
// of its own, begun when the function before it has sent its first question or returned.
func Ask(ctx context.Context, questions ...func(ctx context.Context) error) error {
	errs := make([]error, len(questions))
	run := func(ctx context.Context, i int) {
		defer recoverAs(&errs[i])
		errs[i] = questions[i](ctx)
	}
	c := CallFrom(ctx)
	if c == nil || c.version.Modern() {
		for i := range questions {
			run(ctx, i)
		}
		return errors.Join(errs...)
	}
	var all sync.WaitGroup
	for i := range questions {
		sent := make(chan struct{})
		next := sync.OnceFunc(func() { close(sent) })
		// Ends when its questions are answered; Ask waits for all.
		all.Go(func() {
			defer next()
			run(transport.OnSent(ctx, next), i)
		})
		<-sent
	}
	all.Wait()
	return errors.Join(errs...)
}
