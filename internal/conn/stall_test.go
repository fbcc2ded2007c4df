package conn_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

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
