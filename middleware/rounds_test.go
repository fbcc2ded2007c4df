package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
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

// askAbout is a tool with the argument text that asks once.
func askAbout() mcpkit.Item {
	return mcpkit.NewTool("ask", func(ctx context.Context, in struct {
		Text string `json:"text"`
	}) error {
		_, err := mcpkit.Confirm(ctx, "Pay?")
		return err
	})
}

func TestRateLimitCountsTheFirstRoundOfAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, pay())
		srv.Use(middleware.RateLimit(1.0/60, 1))
		p := modern(t, srv)
		second := agree(t, p.round(t.Context(), "pay", ""))
		third := agree(t, p.round(t.Context(), "pay", second))
		require.Equal(t, "paid", textOf(t, p.round(t.Context(), "pay", third)))
		require.Contains(t, textOf(t, p.round(t.Context(), "pay", "")), "too many calls")

		// Two rounds were played. A replay takes from what is left for later rounds, plus what has
		// come back in three seconds.
		played := 2
		for textOf(t, p.round(t.Context(), "pay", third)) == "paid" {
			played++
			require.Less(t, played, 3*mcpkit.MaxRounds, "replays are not limited")
		}
		require.GreaterOrEqual(t, played, mcpkit.MaxRounds)
		require.Contains(t, textOf(t, p.round(t.Context(), "pay", second)), "too many calls", "any round of the caller")
	})
}

func TestAuditHasOneBeginAndOneEndRecordForAllRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, pay())
		srv.Use(middleware.Audit(middleware.NewAuditLog(&b), middleware.AuditBegin()))
		p := modern(t, srv)
		second := agree(t, p.round(t.Context(), "pay", ""))
		require.Len(t, lines(t, b.String()), 1, "the begin record")
		time.Sleep(time.Minute)
		third := agree(t, p.round(t.Context(), "pay", second))
		time.Sleep(time.Minute)
		require.Equal(t, "paid", textOf(t, p.round(t.Context(), "pay", third)))
		time.Sleep(2 * mcpkit.AnswerTime)
		synctest.Wait()

		got := lines(t, b.String())
		require.Len(t, got, 2)
		require.Equal(t, "begin", got[0]["event"])
		require.Equal(t, "end", got[1]["event"])
		require.Equal(t, "ok", got[1]["outcome"])
		require.Equal(t, got[0]["ref"], got[1]["ref"])
		require.InDelta(t, 123_000, got[1]["durationMs"], 1, "from the first round to the end of the last")
	})
}

func TestAuditEndsACallWhoseUserNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, pay())
		srv.Use(middleware.Audit(middleware.NewAuditLog(&b), middleware.AuditBegin()))
		p := modern(t, srv)
		answers := agree(t, p.round(t.Context(), "pay", ""))
		time.Sleep(mcpkit.AnswerTime + time.Second) // the durations below say when the record was written
		synctest.Wait()
		got := lines(t, b.String())
		require.Len(t, got, 2)
		require.Equal(t, "unanswered", got[1]["outcome"])
		require.Equal(t, got[0]["ref"], got[1]["ref"])
		require.InDelta(t, 3_601_000, got[1]["durationMs"], 1)
		require.Contains(t, said(t, p.round(t.Context(), "pay", answers)), "requestState is not one that this server gave, or not for this call")
	})
}

// A program that ends while users think leaves a record of their calls.
func TestAuditEndsCallsThatWaitForAnswersWhenItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, pay())
		log := middleware.NewAuditLog(&b)
		srv.Use(middleware.Audit(log))
		agree(t, modern(t, srv).round(t.Context(), "pay", ""))
		require.Empty(t, b.String())
		require.NoError(t, log.Close())
		time.Sleep(2 * mcpkit.AnswerTime)
		synctest.Wait()
		got := lines(t, b.String())
		require.Len(t, got, 1)
		require.Equal(t, "input_required", got[0]["outcome"])
	})
}

// Clients that never answer do not make the log keep all that they sent.
func TestAuditKeepsFewArgumentsOfCallsThatWait(t *testing.T) {
	const calls, size = 20, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, askAbout())
		log := middleware.NewAuditLog(&b)
		srv.Use(middleware.Audit(log, middleware.AuditArguments()))
		p := modern(t, srv)
		for range calls {
			agree(t, p.round(t.Context(), "ask", `,"arguments":{"text":"`+strings.Repeat("x", size)+`"}`))
		}
		written := len(lines(t, b.String()))
		require.GreaterOrEqual(t, written, calls-16, "at most 16 MiB wait")
		require.Less(t, written, calls, "some wait")
		require.NoError(t, log.Close())
		got := lines(t, b.String())
		require.Len(t, got, calls)
		for _, record := range got {
			require.Equal(t, "input_required", record["outcome"])
			require.Equal(t, strings.Repeat("x", size), record["arguments"].(map[string]any)["text"])
		}
	})
}

// Answers make room for further calls that wait.
func TestAuditForgetsTheArgumentsOfAnsweredCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, askAbout())
		srv.Use(middleware.Audit(middleware.NewAuditLog(&b), middleware.AuditArguments()))
		p := modern(t, srv)
		args := `,"arguments":{"text":"` + strings.Repeat("x", 1<<20) + `"}`
		for range 20 {
			p.round(t.Context(), "ask", args+agree(t, p.round(t.Context(), "ask", args)))
		}
		for _, record := range lines(t, b.String()) {
			require.Equal(t, "ok", record["outcome"])
		}
	})
}

// A record is written long after its request, whose bytes may hold another request by then.
func TestAuditCopiesTheArgumentsOfCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, askAbout())
		log := middleware.NewAuditLog(&b)
		srv.Use(middleware.Audit(log, middleware.AuditArguments()))
		var sent json.RawMessage
		srv.Use(wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			sent = call.Arguments()
			return next(ctx, call)
		}))
		agree(t, modern(t, srv).round(t.Context(), "ask", `,"arguments":{"text":"ann"}`))
		copy(sent, `{"text":"bob"}`)
		require.NoError(t, log.Close())
		require.Equal(t, map[string]any{"text": "ann"}, lines(t, b.String())[0]["arguments"])
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
		srv.Use(middleware.Audit(middleware.NewAuditLog(&b), middleware.AuditBegin()), middleware.ErrorCodes())
		srv.UseFor(mcpkit.OnTool("erase"), wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
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
		require.Len(t, got, 2)
		require.Equal(t, "begin", got[0]["event"])
		require.Equal(t, "ok", got[1]["outcome"])
	})
}
