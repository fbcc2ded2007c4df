package mcpkit_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// trips asks three questions, one of them to the model, and does one thing that must happen once.
type trips struct {
	holds int
	_     struct {
		Book   mcpkit.Tool
		Guide  mcpkit.Prompt   `params:"city"`
		Ticket mcpkit.Resource `uri:"ticket://{id}"`
	}
}

type dates struct {
	// First day.
	From string `json:"from" validate:"required"`
	Days int    `json:"days,omitempty" default:"7" validate:"min=1,max=30"`
}

type where struct {
	City string `json:"city" validate:"required"`
}

func (s *trips) Book(ctx context.Context, in where) (string, error) {
	when, err := mcpkit.Elicit[dates](ctx, "Which dates for "+in.City+"?")
	if err != nil {
		return "", err
	}
	hold, err := mcpkit.Once(ctx, "hold", func() (string, error) {
		s.holds++
		return fmt.Sprintf("hold-%s-%d", when.From, when.Days), nil
	})
	if err != nil {
		return "", err
	}
	slogan, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{
		Messages:  []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: protocol.SamplingContents{mcpkit.Text("a slogan for " + in.City)}}},
		MaxTokens: 10,
	})
	if err != nil {
		return "", err
	}
	ok, err := mcpkit.Confirm(ctx, "Pay for "+hold+"?")
	if err != nil || !ok {
		return "not booked", err
	}
	return hold + ": " + slogan.Content[0].(*protocol.TextContent).Text, nil
}

func (s *trips) Guide(ctx context.Context, city string) (string, error) {
	kind, err := mcpkit.Choose(ctx, "What kind of guide?", []string{"short", "long"})
	return "A " + kind + " guide to " + city, err
}

func (s *trips) Ticket(ctx context.Context, id string) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Show ticket "+id+"?")
	return fmt.Sprint(ok), err
}

// respond answers a question the way a client's user and model would.
func respond(t testing.TB, method string, params json.RawMessage) string {
	switch method {
	case protocol.MethodSamplingCreateMessage:
		return `{"role":"assistant","content":{"type":"text","text":"Go!"},"model":"m"}`
	case protocol.MethodRootsList:
		return `{"roots":[]}`
	}
	switch message := member(t, string(params), "message"); {
	case strings.Contains(message, "Which dates"):
		return `{"action":"accept","content":{"from":"Monday"}}`
	case strings.Contains(message, "kind of guide"):
		return `{"action":"accept","content":{"choice":"short"}}`
	default:
		return `{"action":"accept","content":{"confirm":true}}`
	}
}

// drive repeats a modern call, on the servers in turn, until it is complete, and returns the result
// and how many rounds it took.
func drive(t testing.TB, servers []*mcpkit.Server, method, params string) (result string, rounds int) {
	inputs := ""
	for {
		p := modern(t, servers[rounds%len(servers)])
		rounds++
		result = p.result(method, params[:len(params)-1]+inputs+"}")
		if member(t, result, "resultType") == `"complete"` {
			return result, rounds
		}
		require.Less(t, rounds, 10)
		var required protocol.InputRequiredResult
		require.NoError(t, json.Unmarshal([]byte(result), &required))
		require.Less(t, len(*required.RequestState), 1024, "a small wizard's state stays small")
		responses := map[string]json.RawMessage{}
		for key, q := range required.InputRequests {
			responses[key] = json.RawMessage(respond(t, q.Method, q.Params))
		}
		encoded, err := json.Marshal(responses)
		require.NoError(t, err)
		inputs = fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, encoded, *required.RequestState)
	}
}

var key = bytes.Repeat([]byte("k"), 32)

