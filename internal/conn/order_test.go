package conn_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

const slowNote, quickNote = `{"jsonrpc":"2.0","method":"slow"}`, `{"jsonrpc":"2.0","method":"quick"}`

// recorded answers "order" with the methods of the notifications that were handled before it.
func recorded(slow func(ctx context.Context, peer transport.Peer)) *handler {
	var mu sync.Mutex
	var heard string
	hear := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		heard += name
	}
	return &handler{methods: methods{
		"slow": func(ctx context.Context, _ *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			slow(ctx, peer)
			hear("slow ")
			return nil
		},
		"quick": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			hear("quick ")
			return nil
		},
		"order": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			mu.Lock()
			defer mu.Unlock()
			return result(req, `"`+heard+`"`)
		},
	}}
}

func TestARequestWaitsForTheNotificationsBeforeItHoweverLongTheyTake(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2025-03-26"} {
		served(t, recorded(func(context.Context, transport.Peer) { time.Sleep(time.Hour) }), nil, func(t *testing.T, p *peer) {
			p.link.Session().SetVersion(version)
			begun := time.Now()
			p.send(slowNote, quickNote, request(1, "order"))
			if version == "2025-03-26" {
				p.send(`[` + slowNote + `,` + request(2, "order") + `]`)
			}
			require.Equal(t, answer(1, `"slow quick "`), p.receive())
			require.Equal(t, time.Hour, time.Since(begun))
			if version == "2025-03-26" {
				require.Equal(t, `[`+answer(2, `"slow quick slow "`)+`]`, p.receive())
			}
		})
	}
}

func TestAPingDoesNotWaitForNotifications(t *testing.T) {
	served(t, recorded(func(context.Context, transport.Peer) { time.Sleep(time.Second) }), nil, func(t *testing.T, p *peer) {
		begun := time.Now()
		p.send(slowNote, request(1, "ping"))
		require.Equal(t, answer(1, `"ping"`), p.receive())
		require.Zero(t, time.Since(begun))
	})
}

// Otherwise a peer that answers questions only between its requests would never be answered.
func TestARequestDoesNotWaitForANotificationThatWaitsForThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, recorded(func(ctx context.Context, peer transport.Peer) {
			_, err := peer.Call(ctx, &jsonrpc.Request{Method: "roots/list"})
			require.NoError(t, err)
		}), nil)
		p.link.Session().SetVersion("2025-11-25")
		p.send(slowNote, quickNote, request(1, "order"))
		require.ElementsMatch(t, []string{request(1, "roots/list"), answer(1, `"quick "`)}, []string{p.receive(), p.receive()})
		p.send(answer(1, `{}`))
		synctest.Wait()
		p.send(request(2, "order"))
		require.Equal(t, answer(2, `"quick slow "`), p.receive())
		p.hangUp()
	})
}

// A client's handlers of notifications may themselves wait for an answer for which the server asks
// something first.
func TestResponsesOfAClientDoNotWaitForNotifications(t *testing.T) {
	served(t, recorded(func(context.Context, transport.Peer) { time.Sleep(time.Second) }), &conn.Options{Client: true}, func(t *testing.T, p *peer) {
		p.send(slowNote, request(1, "order"))
		require.Equal(t, answer(1, `""`), p.receive())
	})
}

func TestCallCancelledBeforeItStartsNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := recorded(func(context.Context, transport.Peer) { time.Sleep(time.Second) })
		h.methods["never"] = func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			require.Fail(t, "the handler was called")
			return nil
		}
		p := serve(t, h, nil)
		p.send(slowNote, request(1, "never"), cancelOf(1), request(2, "order"))
		require.Equal(t, answer(2, `"slow "`), p.receive())
		p.hangUp()
	})
}
