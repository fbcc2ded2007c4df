//go:build !mcpkit_plain

package duplex_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestMessagesBehindASlowRequestAreReadSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{}, nil)
		begun := time.Now()
		p.send(request(1, "block"), request(2, "quick"), request(3, "ping"), cancelOf(1), request(4, "quick"))
		got := []string{p.receive(), p.receive(), p.receive()}
		require.ElementsMatch(t, []string{answer(2, `"quick"`), answer(3, `"ping"`), answer(4, `"quick"`)}, got)
		require.LessOrEqual(t, time.Since(begun), time.Millisecond)
		p.hangUp()
	})
}

func TestASlowRequestAmongQuickOnesIsWaitedForUpTo4ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{methods: methods{"short": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			time.Sleep(70 * time.Microsecond)
			return result(req, `"short"`)
		}}}
		p := serve(t, h, nil)
		behindSlow := func(id int) time.Duration {
			begun := time.Now()
			p.send(request(id, "block"), request(id+1, "ping"))
			require.Equal(t, answer(id+1, `"ping"`), p.receive())
			return time.Since(begun)
		}
		const quick = 500 // for 35 ms
		for i := range quick {
			p.send(request(i, "short"))
		}
		for i := range quick {
			require.Equal(t, answer(i, `"short"`), p.receive())
		}
		waited := behindSlow(quick)
		require.Greater(t, waited, time.Millisecond, "the timer fires less often than each millisecond")
		require.LessOrEqual(t, waited, 4*time.Millisecond)
		p.send(request(quick+2, "short")) // elsewhere, since the one before was slow
		require.Equal(t, answer(quick+2, `"short"`), p.receive())
		require.LessOrEqual(t, behindSlow(quick+3), 2*time.Millisecond, "it fires more often again")
		p.stop()
		require.NoError(t, <-p.over)
	})
}

func TestSlowRequestsRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{methods: methods{"slow": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			time.Sleep(time.Second)
			return result(req, `"slow"`)
		}}}
		p := serve(t, h, nil)
		begun := time.Now()
		const sent = 500
		for i := range sent {
			p.send(request(i, "slow"))
		}
		for range sent {
			p.receive()
		}
		// One of 1, then 2, 4, 8, 16, 32 and 64 is waited for before the next one is read.
		require.Less(t, time.Since(begun), time.Second+20*time.Millisecond)
		p.hangUp()
	})
}

func TestMoreAndMoreRequestsRunElsewhereAfterSlowOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranOn := runsOn(serve(t, ownGoroutine{time.Millisecond / 2}, nil), 10)
		require.Equal(t, []bool{true, false, true, false, false, true, false, false, false, false}, ranOn, "on the goroutine of the first")
	})
}

func TestRequestsStayWhereTheyAreReadIfOnlyTheirWritesAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranOn := runsOn(serveOn(t, ownGoroutine{}, nil, &wire{slow: time.Millisecond / 2}), 7)
		require.NotContains(t, ranOn, false, "on the goroutine of the first")
	})
}

// ownGoroutine answers with the goroutine that it runs on, after some time.
type ownGoroutine struct{ after time.Duration }

func (o ownGoroutine) ServeRPC(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	time.Sleep(o.after)
	header := make([]byte, len("goroutine 12345678"))
	runtime.Stack(header, false)
	return result(req, strings.Fields(string(header))[1])
}

// runsOn sends requests, each after the response of the one before, and reports which ones ran on
// the goroutine of the first.
func runsOn(p *peer, requests int) []bool {
	var first string
	var same []bool
	for i := range requests {
		p.send(request(i, "any"))
		_, goroutine, _ := strings.Cut(p.receive(), `"result":`)
		if i == 0 {
			first = goroutine
		}
		same = append(same, goroutine == first)
	}
	p.hangUp()
	return same
}

func TestARequestThatAsksIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{methods: methods{"ask": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			resp, err := peer.Call(ctx, &jsonrpc.Request{Method: "roots/list"})
			if err != nil {
				return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "%v", err)}
			}
			return result(req, string(resp.Result))
		}}}
		p := serve(t, h, nil)
		p.link.Session().SetVersion("2025-11-25")
		begun := time.Now()
		p.send(request("a", "ask"))
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`, p.receive())
		p.send(answer(1, `"yes"`))
		require.Equal(t, answer("a", `"yes"`), p.receive())
		require.Zero(t, time.Since(begun))
		p.hangUp()
	})
}

func TestResponsesOfRequestsThatCameTogetherAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		h := &handler{methods: methods{"first": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			<-proceed
			return result(req, `"quick"`)
		}}}
		p := serve(t, h, nil)
		p.send(request(0, "first"))
		synctest.Wait()
		const sent = 100
		for i := 1; i < sent; i++ {
			p.send(request(i, "quick"))
		}
		close(proceed)
		synctest.Wait()
		require.LessOrEqual(t, len(p.wire.out), 2, "writes")
		for i := range sent {
			require.Equal(t, answer(i, `"quick"`), p.receive())
		}
		p.hangUp()
	})
}

func TestResponsesAreHeldForTheNextOnesUpTo500us(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		h := &handler{methods: methods{
			"first": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
				<-proceed
				return result(req, `"short"`)
			},
			"short": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
				time.Sleep(10 * time.Microsecond)
				return result(req, `"short"`)
			},
		}}
		p := serve(t, h, nil)
		p.send(request(0, "first"))
		synctest.Wait()
		const sent = 201
		for i := 1; i < sent; i++ {
			p.send(request(i, "short"))
		}
		begun := time.Now()
		close(proceed)
		var got string
		var writes []time.Duration // when each was made
		for strings.Count(got, "\n") < sent {
			got += <-p.wire.out
			writes = append(writes, time.Since(begun))
		}
		const between = 510 * time.Microsecond // 500, and what the request takes that is the last to wait
		for i := 1; i < len(writes); i++ {
			require.LessOrEqual(t, writes[i]-writes[i-1], between)
		}
		require.LessOrEqual(t, len(writes), 6, "201 responses in 2 ms")
		p.hangUp()
	})
}

// Responses that wait for those behind them are sent although these never come.
func TestHeldResponsesAreSent(t *testing.T) {
	for name, last := range map[string]string{
		"before a request that takes long": request(9, "block"),
		"before a cancelled request":       request(9, "cancelled"),
		"before a notification":            `{"jsonrpc":"2.0","method":"notifications/note"}`,
		"before a subscription":            request(9, "subscriptions/listen"),
		"before a handler that exits":      request(9, "exit"),
		"before garbage":                   "{",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{methods: methods{
					"exit": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
						runtime.Goexit()
						return nil
					},
				}}
				p := serve(t, h, nil)
				h.methods["cancelled"] = func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
					p.send(cancelOf(9))
					<-ctx.Done()
					return nil
				}
				begun := time.Now()
				p.send(request(1, "quick"), request(2, "quick"), last)
				require.Equal(t, answer(1, `"quick"`), p.receive())
				require.Equal(t, answer(2, `"quick"`), p.receive())
				require.LessOrEqual(t, time.Since(begun), time.Millisecond)
				p.stop()
				require.NoError(t, <-p.over)
			})
		})
	}
}

// Requests of any duration begin in the order in which they were sent. This runs in real time, so
// that the leader is replaced at any moment.
func TestRequestsBeginInOrderAlthoughLeadersChange(t *testing.T) {
	var mu sync.Mutex
	noted := 0
	h := &handler{methods: methods{
		"notifications/note": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			mu.Lock()
			noted++
			mu.Unlock()
			return nil
		},
		"count": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			mu.Lock()
			n := noted
			mu.Unlock()
			for begun, long := time.Now(), time.Duration(n%7)*300*time.Microsecond; time.Since(begun) < long; {
				runtime.Gosched()
			}
			return result(req, fmt.Sprint(n))
		},
	}}
	p := serve(t, h, nil)
	const sent = 400
	for i := range sent {
		if i%5 == 0 {
			p.send(`{"jsonrpc":"2.0","method":"notifications/note"}`)
		}
		p.send(request(i, "count"))
	}
	for range sent {
		line := p.receive()
		var id, n int
		_, err := fmt.Sscanf(strings.TrimPrefix(line, `{"jsonrpc":"2.0",`), `"id":%d,"result":%d}`, &id, &n)
		require.NoError(t, err, line)
		require.GreaterOrEqual(t, n, id/5+1, "request %d overtook a notification", id)
	}
	close(p.wire.in)
	require.NoError(t, <-p.over)
}