func TestRoundsMayReachDifferentReplicas(t *testing.T) {
	a, b := &trips{}, &trips{}
	servers := []*mcpkit.Server{newServer(t, a, mcpkit.StateKeys(key)), newServer(t, b, mcpkit.StateKeys(key))}
	result, rounds := drive(t, servers, "tools/call", `{"name":"book","arguments":{"city":"Rome"}}`)
	require.Equal(t, `[{"type":"text","text":"hold-Monday-7: Go!"}]`, member(t, result, "content"))
	require.Equal(t, 4, rounds)
	require.Equal(t, 1, a.holds+b.holds, "what stands in Once happened once")
}

func TestAnswersToRawFormsAreValidated(t *testing.T) {
	p := legacy(t, newServer(t, &trips{}), protocol.V20251125)
	for content, want := range map[string]string{
		`{"choice":"huge"}`: `/choice: got "huge", want one of "short" or "long"`, `{"choice":null}`: `/choice: missing`,
	} {
		p.answer = func(*jsonrpc.Request) *jsonrpc.Response {
			return &jsonrpc.Response{Result: json.RawMessage(`{"action":"accept","content":` + content + `}`)}
		}
		err := p.fails("prompts/get", `{"name":"guide","arguments":{"city":"Rome"}}`)
		require.ErrorContains(t, err, "the content of the response does not fit the form: 1 problem with the arguments:\n"+want)
	}
}

// firstRound returns the state of the first round of a booking, and the key of its question.
func firstRound(t testing.TB, p *peer) (state, question string) {
	result := p.result("tools/call", `{"name":"book","arguments":{"city":"Rome"}}`)
	var required protocol.InputRequiredResult
	require.NoError(t, json.Unmarshal([]byte(result), &required))
	require.Len(t, required.InputRequests, 1)
	for question = range required.InputRequests {
	}
	return *required.RequestState, question
}

const refusedState = "requestState is not one that this server gave, or not for this call (code -32602)"

func TestForeignStateIsRefused(t *testing.T) {
	srv := newServer(t, &trips{}, mcpkit.StateKeys(key))
	state, _ := firstRound(t, modern(t, srv))
	book := func(args, state string) string {
		return fmt.Sprintf(`{"name":"book","arguments":%s,"requestState":%q}`, args, state)
	}
	refused := func(t *testing.T, srv *mcpkit.Server, method, params string) {
		require.EqualError(t, modern(t, srv).fails(method, params), refusedState)
	}
	t.Run("another tool", func(t *testing.T) {
		require.NoError(t, srv.Add(mcpkit.NewTool("other", func() string { return "" })))
		refused(t, srv, "tools/call", fmt.Sprintf(`{"name":"other","requestState":%q}`, state))
	})
	t.Run("another method", func(t *testing.T) {
		refused(t, srv, "prompts/get", fmt.Sprintf(`{"name":"guide","arguments":{"city":"Rome"},"requestState":%q}`, state))
	})
	t.Run("other arguments", func(t *testing.T) { refused(t, srv, "tools/call", book(`{"city":"Oslo"}`, state)) })
	t.Run("the same arguments with other white space are the same", func(t *testing.T) {
		modern(t, srv).result("tools/call", book(`{ "city" : "Rome" }`, state))
	})
	t.Run("another principal", func(t *testing.T) {
		ctx := oauth.NewContext(t.Context(), &oauth.Principal{Subject: "mallory"})
		p := modern(t, srv)
		resp := p.rpc(ctx, p.request("tools/call", book(`{"city":"Rome"}`, state)))
		require.EqualError(t, resp.Error, refusedState)
	})
	t.Run("a caller that lost its scopes", func(t *testing.T) {
		for want, opts := range map[string][]mcpkit.Option{
			`unknown tool "pay" (code -32602)`:                 {mcpkit.Authenticated()},
			`insufficient scope: this needs "a" (code -31001)`: {mcpkit.Authenticated(), mcpkit.StepUp()},
		} {
			paid := false
			srv := newServer(t, nil, opts...)
			require.NoError(t, srv.Add(mcpkit.NewTool("pay", func(ctx context.Context) (err error) {
				paid, err = mcpkit.Confirm(ctx, "Pay?", mcpkit.Key("sure"))
				return err
			}).Scopes("a")))
			p := modern(t, srv)
			first := p.rpc(as(p, "a"), p.request("tools/call", `{"name":"pay"}`))
			second := p.request("tools/call", `{"name":"pay","requestState":`+member(t, string(first.Result), "requestState")+
				`,"inputResponses":{"sure":{"action":"accept","content":{"confirm":true}}}}`)
			require.EqualError(t, p.rpc(as(p), second).Error, want)
			require.False(t, paid)
			require.Nil(t, p.rpc(as(p, "a"), second).Error)
			require.True(t, paid)
		}
	})
	t.Run("another key", func(t *testing.T) {
		refused(t, newServer(t, &trips{}), "tools/call", book(`{"city":"Rome"}`, state))
	})
	t.Run("a key that was current before", func(t *testing.T) {
		rotated := newServer(t, &trips{}, mcpkit.StateKeys(bytes.Repeat([]byte("n"), 32), key))
		modern(t, rotated).result("tools/call", book(`{"city":"Rome"}`, state))
	})
	t.Run("truncated and lengthened", func(t *testing.T) {
		for _, s := range []string{"", state[:len(state)-1], state[:10], state + "A", state + "-TAMPERED"} {
			refused(t, srv, "tools/call", book(`{"city":"Rome"}`, s))
		}
	})
	t.Run("every single bit flipped", func(t *testing.T) {
		sealed, err := base64.RawURLEncoding.DecodeString(state)
		require.NoError(t, err)
		for i := range len(sealed) * 8 {
			flipped := bytes.Clone(sealed)
			flipped[i/8] ^= 1 << (i % 8)
			refused(t, srv, "tools/call", book(`{"city":"Rome"}`, base64.RawURLEncoding.EncodeToString(flipped)))
		}
	})
}

func TestStateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, &trips{})
		state, _ := firstRound(t, modern(t, srv))
		params := fmt.Sprintf(`{"name":"book","arguments":{"city":"Rome"},"requestState":%q}`, state)
		time.Sleep(time.Hour - 2*time.Second) // of the clock of synctest
		modern(t, srv).result("tools/call", params)
		time.Sleep(4 * time.Second)
		require.EqualError(t, modern(t, srv).fails("tools/call", params), refusedState)
	})
}

// odd misuses the error that a question without an answer returns.
type odd struct {
	rounds int
}

func (o *odd) Swallows(ctx context.Context) string {
	if _, err := mcpkit.Confirm(ctx, "Sure?"); err != nil {
		return "swallowed"
	}
	return "done"
}

func (o *odd) Wraps(ctx context.Context) error {
	_, err := mcpkit.Confirm(ctx, "Sure?")
	if err != nil {
		return fmt.Errorf("while asking: %w", errors.New(err.Error()))
	}
	return nil
}

func (o *odd) Changes(ctx context.Context) (string, error) {
	o.rounds++
	ok, err := mcpkit.Confirm(ctx, fmt.Sprintf("Question %d?", min(o.rounds, 2)), mcpkit.Key("same"))
	return fmt.Sprintf("%v after %d runs", ok, o.rounds), err
}

func (o *odd) Clashes(ctx context.Context) error {
	_, first := mcpkit.Confirm(ctx, "A?", mcpkit.Key("k"))
	_, second := mcpkit.Confirm(ctx, "B?", mcpkit.Key("k"))
	return cmp.Or(first, second)
}

func TestHandlersThatMisuseTheUnwindingError(t *testing.T) {
	for _, test := range []struct {
		tool, want string
		rounds     int
	}{
		{"swallows", "done", 2},
		{"wraps", "", 2},
		{"changes", "true after 3 runs", 3},
		{"clashes", "", 2},
	} {
		t.Run(test.tool, func(t *testing.T) {
			result, rounds := drive(t, []*mcpkit.Server{newServer(t, &odd{})}, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, test.tool))
			require.Contains(t, member(t, result, "content"), test.want)
			require.Empty(t, member(t, result, "isError"))
			require.Equal(t, test.rounds, rounds)
		})
	}
}

