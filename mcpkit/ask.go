package mcpkit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/rounds"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Errors of questions. Callers see their texts.
var (
	// ErrDeclined means that the user refused to answer.
	ErrDeclined = Errorf("the user declined")
	// ErrCancelled means that the user closed the question without answering.
	ErrCancelled = Errorf("the user cancelled")
	// ErrUnsupported means that the client cannot be asked: it did not declare the capability for
	// such a question, or it is a legacy client without a session.
	ErrUnsupported = Errorf("this client cannot answer what the tool asks of its user or model")
	// ErrAsked means that the client gets a question and will send the call again with the answer
	// (2026-07-28). The method should return it, and runs again from its beginning. The call keeps
	// the question, so the client gets it even if the method ignores this error.
	ErrAsked = Errorf("mcpkit: the question goes to the client; return this error")

	errNoQuestions  = Errorf("%w: its protocol version has no questions, which exist from 2025-06-18", ErrUnsupported)
	errNoConnection = Errorf("%w: its connection cannot carry a question", ErrUnsupported)
	errNoCall       = errors.New("mcpkit: a question needs the context that the method was called with")
	errOver         = errors.New("mcpkit: the call is over; ask before its method returns")
)

// An AskOption configures a question.
type AskOption struct{ key string }

// Key names a question for the client; by default its content does. An answer is used only for a
// question with the same text. If several questions are asked at once, their numbers stand before
// their keys: "1-size".
func Key(key string) AskOption { return AskOption{key} }

// Elicit asks the user to fill in a form, which is T: a struct of strings, numbers, bools, enums
// and slices of enums, with the tags of tool inputs. The answer is validated by these tags.
//
// Up to and including version 2025-11-25, Elicit waits for the answer. In version 2026-07-28 it
// returns [ErrAsked] if the answer has not arrived: the method returns the error, the client sends
// the call again with the answer, and the method runs again from its beginning (see [Once]). Other
// errors are [ErrDeclined], [ErrCancelled] and [ErrUnsupported]. Only tools, prompts and resources,
// and middleware in their calls, can ask.
func Elicit[T any](ctx context.Context, message string, opts ...AskOption) (T, error) {
	var answer T
	f, err := formOf(reflect.TypeFor[T]())
	if err != nil {
		return answer, err
	}
	result, err := elicit(ctx, &protocol.ElicitParams{Message: message, RequestedSchema: f.schema}, opts)
	if err != nil {
		return answer, err
	}
	if err := f.input.Decode(ctx, result.Content, reflect.ValueOf(&answer).Elem()); err != nil {
		return answer, Errorf("the user's answer does not fit: %v", err)
	}
	return answer, nil
}

// ElicitForm is [Elicit] for a form that is not a Go type. schema is a flat JSON Schema object
// (client/elicitation), by which the answer is validated.
func ElicitForm(ctx context.Context, message string, schema json.RawMessage, opts ...AskOption) (*protocol.ElicitResult, error) {
	result, err := elicit(ctx, &protocol.ElicitParams{Message: message, RequestedSchema: schema}, opts)
	if err != nil {
		return nil, err
	}
	if err := rounds.CheckContent(schema, result.Content); err != nil {
		return nil, Errorf("%w", err)
	}
	return result, nil
}

// ElicitURL asks the user to open a URL, for what must not pass through the client: credentials,
// payments, consent. A nil error means only that the user agreed to open it.
func ElicitURL(ctx context.Context, message, url string, opts ...AskOption) error {
	_, err := elicit(ctx, &protocol.ElicitParams{Mode: protocol.ElicitURL, Message: message, URL: url}, opts)
	return err
}

func elicit(ctx context.Context, p *protocol.ElicitParams, opts []AskOption) (*protocol.ElicitResult, error) {
	result, err := askFor[protocol.ElicitResult](ctx, protocol.MethodElicitationCreate, p, opts)
	switch {
	case err != nil:
		return nil, err
	case result.Action == protocol.ElicitDecline:
		return nil, ErrDeclined
	case result.Action == protocol.ElicitCancel:
		return nil, ErrCancelled
	}
	return result, nil
}

