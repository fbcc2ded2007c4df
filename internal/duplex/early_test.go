package duplex_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// early responds before it returns, and tries again in every way.
func early(t *testing.T) methods {
	return methods{"early": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		peer.(transport.EarlyResponder).RespondEarly(result(req, `"early"`))
		require.ErrorIs(t, peer.Notify(ctx, &jsonrpc.Request{Method: "note"}), transport.ErrClosed)
		peer.(transport.EarlyResponder).RespondEarly(result(req, `"again"`))
		time.Sleep(time.Hour)
		return result(req, `"late"`)
	}}
}

func TestAnEarlyResponseIsTheOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{methods: early(t)}, nil)
		begun := time.Now()
		p.send(request(1, "early"))
		require.Equal(t, answer(1, `"early"`), p.receive())
		require.Zero(t, time.Since(begun))
		p.send(request(1, "ping")) // the ID is free again
		require.Equal(t, answer(1, `"ping"`), p.receive())
		time.Sleep(2 * time.Hour)
		p.silent()
	})
}

func TestAnEarlyResponseIsPartOfItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{methods: early(t)}, nil)
		p.link.Session().SetVersion("2025-03-26")
		p.send("[" + request(1, "early") + "," + request(2, "ping") + "]")
		got := p.receive()
		require.Contains(t, got, answer(1, `"early"`))
		require.Contains(t, got, answer(2, `"ping"`))
		time.Sleep(2 * time.Hour)
		p.silent()
	})
}

func TestACancelledCallGetsNoEarlyResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{methods: methods{"wait": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			<-ctx.Done()
			peer.(transport.EarlyResponder).RespondEarly(result(req, `"early"`))
			return result(req, `"late"`)
		}}}, nil)
		p.send(request(1, "wait"))
		synctest.Wait()
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		time.Sleep(time.Second)
		p.silent()
	})
}