func TestNothingIsKeptBetweenRounds(t *testing.T) {
	srv := newServer(t, &trips{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	measure := func() (goroutines int, heap uint64) {
		runtime.GC()
		runtime.GC() // empties pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	for range 100 { // what the first calls need is kept
		firstRound(t, modern(t, srv))
	}
	goroutines, heap := measure()
	const calls = 2000
	for range calls {
		firstRound(t, modern(t, srv)) // and the client never sends the next round
	}
	goroutinesAfter, heapAfter := measure()
	require.LessOrEqual(t, goroutinesAfter, goroutines)
	require.Less(t, int64(heapAfter)-int64(heap), int64(calls*50), "bytes kept: less than 50 for each call that waits")
}

func TestQuestionsOutsideACall(t *testing.T) {
	_, err := mcpkit.Confirm(t.Context(), "Sure?")
	require.EqualError(t, err, "mcpkit: a question needs the context that the method was called with")
	v, err := mcpkit.Once(t.Context(), "k", func() (int, error) { return 5, nil })
	require.NoError(t, err)
	require.Equal(t, 5, v)
}

type nested struct {
	Inner struct{ A string } `json:"inner"`
}

func TestFormsAreFlatAndAskForNoSecrets(t *testing.T) {
	srv := newServer(t, nil, mcpkit.ExposeErrors(), mcpkit.Items(mcpkit.NewTool("ask", func(ctx context.Context) error {
		_, err := mcpkit.Elicit[nested](ctx, "?")
		_, secret := mcpkit.Elicit[secretInput](ctx, "?")
		return errors.Join(err, secret)
	})))
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"ask"}`), `field \"token\" is secret, which a form may not ask for; use a URL`)
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"ask"}`),
		`field \"inner\" cannot be asked for: a form has strings, numbers, bools, enums and slices of enums`)
}

func TestRandomStateKeyIsLoggedOnceOverHTTP(t *testing.T) {
	for _, test := range []struct {
		name  string
		opts  []mcpkit.Option
		http  bool
		warns int
	}{
		{"random over HTTP", nil, true, 1},
		{"random on stdio", nil, false, 0},
		{"given over HTTP", []mcpkit.Option{mcpkit.StateKeys(key)}, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			srv := newServer(t, &trips{}, append(test.opts, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))...)
			for range 3 {
				p := modern(t, srv)
				if test.http {
					p.header = transport.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"book"}}
				}
				firstRound(t, p)
			}
			require.Equal(t, test.warns, strings.Count(log.String(), "random key"), log.String())
		})
	}
}

