package mcpkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// An outing is a service whose calls the runner runs.
type outing struct {
	_ struct {
		Secret mcpkit.Tool `scopes:"outing:secret"`
	}
	made   int
	keys   []string
	seen   []*mcpkit.Call
	failed error
}

type outingForm struct {
	Place string `json:"place"`
}

func (o *outing) Plan(ctx context.Context, call *mcpkit.Call) (string, error) {
	o.seen = append(o.seen, call)
	ticket, err := mcpkit.Once(ctx, "ticket", func() (int, error) {
		o.keys = append(o.keys, mcpkit.OnceKey(ctx, "ticket"))
		o.made++
		return o.made, o.failed
	})
	if err != nil {
		return "", err
	}
	form, err := mcpkit.Elicit[outingForm](ctx, "Where to?", mcpkit.Key("where"))
	if err != nil {
		return "", err
	}
	again, err := mcpkit.Elicit[outingForm](ctx, "And then, after "+form.Place+"?", mcpkit.Key("then"))
	if err != nil {
		return "", err
	}
	return form.Place + " and " + again.Place + " with ticket " + string(rune('0'+ticket)), nil
}

func (o *outing) Nag(ctx context.Context) (bool, error) {
	o.made++
	return mcpkit.Confirm(ctx, "More, after "+strings.Repeat("!", o.made)+"?", mcpkit.Key("more"))
}

func (o *outing) Secret() string { return "seen" }
func (o *outing) Panic() string  { panic("oh") }

// detached takes the run of each call of a tool that a client makes.
type detached struct {
	runner mcpkit.Runner
	runs   []*mcpkit.Run
}

func (d *detached) extension() mcpkit.Option {
	return mcpkit.Extend(mcpkit.Extension{ID: "com.example/later", Runner: &d.runner, Intercept: func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if call.Run() != nil {
				return next(ctx, call)
			}
			run, err := d.runner.Detach(call, "1")
			d.runs = append(d.runs, run)
			if err != nil {
				return nil, err
			}
			return map[string]string{"resultType": "later"}, nil
		}
	}})
}

// stored returns the run after it was encoded and decoded.
func stored(t *testing.T, run *mcpkit.Run) *mcpkit.Run {
	text, err := json.Marshal(run)
	require.NoError(t, err)
	var out mcpkit.Run
	require.NoError(t, json.Unmarshal(text, &out))
	return &out
}

func newOuting(t *testing.T, opts ...mcpkit.Option) (*outing, *detached, *mcpkit.Server) {
	o, d := &outing{}, &detached{}
	return o, d, newServer(t, o, append(opts, d.extension(), mcpkit.Authenticated())...)
}

func TestRunnersRunAToolAgainWithItsJournal(t *testing.T) {
	o, d, srv := newOuting(t)
	var walked int
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			walked++
			return next(ctx, call)
		}
	})
	require.Equal(t, `"later"`, member(t, modern(t, srv).result("tools/call", `{"name":"plan","arguments":{}}`), "resultType"))
	run := stored(t, d.runs[0])
	var kept []string
	run.Keep = func(j *mcpkit.Journal) error {
		text, err := json.Marshal(j)
		kept = append(kept, string(text))
		return err
	}
	out := d.runner.Run(t.Context(), run)
	require.True(t, out.Asked, "%+v", out)
	require.Len(t, kept, 1)
	require.Contains(t, kept[0], `ticket`)
	require.Len(t, out.Journal.Questions(), 1)
	require.Contains(t, out.Journal.Questions(), "where")

	run = stored(t, run)
	run.Journal = out.Journal
	run = stored(t, run)
	answered, err := run.Journal.Answer(json.RawMessage(`{"other":{},"where":{"action":"accept","content":{"place":"Oslo"}}}`))
	require.NoError(t, err)
	require.Equal(t, 1, answered)
	require.Empty(t, run.Journal.Questions())
	out = d.runner.Run(t.Context(), run)
	require.True(t, out.Asked, "%+v", out)
	require.Contains(t, out.Journal.Questions(), "then")

	run.Journal = out.Journal
	answered, err = run.Journal.Answer(json.RawMessage(`{"where":{"action":"decline"},"then":{"action":"accept","content":{"place":"Bergen"}}}`))
	require.NoError(t, err)
	require.Equal(t, 1, answered)
	out = d.runner.Run(t.Context(), run)
	require.False(t, out.Asked || out.IsError, "%+v", out)
	require.Contains(t, string(out.Result), "Oslo and Bergen with ticket 1")
	require.Equal(t, 4, walked, "the request and each run walk the middleware")
	require.Equal(t, 1, o.made)
}