// fitElicitation adapts p to the version of the call.
func (c *Call) fitElicitation(p *protocol.ElicitParams) error {
	switch {
	case p.Mode == protocol.ElicitURL && !c.version.Modern():
		p.ElicitationID = rand.Text()
	case p.Mode == "" && c.version >= protocol.V20251125:
		p.Mode = protocol.ElicitForm
	case c.version == protocol.V20250618 && p.RequestedSchema != nil:
		older, err := rounds.Older(p.RequestedSchema)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		p.RequestedSchema = older
	}
	return nil
}

// Confirm asks the user yes or no. A user who declines says no, without an error; a user who closes
// the question is [ErrCancelled].
//
// The form has one field, confirm. A client may repeat the round: see [Once].
func Confirm(ctx context.Context, message string, opts ...AskOption) (bool, error) {
	answer, err := Elicit[struct {
		Confirm bool `json:"confirm" validate:"required"`
	}](ctx, message, opts...)
	if err == ErrDeclined {
		return false, nil
	}
	return answer.Confirm, err
}

// Choose asks the user for one of several options.
func Choose(ctx context.Context, message string, options []string, opts ...AskOption) (string, error) {
	enum, err := jsonx.Marshal(options)
	if err != nil {
		return "", err
	}
	schema := `{"type":"object","properties":{"choice":{"type":"string","enum":` + string(enum) + `}},"required":["choice"]}`
	result, err := ElicitForm(ctx, message, json.RawMessage(schema), opts...)
	if err != nil {
		return "", err
	}
	return jsonx.String(jsonx.Member(result.Content, "choice")), nil
}

// Sample asks the client's model. It waits and fails like [Elicit].
func Sample(ctx context.Context, p *protocol.CreateMessageParams, opts ...AskOption) (*protocol.CreateMessageResult, error) {
	return askFor[protocol.CreateMessageResult](ctx, protocol.MethodSamplingCreateMessage, p, opts)
}

// Roots asks which directories the client works in. It waits and fails like [Elicit].
func Roots(ctx context.Context, opts ...AskOption) ([]protocol.Root, error) {
	result, err := askFor[protocol.ListRootsResult](ctx, protocol.MethodRootsList, &protocol.EmptyParams{}, opts)
	if err != nil {
		return nil, err
	}
	return result.Roots, nil
}

// A typedForm is a Go type as a form.
type typedForm struct {
	input  *reflectx.Input
	schema json.RawMessage
}

var forms sync.Map // reflect.Type -> func() (typedForm, error)

