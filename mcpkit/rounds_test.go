package mcpkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

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
