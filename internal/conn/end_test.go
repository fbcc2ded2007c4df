package conn_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

type methods = map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response

// sleep answers after so much time, whatever becomes of its context.
func sleep(d time.Duration) func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		<-time.After(d)
		return result(req, `"slept"`)
	}
}

func TestTheEndLetsCallsFinish(t *testing.T) {
	for name, end := range map[string]func(p *peer){
		"of the input":   func(p *peer) { close(p.wire.in) },
		"of the context": func(p *peer) { p.stop() },
		"by Close":       func(p *peer) { p.link.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{methods: methods{"sleep": sleep(4 * time.Second)}}
				p := serve(t, h, nil)
				begun := time.Now()
				p.send(request(1, "sleep"), request(2, "subscriptions/listen"))
				synctest.Wait()
				end(p)
				require.Equal(t, answer(2, `"ended"`), p.receive())
				require.Less(t, time.Since(begun), 10*time.Millisecond, "a subscription does not hold up the end")
				require.Equal(t, answer(1, `"slept"`), p.receive())
				require.NoError(t, <-p.over)
				require.Equal(t, int32(1), h.ended.Load())
				p.silent()
			})
		})
	}
}

func TestCallsThatTakeTooLongAreCancelledAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{}, &conn.Options{DrainTimeout: 2 * time.Second})
		begun := time.Now()
		p.send(request(1, "block"))
		close(p.wire.in)
		require.Equal(t, answer(1, `"ended"`), p.receive())
		require.NoError(t, <-p.over)
		require.InDelta(t, 2, time.Since(begun).Seconds(), 0.1)
	})
}

func TestServeDoesNotWaitForStuckCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{methods: methods{"sleep": sleep(time.Hour)}}
		p := serve(t, h, nil)
		begun := time.Now()
		p.send(request(1, "sleep"))
		close(p.wire.in)
		require.NoError(t, <-p.over)
		require.InDelta(t, 6, time.Since(begun).Seconds(), 0.1)
		require.Equal(t, int32(1), h.ended.Load())
		// What it answers in the end goes nowhere.
		<-time.After(time.Hour)
		p.silent()
	})
}

func TestDisconnectCancelsAllCallsAtOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		read bool // whether reading fails, and not writing
		want string
	}{
		{"closed pipe", io.ErrClosedPipe, false, ""},
		{"closed pipe of the input", io.ErrClosedPipe, true, ""},
		{"broken pipe", syscall.EPIPE, false, ""},
		{"another failure", errors.New("disk full"), false, "disk full"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serve(t, &handler{}, nil)
				begun := time.Now()
				p.send(request(1, "block"))
				synctest.Wait()
				if test.read {
					p.wire.errs <- test.err
				} else {
					p.wire.broken.Store(&test.err)
					p.send(request(2, "ping"))
				}
				err := <-p.over
				if test.want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, test.want)
				}
				require.Less(t, time.Since(begun), 10*time.Millisecond)
				p.silent()
			})
		})
	}
}

func TestReadErrorsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{}, nil)
		p.wire.errs <- errors.New("bad sector")
		require.EqualError(t, <-p.over, "bad sector")
	})
}

func TestPeerThatDoesNotReadBlocksOnlyItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		note := &jsonrpc.Request{Method: "note", Params: []byte(`{"x":"` + strings.Repeat("x", 64<<10) + `"}`)}
		h := &handler{methods: methods{"flood": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			for peer.Notify(ctx, note) == nil && ctx.Err() == nil {
				told.Add(1)
			}
			return result(req, `0`)
		}}}
		w := &wire{stuck: make(chan struct{})}
		p := serveOn(t, h, nil, w)
		p.send(request(1, "flood"), request(2, "flood"), request(3, "block"))
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(t, int32(16), told.Load(), "what waits is bounded")
		require.EqualError(t, p.link.Session().Notify(t.Context(), note), "conn: dropped, since the peer does not read what waits for it")
		// Cancellations are still read.
		p.send(cancelOf(1), cancelOf(2), cancelOf(3))
		synctest.Wait()
		close(w.stuck)
		for range 16 {
			require.Contains(t, p.receive(), `"method":"note"`)
		}
		p.hangUp()
	})
}

func TestServeDoesNotWaitForAPeerThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveOn(t, &handler{}, nil, &wire{stuck: make(chan struct{})})
		begun := time.Now()
		p.send(request(1, "ping"))
		synctest.Wait()
		close(p.wire.in)
		require.NoError(t, <-p.over)
		require.Less(t, time.Since(begun), 7*time.Second)
	})
}

func TestTheSessionReachesThePeerOutsideCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{}, nil)
		require.NoError(t, p.link.Notify(t.Context(), &jsonrpc.Request{Method: "changed"}))
		require.Equal(t, `{"jsonrpc":"2.0","method":"changed"}`, p.receive())
		p.hangUp()
		require.ErrorIs(t, p.link.Session().Notify(t.Context(), &jsonrpc.Request{Method: "changed"}), transport.ErrClosed)
		_, err := p.link.Do(t.Context(), &jsonrpc.Request{Method: "ping"})
		require.ErrorIs(t, err, transport.ErrClosed)
	})
}

// The goroutine that writes also writes what others add meanwhile.
func TestResponsesAreGatheredWhileOneIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{stuck: make(chan struct{})}
		p := serveOn(t, &handler{}, nil, w)
		p.send(request(1, "a"))
		synctest.Wait()
		p.send(request(2, "b"), request(3, "c"), request(4, "d"))
		synctest.Wait()
		close(w.stuck)
		require.Equal(t, answer(1, `"a"`), p.receive())
		require.Empty(t, p.rest)
		got := []string{p.receive()}
		require.Len(t, p.rest, 2, "three responses in one write")
		got = append(got, p.rest...)
		require.ElementsMatch(t, []string{answer(2, `"b"`), answer(3, `"c"`), answer(4, `"d"`)}, got)
		p.rest = nil
		p.hangUp()
	})
}

// A server's program may print between the messages, and its requests may be none that this client
// answers.
func TestClientDoesNotAnswerInvalidMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{methods: methods{"ignored": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response { return nil }}}
		p := serve(t, h, &conn.Options{Client: true})
		p.link.Session().SetVersion("2025-03-26")
		p.send("starting...", request(1, "ignored"), `[`+request(2, "ignored")+`]`)
		p.silent()
		p.send(request(3, "ping"))
		require.Equal(t, answer(3, `"ping"`), p.receive())

		answered := make(chan *jsonrpc.Response, 1)
		go func() {
			resp, err := p.link.Do(t.Context(), &jsonrpc.Request{ID: jsonrpc.StringID("mine"), Method: "ask"})
			require.NoError(t, err)
			answered <- resp
		}()
		require.Equal(t, request("mine", "ask"), p.receive())
		p.send(answer("mine", `1`))
		require.Equal(t, `1`, string((<-answered).Result))
		p.hangUp()
	})
}

// What runtime.Goexit ends, for instance testing.T.FailNow in a handler, is the goroutine of
// the reader.
func TestCallGetsAnErrorIfItsHandlerEndsTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes []string
		exit := func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			runtime.Goexit()
			return nil
		}
		h := &handler{methods: map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response{
			"exit":               exit,
			"notifications/exit": exit,
			"notifications/note": func(_ context.Context, n *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
				notes = append(notes, n.Method)
				return nil
			},
			"initialize": func(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
				peer.Session().SetVersion("2025-03-26")
				return result(req, `"agreed"`)
			},
		}}
		p := serve(t, h, &conn.Options{Logger: slog.New(slog.DiscardHandler)})
		p.send(request(1, "initialize"))
		require.Equal(t, answer(1, `"agreed"`), p.receive())
		for id := 2; id < 20; id++ {
			p.send(request(id, "exit"))
			require.Equal(t, failure(id, -32603, "internal error"), p.receive())
		}
		p.send(`{"jsonrpc":"2.0","method":"notifications/exit"}`, `{"jsonrpc":"2.0","method":"notifications/note"}`)
		synctest.Wait()
		require.Equal(t, []string{"notifications/note"}, notes)
		p.send("[" + request(20, "exit") + "]")
		require.Equal(t, "["+failure(20, -32603, "internal error")+"]", p.receive())
		p.send(request(21, "ping"))
		require.Equal(t, answer(21, `"ping"`), p.receive())
		p.hangUp()
	})
}

func TestCancellationsEndCallsWhileTheyAreDrained(t *testing.T) {
	for name, sent := range map[string][]string{
		"alone":      {cancelOf(1), request(3, "ping"), cancelOf(2)},
		"in a batch": {`[` + cancelOf(1) + `,` + request(3, "ping") + `,` + cancelOf(2) + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serve(t, &handler{}, nil)
				p.link.Session().SetVersion("2025-03-26")
				begun := time.Now()
				p.send(request(1, "block"), request(2, "block"))
				synctest.Wait()
				p.stop()
				synctest.Wait()
				p.send(sent...)
				require.NoError(t, <-p.over)
				require.Zero(t, time.Since(begun))
				p.silent()
			})
		})
	}
}
