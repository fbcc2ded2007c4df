package mcpkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

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
	require.Contains(t, result, "this client cannot be asked that: forms of 2025-06-18 have no lists, and the field sizes is one")
}