func formOf(t reflect.Type) (typedForm, error) {
	once, _ := forms.LoadOrStore(t, sync.OnceValues(func() (f typedForm, err error) {
		o := reflectx.InputOptions{Descriptions: descriptions, Form: true}
		if f.input, err = reflectx.NewInput(t.String(), t, o); err == nil {
			f.schema, err = rounds.Flat(t, f.input, descriptions)
		}
		return f, err
	}))
	return once.(func() (typedForm, error))()
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

// askFor asks the client of the call that ctx belongs to, and decodes the response.
func askFor[T any](ctx context.Context, method string, params any, opts []AskOption) (*T, error) {
	c := CallFrom(ctx)
	if c == nil {
		return nil, errNoCall
	}
	if p, ok := params.(*protocol.ElicitParams); ok {
		if err := c.fitElicitation(p); err != nil {
			return nil, err
		}
	}
	raw, err := jsonx.Marshal(params)
	if err == nil {
		raw, err = c.Ask(ctx, method, raw, opts...)
	}
	if err != nil {
		return nil, err
	}
	result := new(T)
	if err := rounds.Decode(method, raw, result); err != nil {
		return nil, invalidParams("%v", err)
	}
	return result, nil
}

// Ask sends a question with raw params: method is elicitation/create, sampling/createMessage or
// roots/list. It returns the client's result, for an elicitation whatever its action is. It waits
// and fails like [Elicit].
func (c *Call) Ask(ctx context.Context, method string, params json.RawMessage, opts ...AskOption) (json.RawMessage, error) {
	if err := c.mayAsk(method, params); err != nil {
		return nil, err
	}
	c.consulted.Store(true)
	if !c.version.Modern() {
		return c.request(ctx, method, params)
	}
	var key string
	for _, o := range opts {
		key = cmp.Or(o.key, key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer, err := c.asked.Ask(c.owner(ctx), method, params, key)
	switch {
	case err != nil:
		return nil, Errorf("%w", err)
	case answer == nil:
		return nil, ErrAsked
	}
	return answer, nil
}

// mayAsk returns an error if the client cannot be asked the question.
func (c *Call) mayAsk(method string, params json.RawMessage) error {
	what, needed, supported := rounds.Needs(method, params, c.ClientCapabilities())
	switch modern := c.version.Modern(); {
	case c.progress.over.Load():
		return errOver
	case supported && modern && !c.row.asks, !modern && c.session == nil:
		return errNoConnection
	case supported:
		return nil
	case modern:
		missing := protocol.MissingClientCapability(needed, "%s needs a capability that the client did not declare", what)
		return fmt.Errorf("%w: %w", ErrUnsupported, missing)
	case needed.Elicitation != nil && c.version < protocol.V20250618:
		return errNoQuestions
	}
	return fmt.Errorf("%w: %s", ErrUnsupported, what)
}

// request sends a question to a legacy client, of which tracers are told, and returns its result.
func (c *Call) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	message := jsonx.String(jsonx.Member(params, "message"))
	e := TraceEvent{Kind: TraceQuestion, Name: method, Text: message, Meta: protocol.Meta{}}
	for name, value := range jsonx.Members(jsonx.Member(params, "_meta")) {
		e.Meta[jsonx.String(name)] = value
	}
	ctx, end := c.event(ctx, e)
	resp, err := c.send(ctx, method, params, e.Meta)
	if err == nil && resp.Error != nil {
		err = resp.Error
	}
	end(err)
	rejected, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil:
		return resp.Result, nil
	case errors.Is(err, transport.ErrNoServerRequests):
		return nil, errNoConnection
	case ok && rejected.Code == protocol.CodeUserRejected:
		return nil, ErrDeclined
	case ok:
		return nil, Errorf("the client answered %s with an error: %s", method, rejected.Message)
	}
	return nil, err
}

// send sends a question and waits for the answer, for a limited time, which does not count in the
// time limit of the call.
func (c *Call) send(ctx context.Context, method string, params json.RawMessage, meta protocol.Meta) (*jsonrpc.Response, error) {
	if len(meta) > 0 {
		text, err := meta.AppendJSON(nil)
		if err != nil {
			return nil, fmt.Errorf("mcpkit: the _meta of a question: %w", err)
		}
		params = jsonx.With(params, "_meta", text)
	}
	req, err := jsonrpc.NewRequest(jsonrpc.ID{}, method, params)
	if err != nil {
		return nil, err
	}
	c.limit.pause()
	defer c.limit.resume()
	limit := c.server.config.questions
	late := Errorf("the question was not answered within %s", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	resp, err := c.peer.Call(ctx, req)
	if err != nil && context.Cause(ctx) == late {
		return nil, late
	}
	return resp, err
}

// answerTime is how long a client of 2026-07-28 may take to send a call again with its answers.
const answerTime = time.Hour

// MaxRounds is how many times a client of 2026-07-28 may send a call again with answers.
const MaxRounds = 32

// A dialog is what a call keeps of its questions, and from round to round.
type dialog struct {
	begun     time.Time   // when the first round began
	consulted atomic.Bool // the client was asked a question

	mu    sync.Mutex
	asked rounds.Questions // guarded by mu; see Ask
	// unused are the values of Once of the runs before that this run did not ask for; guarded by mu
	unused map[string]json.RawMessage
}

// Asked reports whether the method has asked the client a question, for instance with [Elicit]:
// then its result is for this call only.
func (d *dialog) Asked() bool { return d.consulted.Load() }

// Round returns how many times the client has sent the call again with answers. It is always 0 on
// legacy versions, where the method waits for answers.
func (d *dialog) Round() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked.State.Round
}

// Ref returns a short random name of this call for logs. A caller sees it in internal errors. It is
// the same in all rounds of a call that asks questions.
func (d *dialog) Ref() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked.State.Ref == "" {
		d.asked.State.Ref = rand.Text()[:10]
	}
	return d.asked.State.Ref
}

// Begun returns when the first round of the call began.
func (d *dialog) Begun() time.Time { return d.begun }

