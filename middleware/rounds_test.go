package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// round sends tools/call on 2026-07-28 from a client whose user can be asked. more are further
// members of the params, each with a comma in front.
func (p *peer) round(ctx context.Context, name, more string) *jsonrpc.Response {
	p.t.Helper()
	msg, bad := jsonrpc.Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`, name, more))
	require.Nil(p.t, bad)
	return p.srv.ServeRPC(ctx, msg.Request, p)
}

// agree returns the params, without the name, of the next round if the user says yes to each
// question of this one.
func agree(t testing.TB, resp *jsonrpc.Response) string {
	t.Helper()
	require.Nil(t, resp.Error, "%+v", resp.Error)
	var r struct {
		InputRequests map[string]json.RawMessage
		RequestState  string
	}
	require.NoError(t, json.Unmarshal(resp.Result, &r))
	require.NotEmpty(t, r.InputRequests, "%s", resp.Result)
	answers := map[string]any{}
	for key := range r.InputRequests {
		answers[key] = map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}
	}
	text, err := json.Marshal(answers)
	require.NoError(t, err)
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, r.RequestState, text)
}

// pay is a tool that asks twice, one question after the other, and takes a second for each round.
func pay() mcpkit.Item {
	return mcpkit.NewTool("pay", func(ctx context.Context) (string, error) {
		time.Sleep(time.Second)
		for _, question := range []string{"Pay?", "Really?"} {
			if _, err := mcpkit.Confirm(ctx, question); err != nil {
				return "", err
			}
		}
		return "paid", nil
	})
}

func TestRateLimitCountsFirstAndRepeatedRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, pay())
		srv.Use(middleware.RateLimit(1.0/60, 1))
		p := modern(t, srv)
		second := agree(t, p.round(t.Context(), "pay", ""))
		third := agree(t, p.round(t.Context(), "pay", second))
		require.Equal(t, "paid", textOf(t, p.round(t.Context(), "pay", third)))
		require.Contains(t, textOf(t, p.round(t.Context(), "pay", "")), "too many calls")

		// Each use of a state after the first one counts.
		for range 2 {
			require.Contains(t, textOf(t, p.round(t.Context(), "pay", second)), "too many calls")
			time.Sleep(time.Minute)
			require.Equal(t, "paid", textOf(t, p.round(t.Context(), "pay", third)))
		}
	})
}

func TestConcurrencyLimitsEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, pay())
		srv.Use(middleware.Concurrency(1))
		p := modern(t, srv)
		answers := agree(t, p.round(t.Context(), "pay", ""))
		other := agree(t, p.round(t.Context(), "pay", ""))
		done := make(chan struct{})
		go func() { // ends after the second that the round takes
			defer close(done)
			agree(t, p.round(t.Context(), "pay", answers))
		}()
		synctest.Wait()
		require.Contains(t, textOf(t, p.round(t.Context(), "pay", other)), "too many calls at a time")
		<-done
		agree(t, p.round(t.Context(), "pay", other))
	})
}

func TestMiddlewareMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		ran := 0
		srv := newServer(t, mcpkit.NewTool("erase", func() string { ran++; return "erased" }))
		srv.Use(middleware.Audit(slog.NewJSONHandler(&b, nil), middleware.AuditBegin()), middleware.ErrorCodes(), wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			if agreed, err := mcpkit.Confirm(ctx, "Erase?"); err != nil || !agreed {
				return nil, err
			}
			return next(ctx, call)
		}))
		p := modern(t, srv)
		answers := agree(t, p.round(t.Context(), "erase", ""))
		require.Zero(t, ran)
		require.Equal(t, "erased", textOf(t, p.round(t.Context(), "erase", answers)))
		require.Equal(t, 1, ran)
		got := lines(t, b.String())
		require.Len(t, got, 3)
		require.Equal(t, "begin", got[0]["event"])
		require.Equal(t, "input_required", got[1]["outcome"])
		require.Equal(t, "ok", got[2]["outcome"])
	})
}