func TestRoundsAndStatesAreBounded(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	n := 0
	require.NoError(t, srv.Add(
		mcpkit.NewTool("endless", func(ctx context.Context) (bool, error) {
			n++
			return mcpkit.Confirm(ctx, fmt.Sprintf("Question %d?", n))
		}),
		mcpkit.NewTool("heavy", func(ctx context.Context) (bool, error) {
			if _, err := mcpkit.Once(ctx, "big", func() (string, error) { return strings.Repeat("x", 40<<10), nil }); err != nil {
				return false, err
			}
			return mcpkit.Confirm(ctx, "Sure?")
		}),
	))
	params := `{"name":"endless"}`
	for rounds := 0; ; rounds++ {
		require.LessOrEqual(t, rounds, 32)
		result := modern(t, srv).result("tools/call", params)
		if member(t, result, "isError") == "true" {
			require.Equal(t, 32, rounds)
			require.Contains(t, result, "the call asked questions in 32 rounds, which is the most it may; a question whose text changes")
			break
		}
		params = fmt.Sprintf(`{"name":"endless","requestState":%s}`, member(t, result, "requestState"))
	}
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"heavy"}`), "internal error")
}

func TestToolsForTheModelNeedTheirOwnCapability(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Items(mcpkit.NewTool("think", func(ctx context.Context) (string, error) {
		_, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{MaxTokens: 1, Tools: []protocol.Tool{{Name: "t"}}})
		return "", err
	})))
	p := modern(t, srv)
	require.JSONEq(t, `{"requiredCapabilities":{"sampling":{"tools":{}}}}`, string(p.fails("tools/call", `{"name":"think"}`).Data))
	with := strings.Replace(p.request("tools/call", `{"name":"think"}`), `"sampling":{}`, `"sampling":{"tools":{}}`, 1)
	require.Contains(t, p.raw(t.Context(), with), `"sampling/createMessage"`)
}

// late asks in goroutines that outlive its method.
type late struct {
	wg   sync.WaitGroup
	stop atomic.Bool
	errs atomic.Int32 // unexpected ones
}

// Fork returns while its goroutines continue to ask.
func (l *late) Fork(ctx context.Context) (bool, error) {
	for i := range 4 {
		l.wg.Go(func() {
			for !l.stop.Load() {
				_, err := mcpkit.Confirm(ctx, "Still there?", mcpkit.Key(fmt.Sprint("goroutine ", i)))
				if err != mcpkit.ErrAsked && (err == nil || err.Error() != "mcpkit: the call is over; ask before its method returns") {
					l.errs.Add(1)
				}
				_, _ = mcpkit.Once(ctx, fmt.Sprint(i), func() (int, error) { return i, nil })
			}
		})
	}
	return mcpkit.Confirm(ctx, "Go on?", mcpkit.Key("method"))
}

func TestGoroutinesThatAskAfterTheirMethodReturnedDoNoHarm(t *testing.T) {
	for range 200 {
		l := &late{}
		require.Contains(t, modern(t, newServer(t, l)).result("tools/call", `{"name":"fork"}`), `"Go on?"`)
		l.stop.Store(true)
		l.wg.Wait()
		require.Zero(t, l.errs.Load())
	}
}

func TestQuestionsOfACallThatIsOverAreErrors(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20260728, protocol.V20251125} {
		t.Run(string(v), func(t *testing.T) {
			var kept context.Context
			srv := newServer(t, nil)
			require.NoError(t, srv.Add(mcpkit.NewTool("keep", func(ctx context.Context) string { kept = ctx; return "" })))
			p := modern(t, srv)
			if !v.Modern() {
				p = legacy(t, srv, v)
			}
			p.answer = func(*jsonrpc.Request) *jsonrpc.Response {
				t.Error("nobody is asked")
				return &jsonrpc.Response{Result: json.RawMessage(`{"action":"cancel"}`)}
			}
			p.result("tools/call", `{"name":"keep"}`)
			_, err := mcpkit.Confirm(kept, "Are you still there?")
			require.EqualError(t, err, "mcpkit: the call is over; ask before its method returns")
		})
	}
}

// A server refuses the states of another server, even if they share keys.
func TestStatesAreForTheirServer(t *testing.T) {
	named := func(name string) *mcpkit.Server {
		return newServer(t, &trips{}, mcpkit.StateKeys(key), mcpkit.Name(name, "1.0.0"))
	}
	state, question := firstRound(t, modern(t, named("one")))
	params := fmt.Sprintf(`{"name":"book","arguments":{"city":"Rome"},"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"from":"Monday"}}}}`, state, question)
	require.EqualError(t, modern(t, named("two")).fails("tools/call", params), refusedState)
	require.Contains(t, modern(t, named("one")).result("tools/call", params), "sampling/createMessage", "a replica takes it")
	require.Contains(t, modern(t, newServer(t, &trips{}, mcpkit.StateKeys(key), mcpkit.Name("one", "2.0.0"))).result("tools/call", params),
		"sampling/createMessage", "also one of another version, while a new one is rolled out")

	for _, spoiled := range []string{state + "\n", state + "\r\n", state[:20] + "\r\n" + state[20:], "\n" + state} {
		text, err := json.Marshal(spoiled)
		require.NoError(t, err)
		require.EqualError(t, modern(t, named("one")).fails("tools/call", fmt.Sprintf(`{"name":"book","arguments":{"city":"Rome"},"requestState":%s}`, text)), refusedState)
	}
}

