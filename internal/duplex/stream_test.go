package duplex_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// dripping begins a result and waits for its context to end, whose cause it sends on.
func dripping(causes chan<- error) methods {
	return methods{"drip": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		return &jsonrpc.Response{Stream: func(w io.Writer) error {
			if ctx.Err() != nil {
				return errors.New("the call was over before its answer was there")
			}
			if _, err := io.WriteString(w, `"drop`); err != nil {
				return err
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return jsonrpc.Errorf(-32000, "for the caller")
		}}
	}}
}

const dripped = `{"jsonrpc":"2.0","id":1,"result":"drop` + "\x18"

func TestStreamedResultsAreInFlightUntilTheyEnd(t *testing.T) {
	for _, test := range []struct {
		name    string
		opts    duplex.Options
		cancels bool
		want    string
	}{
		{"the peer cancels", duplex.Options{WriteTimeout: -1}, true, "cancelled by the peer"},
		{"it gives nothing", duplex.Options{}, false, "given up, since the rest of the result did not come within 30s"},
		{"it gives nothing for a time that is set", duplex.Options{WriteTimeout: time.Second}, false, "given up, since the rest of the result did not come within 1s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				causes := make(chan error, 1)
				p := serve(t, &handler{methods: dripping(causes)}, &test.opts)
				for range 2 { // the ID is free again
					p.send(request(1, "drip"))
					synctest.Wait()
					p.send(request(2, "ping"))
					if test.cancels {
						time.Sleep(time.Hour)
						p.send(cancelOf(1))
					}
					require.Equal(t, dripped, p.receive())
					require.Equal(t, failure(1, -32000, "for the caller"), p.receive())
					require.Equal(t, answer(2, `"ping"`), p.receive())
					require.EqualError(t, <-causes, test.want)
				}
				p.hangUp()
			})
		})
	}
}

func TestStreamWithProgressContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{methods: methods{"slow": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				for _, part := range []string{`[1`, `,2`, `,3`, `]`} {
					time.Sleep(29 * time.Second)
					if _, err := io.WriteString(w, part); err != nil || ctx.Err() != nil {
						return errors.Join(err, ctx.Err())
					}
				}
				return nil
			}}
		}}}, nil)
		p.send(request(1, "slow"))
		require.Equal(t, answer(1, `[1,2,3]`), p.receive())
		p.hangUp()
	})
}

func TestEndlessResultInABatchIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		p := serve(t, &handler{methods: methods{"endless": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				block := bytes.Repeat([]byte{'1'}, 64<<10)
				for {
					if _, err := w.Write(block); err != nil {
						return err
					}
					written += len(block)
				}
			}}
		}}}, &duplex.Options{MaxUnsentBytes: 1 << 20})
		p.link.Session().SetVersion("2025-03-26")
		p.send(`[` + request(1, "endless") + `]`)
		require.Equal(t, `[`+failure(1, -32603, "the result is too large to be held in memory; send its request alone, and read the response as it comes")+`]`, p.receive())
		require.LessOrEqual(t, written, 1<<20)
		p.send(`[` + request(2, "ping") + `]`) // what it had reserved is free again
		require.Equal(t, `[`+answer(2, `"ping"`)+`]`, p.receive())
		p.hangUp()
	})
}

func TestStreamedResultsInBatchesHaveTheContextOfTheirCall(t *testing.T) {
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