// openState reads requestState and inputResponses of a retry (basic/patterns, multi round-trip
// requests). They come from the client, so the state must fit this call.
func (c *Call) openState() error {
	responses := c.req.Param("inputResponses")
	if responses != nil && jsonx.Kind(responses) != '{' {
		return invalidParams("inputResponses is not an object")
	}
	raw := c.req.Param("requestState")
	if raw == nil {
		if responses != nil {
			c.asked.Offered = responses
		}
		return nil
	}
	if jsonx.Kind(raw) != '"' {
		return invalidParams("requestState is not a string")
	}
	state, err := c.server.state.Open(c.digest(), jsonx.String(raw))
	if err != nil {
		return invalidParams("%v", err)
	}
	if responses != nil {
		_, err = state.Answer(responses)
	}
	c.goOn(state)
	return err
}

// goOn makes the call a round that follows those of the state.
func (c *Call) goOn(state *rounds.State) {
	c.asked.State, c.begun = *state.Learned(), time.UnixMilli(state.Begun)
}

// digest returns a digest of what is the same in all rounds of the call: its caller, target and
// arguments.
func (c *Call) digest() []byte {
	args := orEmpty(c.arguments) // the client's, which it repeats, not those of SetArguments
	// Clients repeat the arguments, perhaps with other white space.
	if compact, err := jsonx.Compact(bytes.Clone(args)); err == nil {
		args = compact
	}
	return rounds.Digest([]byte(c.row.method), []byte(c.name), args, []byte(c.principal.Key()))
}

// finish replaces the result of a method by input_required if it asked questions that have no
// answer yet, even if the method has ignored the error.
func (c *Call) finish(result Result, err error) (Result, error) {
	if !c.consulted.Load() {
		return result, err
	}
	next := c.nextRound()
	asks := &protocol.InputRequiredResult{InputRequests: next.Questions()}
	switch {
	case asks.InputRequests == nil:
		return result, err
	case next.Round > MaxRounds:
		return nil, Errorf("the call asked questions in %d rounds, which is the most it may; "+
			"a question whose text changes from round to round finds no answer: leave out what changes, or keep it with mcpkit.Once", MaxRounds)
	case c.run != nil:
		return asks, nil // the journal has the rest
	}
	for i := range next.Asked {
		next.Asked[i].Request = nil // the client has them
	}
	next.Expires = time.Now().Add(answerTime).Unix()
	sealed, err := c.server.state.Seal(c.digest(), next)
	if err != nil {
		return nil, err
	}
	if len(c.server.config.stateKeys) == 0 && c.peer.Header() != nil {
		c.server.warned.ofKey.Do(func() {
			c.server.config.logger.Warn("mcpkit: calls that ask questions are sealed with a random key: only this process can continue them, until it restarts; set mcpkit.StateKeys")
		})
	}
	asks.RequestState = &sealed
	return asks, nil
}

// nextRound returns the state of the round that follows.
func (c *Call) nextRound() *rounds.State {
	c.Ref() // the state has it
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked.Next()
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
	key = hex.EncodeToString(c.owner(ctx)[:4]) + ":" + key // each server has keys of its own
	c.mu.Lock()
	raw, ok := c.asked.State.Once[key]
	delete(c.unused, key)
	c.mu.Unlock()
	var v T
	c.event(ctx, TraceEvent{Kind: TraceOnce, Name: own, Kept: ok})
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
	state := &c.asked.State
	if state.Once == nil {
		state.Once = map[string]json.RawMessage{}
	}
	state.Once[key] = raw
	if c.run != nil && c.run.Keep != nil {
		return v, c.run.Keep(state.Learned())
	}
	return v, nil
}

// OnceKey returns the idempotency key of the value that [Once] keeps under key in this call. Pass
// it to the service that makes the value: if the process ends before the value is kept, it is made
// again, and the key prevents a second effect. It is the same in all rounds and runs of a call.
func OnceKey(ctx context.Context, key string) string {
	c := CallFrom(ctx)
	if c == nil {
		return ""
	}
	begun := strconv.AppendInt(nil, c.begun.UnixMilli(), 10)
	return hex.EncodeToString(rounds.Digest(c.owner(ctx), []byte(c.principal.Key()), []byte(c.Ref()), begun, []byte(key)))
}