// A question whose text changes from run to run has the same key each time.
func TestKeysOfQuestionsAreUsedOnce(t *testing.T) {
	o, d, srv := newOuting(t)
	modern(t, srv).result("tools/call", `{"name":"nag"}`)
	run := stored(t, d.runs[0])
	for i, key := range []string{"more", "more~2", "more~3"} {
		out := d.runner.Run(t.Context(), run)
		require.True(t, out.Asked, "%+v", out)
		require.Contains(t, out.Journal.Questions(), key)
		run = stored(t, run)
		run.Journal = out.Journal
		answered, err := run.Journal.Answer(json.RawMessage(`{"` + key + `":{"action":"accept","content":{"confirm":true}}}`))
		require.NoError(t, err)
		require.Equal(t, 1, answered)
		require.Equal(t, i+1, o.made)
	}
	_, err := run.Journal.Answer(json.RawMessage(`[]`))
	require.EqualError(t, err, `inputResponses is not an object (code -32602)`)
}

func TestAnswersThatDoNotFitTheirQuestionAreNotKept(t *testing.T) {
	d := &detached{}
	srv := newServer(t, nil, d.extension())
	form := json.RawMessage(`{"type":"object","properties":{"size":{"type":"integer","maximum":3},"mail":{"type":"string","format":"email"}},"required":["size"]}`)
	require.NoError(t, srv.Add(mcpkit.NewTool("ask", func(ctx context.Context) error {
		return mcpkit.Ask(ctx, func(ctx context.Context) error {
			_, err := mcpkit.ElicitForm(ctx, "Size?", form, mcpkit.Key("form"))
			return err
		}, func(ctx context.Context) error {
			_, err := mcpkit.ElicitForm(ctx, "Any?", json.RawMessage(`{"type":7}`), mcpkit.Key("any"))
			return err
		}, func(ctx context.Context) error {
			return mcpkit.ElicitURL(ctx, "Pay", "https://example.com/pay", mcpkit.Key("url"))
		}, func(ctx context.Context) error {
			_, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{MaxTokens: 1}, mcpkit.Key("model"))
			return err
		}, func(ctx context.Context) error {
			_, err := mcpkit.Roots(ctx, mcpkit.Key("roots"))
			return err
		})
	})))
	p := modern(t, srv)
	p.raw(t.Context(), strings.Replace(p.request("tools/call", `{"name":"ask"}`), `"elicitation":{}`, `"elicitation":{"form":{},"url":{}}`, 1))
	out := d.runner.Run(t.Context(), d.runs[0])
	require.Len(t, out.Journal.Questions(), 5)
	before := stored(t, &mcpkit.Run{Journal: out.Journal}).Journal
	for _, test := range []struct{ key, answer, err string }{
		{"1-form", `7`, `the response "1-form" is not an object`},
		{"1-form", `{"action":"yes"}`, `"1-form": the response to elicitation/create has the unknown action "yes"`},
		{"1-form", `{"action":"accept","content":{"size":9}}`, "\"1-form\": the content of the response does not fit the form: 1 problem with the arguments:\n/size: got 9, want an integer of at most 3"},
		{"1-form", `{"action":"accept","content":{"size":null}}`, "\"1-form\": the content of the response does not fit the form: "},
		{"1-form", `{"action":"accept","content":{"size":1,"mail":"nobody"}}`, "\"1-form\": the content of the response does not fit the form: 1 problem with the arguments:\n/mail: got \"nobody\""},
		{"1-form", `{"action":"accept","content":{"size":1,"size":2}}`, "\"1-form\": the response to elicitation/create does not fit: "},
		{"3-url", `{"action":1}`, "\"3-url\": the response to elicitation/create does not fit: "},
		{"4-model", `{}`, "\"4-model\": the response to sampling/createMessage has no content"},
		{"4-model", `{"role":"assistant","model":"m","content":7}`, "\"4-model\": the response to sampling/createMessage does not fit: "},
		{"5-roots", `{"roots":7}`, "\"5-roots\": the response to roots/list does not fit: "},
	} {
		n, err := out.Journal.Answer(json.RawMessage(`{"2-any":{"action":"decline"},"` + test.key + `":` + test.answer + `}`))
		require.ErrorContains(t, err, "inputResponses: "+test.err)
		require.Zero(t, n)
		require.Equal(t, before, stored(t, &mcpkit.Run{Journal: out.Journal}).Journal, test.answer)
	}
	empty := stored(t, &mcpkit.Run{Journal: out.Journal}).Journal
	_, err := empty.Answer(json.RawMessage(`{"1-form":{"action":"accept","content":{"size":3,"mail":null}}}`))
	require.NoError(t, err, "null is a field that is left empty")
	n, err := out.Journal.Answer(json.RawMessage(`{"1-form":{"action":"cancel","content":{"size":9}},"2-any":{"action":"accept","content":{"x":1}},"3-url":{"action":"accept"},
		"4-model":{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}},"5-roots":{"roots":[]}}`))
	require.NoError(t, err, "only the content of accepted forms counts, and a form that is not a schema has any")
	require.Equal(t, 5, n)
}