// Two servers with the same name may have different servers mounted under the same prefix. An
// answer to one of these is not an answer to the other.
func TestAnswersAreForTheServerThatAsked(t *testing.T) {
	gateway := func(child string) *mcpkit.Server {
		inner := newServer(t, nil, mcpkit.Name(child, "1"))
		require.NoError(t, inner.Add(mcpkit.NewTool("pay", func(ctx context.Context) (string, error) {
			first, err := mcpkit.Once(ctx, "who", func() (string, error) { return child, nil })
			if err != nil {
				return "", err
			}
			ok, err := mcpkit.Confirm(ctx, "Pay?")
			return fmt.Sprint(first, " ", ok), err
		})))
		outer := newServer(t, nil, mcpkit.StateKeys(key), mcpkit.Name("gateway", "1"))
		outer.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				first, err := mcpkit.Once(ctx, "who", func() (string, error) { return "gateway", nil })
				require.NoError(t, err)
				require.Equal(t, "gateway", first)
				return next(ctx, call)
			}
		})
		require.NoError(t, outer.Mount("shop", inner))
		return outer
	}
	asked := func(result string) protocol.InputRequiredResult {
		var required protocol.InputRequiredResult
		require.NoError(t, json.Unmarshal([]byte(result), &required))
		require.Len(t, required.InputRequests, 1, result)
		return required
	}
	first := asked(modern(t, gateway("books")).result("tools/call", `{"name":"shop_pay"}`))
	answers := make([]string, 0, 1)
	for name := range first.InputRequests {
		answers = append(answers, fmt.Sprintf(`%q:{"action":"accept","content":{"confirm":true}}`, name))
	}
	params := fmt.Sprintf(`{"name":"shop_pay","requestState":%q,"inputResponses":{%s}}`, *first.RequestState, strings.Join(answers, ","))
	require.Contains(t, modern(t, gateway("books")).result("tools/call", params), "books true")
	asked(modern(t, gateway("arms")).result("tools/call", params))
}

func TestAskAsksAllQuestions(t *testing.T) {
	const n = 12
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("Number %d?", i))
	}
	srv := newServer(t, nil, mcpkit.Items(mcpkit.NewTool("many", func(ctx context.Context) (string, error) {
		answers := make([]bool, n)
		var questions []func(context.Context) error
		for i := range answers {
			questions = append(questions, func(ctx context.Context) (err error) {
				answers[i], err = mcpkit.Confirm(ctx, want[i])
				return err
			})
		}
		err := mcpkit.Ask(ctx, questions...)
		return fmt.Sprint(answers), err
	})))
	allTrue := strings.Repeat("true ", n-1) + "true"
	t.Run("modern", func(t *testing.T) {
		var required protocol.InputRequiredResult
		require.NoError(t, json.Unmarshal([]byte(modern(t, srv).result("tools/call", `{"name":"many"}`)), &required))
		require.Len(t, required.InputRequests, n)
		answers := make(map[string]json.RawMessage)
		for key := range required.InputRequests {
			answers[key] = json.RawMessage(`{"action":"accept","content":{"confirm":true}}`)
		}
		responses, err := json.Marshal(answers)
		require.NoError(t, err)
		result := modern(t, srv).result("tools/call", fmt.Sprintf(`{"name":"many","requestState":%q,"inputResponses":%s}`, *required.RequestState, responses))
		require.Contains(t, result, allTrue)
	})
	t.Run("legacy", func(t *testing.T) {
		p := legacy(t, srv, protocol.V20251125)
		var got []string
		p.answer = func(req *jsonrpc.Request) *jsonrpc.Response {
			got = append(got, jsonx.String(jsonx.Member(req.Params, "message")))
			return &jsonrpc.Response{Result: json.RawMessage(`{"action":"accept","content":{"confirm":true}}`)}
		}
		require.Contains(t, p.result("tools/call", `{"name":"many"}`), allTrue)
		require.Equal(t, want, got)
	})
}

