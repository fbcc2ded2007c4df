package conn_test

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// endless streams a result that does not end, of which at most so many bytes are held, and counts its
// bytes.
func endless(written *int, most int) func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
		return &jsonrpc.Response{MaxHeld: most, Stream: func(w io.Writer) error {
			block := bytes.Repeat([]byte{'1'}, 64<<10)
			for {
				if _, err := w.Write(block); err != nil {
					return err
				}
				*written += len(block)
			}
		}}
	}
}

func TestStreamedResultsAreSentWhenTheyAreComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{methods: methods{"slow": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				for _, part := range []string{`[1`, `,2`, `]`} {
					time.Sleep(29 * time.Second)
					if _, err := io.WriteString(w, part); err != nil || ctx.Err() != nil {
						return ctx.Err()
					}
				}
				return nil
			}}
		}}}, nil)
		p.send(request(1, "slow"), request(2, "ping"))
		require.Equal(t, answer(2, `"ping"`), p.receive(), "others are answered meanwhile")
		require.Equal(t, answer(1, `[1,2]`), p.receive())
		p.hangUp()
	})
}

func TestNothingIsSentOfAStreamedResultThatThePeerCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		p := serve(t, &handler{methods: methods{"drip": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				_, _ = io.WriteString(w, `"drop`)
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return ctx.Err()
			}}
		}}}, nil)
		for range 2 { // the ID is free again
			p.send(request(1, "drip"))
			synctest.Wait()
			p.send(cancelOf(1))
			require.ErrorIs(t, <-causes, conn.ErrCancelled)
			synctest.Wait()
			p.send(request(2, "ping"))
			require.Equal(t, answer(2, `"ping"`), p.receive())
		}
		p.hangUp()
	})
}

// What is collected of a result is not owed to the peer yet: the peer may cancel it.
func TestMessagesAreReadWhileALargeResultIsCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{methods: methods{"stuck": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				if _, err := w.Write(bytes.Repeat([]byte{'1'}, 2*conn.StopReadingAt)); err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}}
		}}}, nil)
		p.send(request(1, "stuck"))
		synctest.Wait()
		p.send(request(2, "ping"))
		require.Equal(t, answer(2, `"ping"`), p.receive())
		p.send(cancelOf(1))
		p.hangUp()
	})
}

func TestLargerStreamedResultsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		p := serve(t, &handler{methods: methods{"endless": endless(&written, 1<<20)}}, &conn.Options{MaxUnsentBytes: 1 << 19})
		for id := range 30 { // what one had reserved is free for the next
			p.send(request(id, "endless"))
			require.Equal(t, failure(id, -32603, "the result is larger than 1048576 bytes; "+
				"raise mcpkit.MaxResultBytes, or serve it over Streamable HTTP, which sends it while it is read"), p.receive())
		}
		require.LessOrEqual(t, written, 30<<20)
		p.hangUp()
	})
}

func TestStreamedResultsShareTheRoomForResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		p := serve(t, &handler{methods: methods{"endless": endless(&written, 0), "stuck": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				_, _ = io.WriteString(w, `"begun`)
				<-ctx.Done()
				return ctx.Err()
			}}
		}}}, &conn.Options{MaxUnsentBytes: 1 << 20})
		p.link.Session().SetVersion("2025-03-26")
		p.send(request(0, "stuck"))
		synctest.Wait()
		for _, batch := range []func(string) string{func(s string) string { return s }, func(s string) string { return "[" + s + "]" }} {
			p.send(batch(request(1, "endless")))
			require.Equal(t, batch(failure(1, -32603, conn.ErrNoRoom.Message)), p.receive())
			require.LessOrEqual(t, written, 2<<20)
			p.send(batch(request(2, "ping"))) // what it had reserved is free again
			require.Equal(t, batch(answer(2, `"ping"`)), p.receive())
		}
		p.send(cancelOf(0))
		p.hangUp()
	})
}

func TestStreamedResultsHaveTheContextOfTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{methods: methods{"living": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				_, err := io.WriteString(w, `"alive"`)
				return err
			}}
		}, "broken": streamed("[1,", jsonrpc.Errorf(-32000, "for the caller"))}}, nil)
		p.link.Session().SetVersion("2025-03-26")
		p.send(`[` + request(1, "living") + `]`)
		require.Equal(t, `[`+answer(1, `"alive"`)+`]`, p.receive())
		p.send(`[` + request(1, "broken") + `]`)
		require.Equal(t, `[`+failure(1, -32000, "for the caller")+`]`, p.receive())
		p.hangUp()
	})
}

func TestAHeaderAloneAllocatesLittle(t *testing.T) {
	s := conn.NewStream(strings.NewReader("Content-Length: 2000000000\r\n\r\n{}"), io.Discard,
		conn.StreamOptions{Framing: conn.ContentLength, MaxMessageBytes: 1 << 20})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.Read()
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}