func TestRunsCheckScopesAndRecoverPanics(t *testing.T) {
	_, d, srv := newOuting(t, mcpkit.TrustLocal("outing:secret"))
	p := modern(t, srv)
	p.result("tools/call", `{"name":"panic"}`)
	p.result("tools/call", `{"name":"secret"}`)
	require.Len(t, d.runs, 2)

	out := d.runner.Run(t.Context(), stored(t, d.runs[0]))
	require.True(t, out.IsError)
	require.Contains(t, string(out.Result), "internal error (ref ")

	out = d.runner.Run(t.Context(), stored(t, d.runs[1]))
	require.Contains(t, string(out.Result), "seen")
	nobody := stored(t, d.runs[1])
	nobody.Principal = nil
	require.EqualError(t, d.runner.Run(t.Context(), nobody).Err, `unknown tool "secret" (code -32602)`)
	other := stored(t, d.runs[1])
	other.Principal = &oauth.Principal{Subject: "eve", Scopes: []string{"outing:other"}}
	require.EqualError(t, d.runner.Run(t.Context(), other).Err, `unknown tool "secret" (code -32602)`)
}

func TestValuesOfOnceThatCannotBeKeptAreErrors(t *testing.T) {
	o, d, srv := newOuting(t)
	modern(t, srv).result("tools/call", `{"name":"plan"}`)
	run := stored(t, d.runs[0])
	run.Keep = func(*mcpkit.Journal) error { return errors.New("the store is gone") }
	out := d.runner.Run(t.Context(), run)
	require.True(t, out.IsError)
	run = stored(t, d.runs[0])
	out = d.runner.Run(t.Context(), run)
	require.True(t, out.Asked)
	require.Len(t, o.keys, 2)
	require.Equal(t, o.keys[0], o.keys[1], "it was not kept, so it is made again, with the same key")
	require.Len(t, o.keys[0], 32)
}

func TestRunnersBelongToOneServer(t *testing.T) {
	_, d, _ := newOuting(t)
	_, err := mcpkit.New(nil, d.extension())
	require.EqualError(t, err, `mcpkit: extension "com.example/later": its Runner belongs to another server; make one extension for each server`)
}

// A till asks before it takes money. Its rate is one call a minute.
type till struct {
	_ struct {
		Pay mcpkit.Tool `rate:"1/m"`
	}
	refs   []string
	rounds []int
	begun  []time.Time
}

func (s *till) Pay(ctx context.Context, call *mcpkit.Call) (string, error) {
	s.refs, s.rounds, s.begun = append(s.refs, call.Ref()), append(s.rounds, call.Round()), append(s.begun, call.Begun())
	if _, err := mcpkit.Confirm(ctx, "Pay?"); err != nil {
		return "", err
	}
	return "paid", nil
}

