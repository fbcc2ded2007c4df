package conn_test

import (
	"bytes"
	"context"
	"fmt"
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

func TestPeerThatNeverReadsIsDisconnected(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration
		want    time.Duration
		text    string
	}{
		{"by default", 0, 30 * time.Second, "closed, since the peer read nothing for 30s"},
		{"sooner", 2 * time.Second, 2 * time.Second, "closed, since the peer read nothing for 2s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{}
				p := serveOn(t, h, &conn.Options{WriteTimeout: test.timeout}, &wire{stuck: make(chan struct{})})
				begun := time.Now()
				p.send(request(1, "initialize"), request(2, "block"))
				err := <-p.over
				require.EqualError(t, err, test.text)
				require.InDelta(t, test.want.Seconds(), time.Since(begun).Seconds(), 0.1)
				require.Equal(t, int32(1), h.ended.Load())
			})
		})
	}
}

func TestPeerIsNotDisconnectedWithoutAWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveOn(t, &handler{}, &conn.Options{WriteTimeout: -1}, &wire{stuck: make(chan struct{})})
		p.send(request(1, "ping"))
		time.Sleep(time.Hour)
		close(p.wire.stuck)
		require.Equal(t, answer(1, `"ping"`), p.receive())
		p.hangUp()
	})
}

func TestSlowPeerIsNotDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 500<<10)
		h := &handler{methods: methods{"large": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return result(req, `"`+large+`"`)
		}, "stream": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				_, err := io.WriteString(w, `"`+large+`"`)
				return err
			}}
		}}}
		p := serveOn(t, h, nil, &wire{slow: 20 * time.Second})
		begun := time.Now()
		for i, method := range []string{"large", "stream"} {
			p.send(request(i, method))
			require.Equal(t, answer(i, `"`+large+`"`), p.receive())
		}
		require.Greater(t, time.Since(begun), 5*time.Minute)
		p.hangUp()
	})
}

// mailWire is a wire whose messages come with the name of their sender.
type mailWire struct {
	*wire
	ctx context.Context
}

type senderKey struct{}

func (w mailWire) Origin() conn.Origin {
	return conn.Origin{Context: w.ctx, Header: transport.Header{"Sender": {"me"}}}
}

func TestCallsHaveTheirOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan string, 1)
		h := &handler{methods: methods{"who": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			sender, _ := ctx.Value(senderKey{}).(string)
			seen <- sender + " " + peer.Header().Get("Sender") + " " + ctx.Value(serverKey{}).(string)
			if req.IsNotification() {
				return nil
			}
			<-ctx.Done()
			return result(req, `0`)
		}}}
		w := &wire{in: make(chan []byte, 10), errs: make(chan error), out: make(chan string, 10), closed: make(chan struct{})}
		mailed, cancel := context.WithCancel(context.WithValue(t.Context(), senderKey{}, "you"))
		over := make(chan error, 1)
		go func() {
			over <- conn.New(mailWire{w, mailed}, h, nil).Serve(context.WithValue(t.Context(), serverKey{}, "here"))
		}()
		p := &peer{t: t, wire: w}
		p.send(`{"jsonrpc":"2.0","method":"who"}`)
		require.Equal(t, "you me here", <-seen)
		p.send(request(1, "who"))
		require.Equal(t, "you me here", <-seen)
		cancel()
		p.silent() // the end of that context is not the end of the call
		p.send(cancelOf(1))
		p.silent()
		close(w.in)
		require.NoError(t, <-over)
	})
}

type serverKey struct{}

// A peer that reads nothing is read from until 1 MiB of responses wait. That holds for both ends: a
// server may flood its client with requests as well.
func TestNothingIsReadFromAPeerThatDoesNotReadItsResponses(t *testing.T) {
	id := strings.Repeat("x", 1000) // which each response repeats
	for name, message := range map[string]string{
		"pings":              `{"jsonrpc":"2.0","id":"` + id + `%d","method":"ping"}`,
		"calls":              `{"jsonrpc":"2.0","id":"` + id + `%d","method":"a"}`,
		"requests to refuse": `{"jsonrpc":"2.0","id":"` + id + `%d","method":""}`,
	} {
		for _, client := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", client ", client), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &wire{stuck: make(chan struct{})}
					p := serveOn(t, &handler{}, &conn.Options{Client: client, WriteTimeout: -1}, w)
					const sent = 10_000
					for i := range sent {
						p.send(fmt.Sprintf(message, i))
					}
					time.Sleep(time.Second)
					require.Greater(t, len(w.in), sent-2500)
					require.Less(t, len(w.in), sent-500)
					// It goes on when the peer reads, and nothing was lost.
					close(w.stuck)
					for range sent {
						require.Contains(t, p.receive(), `"id":"xxx`)
					}
					p.hangUp()
				})
			})
		}
	}
}

// The results of calls that are in flight by the time that reading stops are bounded, too.
func TestResultsOverTheLimitAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := &handler{methods: methods{"large": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			<-release
			return result(req, `"`+strings.Repeat("x", 100<<10)+`"`)
		}}}
		w := &wire{stuck: make(chan struct{})}
		p := serveOn(t, h, &conn.Options{MaxUnsentBytes: 250 << 10, WriteTimeout: -1}, w)
		for i := range 10 {
			p.send(request(i, "large"))
		}
		time.Sleep(time.Second)
		close(release)
		synctest.Wait()
		close(w.stuck)
		whole := 0
		for range 10 {
			line := p.receive()
			if strings.Contains(line, `"result"`) {
				whole++
			} else {
				require.Contains(t, line, `"error":{"code":-32603,"message":"busy: responses of 20`)
			}
		}
		require.Equal(t, 2, whole)
		p.hangUp()
	})
}