type size string

const (
	small size = "s" // Small.
	large size = "l" // Large.
)

// order is a form.
type order struct {
	// How large.
	Size size `json:"size" validate:"oneof=s l"`
	// How many.
	Count int `json:"count" validate:"gt=0,lt=100" default:"1"`
	// Where to.
	Zip string `json:"zip" validate:"len=5,numeric"`
	// In steps of a half.
	Weight float64 `json:"weight,omitempty" validate:"gte=0.5"`
}

type wishes struct {
	Sizes []size `json:"sizes" validate:"dive,oneof=s l"`
}

func elicitServer(t *testing.T) *mcpkit.Server {
	srv := newServer(t, nil, mcpkit.Items(
		mcpkit.NewTool("order", func(ctx context.Context) (string, error) {
			got, err := mcpkit.Elicit[order](ctx, "What?")
			return fmt.Sprint(got), err
		}),
		mcpkit.NewTool("wish", func(ctx context.Context) (string, error) {
			got, err := mcpkit.Elicit[wishes](ctx, "What?")
			if errors.Is(err, mcpkit.ErrUnsupported) {
				return err.Error(), nil
			}
			return fmt.Sprint(got), err
		}),
	))
	return srv
}

// schemaOf is the form that a legacy client gets; "" if there is none.
func schemaOf(t *testing.T, srv *mcpkit.Server, v protocol.Version, tool string) (schema, result string) {
	p := legacy(t, srv, v)
	p.answer = func(req *jsonrpc.Request) *jsonrpc.Response {
		schema = member(t, string(req.Params), "requestedSchema")
		return &jsonrpc.Response{Result: json.RawMessage(`{"action":"accept","content":{"size":"s","count":1,"zip":"12345"}}`)}
	}
	return schema, p.result("tools/call", fmt.Sprintf(`{"name":%q}`, tool)) + schema
}

func TestFormsLeaveOutTheRulesThatTheyCannotCarry(t *testing.T) {
	_, result := schemaOf(t, elicitServer(t), protocol.V20251125, "order")
	schema := result[strings.LastIndex(result, `{"type":"object"`):]
	require.JSONEq(t, `{"type":"integer","description":"How many.","default":1}`, member(t, schema, "properties", "count"))
	require.Contains(t, schema, `"oneOf":[{"const":"s"`)
	_, result = schemaOf(t, elicitServer(t), protocol.V20251125, "wish")
	require.Contains(t, result, `"items":{"anyOf":[{"const":"s","title":"Small."},{"const":"l","title":"Large."}]}`)
}

func TestFormsOf20250618(t *testing.T) {
	_, result := schemaOf(t, elicitServer(t), protocol.V20250618, "order")
	schema := result[strings.LastIndex(result, `{"type":"object"`):]
	require.JSONEq(t, `["s","l"]`, member(t, schema, "properties", "size", "enum"))
	require.JSONEq(t, `["Small.","Large."]`, member(t, schema, "properties", "size", "enumNames"))
	require.NotContains(t, schema, "oneOf")
	require.Empty(t, member(t, schema, "properties", "count", "default"), "only bools have one in that version")

	asked, result := schemaOf(t, elicitServer(t), protocol.V20250618, "wish")
	require.Empty(t, asked)
	require.Contains(t, result, "this client cannot answer what the tool asks of its user or model: forms of 2025-06-18 have no lists, and the field sizes is one")
}