// agreed are the params of the round in which the user agrees to all that result asks.
func agreed(t *testing.T, name, result string) string {
	t.Helper()
	var asked protocol.InputRequiredResult
	require.NoError(t, json.Unmarshal([]byte(result), &asked))
	require.NotNil(t, asked.RequestState, result)
	answers := map[string]any{}
	for key := range asked.InputRequests {
		answers[key] = map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}
	}
	text, err := json.Marshal(answers)
	require.NoError(t, err)
	return fmt.Sprintf(`{"name":%q,"requestState":%q,"inputResponses":%s}`, name, *asked.RequestState, text)
}

func TestRateTagCountsTheFirstRoundOfAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &till{}
		inner := mcpkit.MustNew(service)
		outer := newServer(t, nil)
		require.NoError(t, outer.Mount("t", inner))
		for name, srv := range map[string]*mcpkit.Server{"pay": inner, "t_pay": outer} {
			*service = till{}
			p := modern(t, srv)
			start := time.Now()
			params := agreed(t, name, p.result("tools/call", fmt.Sprintf(`{"name":%q}`, name)))
			time.Sleep(time.Second)
			require.Contains(t, p.result("tools/call", params), `"paid"`, name)
			require.Contains(t, p.result("tools/call", fmt.Sprintf(`{"name":%q}`, name)), "too many calls; try again in 59s", name)
			require.Equal(t, []int{0, 1}, service.rounds, name)
			require.Equal(t, service.refs[0], service.refs[1], name)
			require.True(t, start.Equal(service.begun[0]) && start.Equal(service.begun[1]), "%v", service.begun)
			time.Sleep(time.Hour)
		}
	})
}

// A client can send a requestState again. Each use after the first one counts.
func TestReplayedRequestStateDoesNotEvadeTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := modern(t, newServer(t, &till{}))
		params := agreed(t, "pay", p.result("tools/call", `{"name":"pay"}`))
		require.Contains(t, p.result("tools/call", params), `"paid"`)
		for range 2 {
			require.Contains(t, p.result("tools/call", params), "too many calls")
			time.Sleep(time.Minute)
			require.Contains(t, p.result("tools/call", params), `"paid"`)
		}
	})
}

// Answers that come without a state begin a call.
func TestAnswersWithoutAStateCountAsAFirstRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &till{}
		p := modern(t, newServer(t, service))
		foreseen := `{"name":"pay","inputResponses":{"pay":{"action":"accept","content":{"confirm":true}}}}`
		require.Contains(t, p.result("tools/call", foreseen), "input_required")
		require.Contains(t, p.result("tools/call", foreseen), "too many calls")
		require.Equal(t, []int{0}, service.rounds)
	})
}

// carrier is a transport without clients.
type carrier struct{ served atomic.Int32 }

func (c *carrier) Serve(context.Context, transport.Handler) error {
	c.served.Add(1)
	return nil
}

func TestServeUsesTheTransportsOfOver(t *testing.T) {
	var first, second carrier
	require.NoError(t, mcpkit.Serve(&till{}, mcpkit.Over(&first, &second), mcpkit.Name("till", "1.0.0")))
	require.EqualValues(t, 1, first.served.Load())
	require.EqualValues(t, 1, second.served.Load())
}

// A parent's deadline that is earlier than the time of the tool ends the call: with the parent's
// error, not as a timeout of the tool.
func TestEarlierDeadlineOfTheRequestEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, nil, mcpkit.ExposeErrors())
		require.NoError(t, srv.Add(mcpkit.NewTool("wait", func(ctx context.Context) (string, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Second, time.Until(deadline))
			<-ctx.Done()
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			require.Equal(t, context.DeadlineExceeded, context.Cause(ctx))
			return "", ctx.Err()
		}).Timeout(time.Minute)))
		for family, p := range families(t, srv) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			resp := p.rpc(ctx, p.request("tools/call", `{"name":"wait"}`))
			require.Equal(t, time.Second, time.Since(start), family)
			require.NotContains(t, string(resp.Result), "timed out after", family)
			require.Zero(t, srv.Overdue())
			cancel()
		}
	})
}
