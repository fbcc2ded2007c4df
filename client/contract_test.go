package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// Queue has calls that end in the order that the test chooses.
type Queue struct {
	begun chan int

	mu   sync.Mutex
	turn map[int]chan struct{} // closed when the call may end; guarded by mu
}

func newQueue() *Queue { return &Queue{begun: make(chan int, 1000), turn: map[int]chan struct{}{}} }

func (q *Queue) of(n int) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn[n] == nil {
		q.turn[n] = make(chan struct{})
	}
	return q.turn[n]
}

// end lets all calls end. Legacy calls continue when their client has disconnected.
func (q *Queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, turn := range q.turn {
		select {
		case <-turn:
		default:
			close(turn)
		}
	}
}

// Turn returns when the test says so.
func (q *Queue) Turn(ctx context.Context, in struct {
	N int `json:"n"`
}) (int, error) {
	q.begun <- in.N
	select {
	case <-q.of(in.N):
		return in.N, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Steps reports progress N times.
func (q *Queue) Steps(call *mcpkit.Call, in struct {
	N int `json:"n"`
}) string {
	for i := range in.N {
		call.Progress(float64(i+1), float64(in.N), "")
	}
	return "done"
}

// Say logs N messages.
func (q *Queue) Say(ctx context.Context, log *slog.Logger, in struct {
	N int `json:"n"`
}) string {
	for i := range in.N {
		log.InfoContext(ctx, "said", "i", i)
	}
	return "done"
}

// Large returns N bytes.
func (q *Queue) Large(in struct {
	N int `json:"n"`
}) string {
	return strings.Repeat("x", in.N)
}

// An endpoint serves a handler on one transport. The function die ends it like the failure of its
// machine.
type endpoint struct {
	name   string
	modern bool // carries modern versions
	serve  func(t *testing.T, h transport.Handler) (target any, die func())
}

var endpoints = []endpoint{
	{"http", true, func(t *testing.T, h transport.Handler) (any, func()) {
		s := httptest.NewServer(streamable.NewHandler(h, &streamable.Options{Logger: slog.New(slog.DiscardHandler)}))
		return s.URL, dying(t, s)
	}},
	{"websocket", true, func(t *testing.T, h transport.Handler) (any, func()) {
		s := httptest.NewServer(websocket.NewHandler(h, &websocket.Options{Logger: slog.New(slog.DiscardHandler)}))
		handler := s.Config.Handler.(*websocket.Handler)
		return "ws" + strings.TrimPrefix(s.URL, "http"), sync.OnceFunc(func() { // net/http no longer knows the connections
			handler.Close()
			s.Close()
		})
	}},
	{"sse", false, func(t *testing.T, h transport.Handler) (any, func()) {
		s := httptest.NewServer(sse.NewHandler(h, &sse.Options{Logger: slog.New(slog.DiscardHandler)}))
		return client.HTTPSSE(s.URL), dying(t, s)
	}},
	{"stream", true, func(t *testing.T, h transport.Handler) (any, func()) {
		ours, theirs := net.Pipe()
		over := make(chan error, 1)
		go func() { over <- stdio.NewIO(theirs, theirs, nil).Serve(context.Background(), h) }()
		t.Cleanup(func() { require.NoError(t, <-over) })
		return ours, func() { _ = theirs.Close() }
	}},
}

func dying(t *testing.T, s *httptest.Server) func() {
	die := sync.OnceFunc(func() {
		_ = s.Listener.Close()
		s.CloseClientConnections()
	})
	t.Cleanup(func() {
		die()
		s.Close()
	})
	return die
}

// onEveryEnd runs a test on every transport, in the newest legacy and the newest modern version
// that it carries.
func onEveryEnd(t *testing.T, fact func(t *testing.T, q *Queue, c *client.Client, die func()), opts ...client.DialOption) {
	for _, e := range endpoints {
		for _, v := range []protocol.Version{protocol.LatestLegacy, protocol.Latest} {
			if v.Modern() && !e.modern {
				continue // HTTP+SSE supports only legacy versions
			}
			t.Run(e.name+"/"+string(v), func(t *testing.T) {
				q := newQueue()
				srv := mcpkit.MustNew(q, mcpkit.Logger(slog.New(slog.DiscardHandler)))
				target, die := e.serve(t, srv)
				t.Cleanup(die)
				t.Cleanup(q.end)
				c, err := client.Dial(t.Context(), target, append([]client.DialOption{client.Version(v), patient, client.Logger(slog.New(slog.DiscardHandler))}, opts...)...)
				require.NoError(t, err)
				t.Cleanup(func() { _ = c.Close() }) // the error may be that the server died
				fact(t, q, c, die)
			})
		}
	}
}

func turn(ctx context.Context, c *client.Client, n int) error {
	got, err := client.Call[int](ctx, c, "turn", map[string]int{"n": n})
	if err == nil && got != n {
		err = fmt.Errorf("call %d was answered with %d", n, got)
	}
	return err
}

func TestResponsesArriveInAnyOrder(t *testing.T) {
	t.Parallel()
	onEveryEnd(t, func(t *testing.T, q *Queue, c *client.Client, _ func()) {
		const n = 50
		errs := make(chan error, n)
		for i := range n {
			go func() { errs <- turn(t.Context(), c, i) }()
		}
		for range n {
			<-q.begun // all run at the same time
		}
		for i := range n {
			close(q.of(n - 1 - i))
		}
		for range n {
			require.NoError(t, <-errs)
		}
	})
}

func TestAServerThatDiesFailsEachCallOnce(t *testing.T) {
	t.Parallel()
	onEveryEnd(t, func(t *testing.T, q *Queue, c *client.Client, die func()) {
		const n = 20
		errs := make(chan error, 2*n)
		for i := range n {
			go func() { errs <- turn(t.Context(), c, i) }()
		}
		for range n {
			<-q.begun
		}
		die()
		for range n {
			err := <-errs
			require.Error(t, err)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "the client notices")
		}
		require.Empty(t, errs)
		require.Error(t, turn(t.Context(), c, n), "later calls fail too")
	}, client.Timeout(20*time.Second))
}

// A legacy subscription has no request that fails with the connection.
func TestALegacySubscriptionEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	onEveryEnd(t, func(t *testing.T, _ *Queue, c *client.Client, die func()) {
		if c.Version().Modern() || strings.Contains(t.Name(), "/http/") {
			return // modern subscriptions are requests, and over HTTP the client resumes the stream (see below)
		}
		sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
		require.NoError(t, err)
		die()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		_, err = sub.Next(ctx)
		require.ErrorIs(t, err, transport.ErrClosed)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		_, err = sub.Next(ctx)
		require.ErrorIs(t, err, transport.ErrClosed, "again")
		require.NoError(t, sub.Close())
		_, err = c.Listen(ctx, protocol.SubscriptionFilter{ToolsListChanged: true})
		require.ErrorIs(t, err, transport.ErrClosed)
	})
}

func TestALegacySubscriptionEndsWithItsProgram(t *testing.T) {
	c, err := client.Dial(t.Context(), child("mortal"), client.Version(protocol.LatestLegacy), client.Logger(slog.New(slog.DiscardHandler)), client.Stderr(nil))
	require.NoError(t, err)
	t.Cleanup(func() { require.Error(t, c.Close()) })
	sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
	require.NoError(t, err)
	for err == nil {
		_, err = client.Call[entry](t.Context(), c, "show", entry{1})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err = sub.Next(ctx)
	require.EqualError(t, err, "transport: closed: the server ended (exit status 7)")
}

// A roundTripper answers without a network.
type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestALegacySubscriptionOverHTTPEndsWhenItsStreamCannotBeResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		f := &flooder{}
		c, err := client.Dial(t.Context(), "http://example.com/mcp", client.Version(protocol.V20251125), client.Logger(slog.New(slog.DiscardHandler)),
			client.HTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodGet && dead.Load() {
					return nil, errors.New("connection refused")
				}
				ctx, cancel := context.WithTimeout(r.Context(), time.Hour) // after which the stream ends
				context.AfterFunc(ctx, cancel)
				return f.RoundTrip(r.WithContext(ctx))
			})}))
		require.NoError(t, err)
		defer c.Close()
		sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		_, err = sub.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "streams that end after an hour are resumed")
		dead.Store(true)
		_, err = sub.Next(t.Context())
		require.EqualError(t, err, "client: the stream of the session ended 6 times without an event; call Listen again")
		dead.Store(false)
		sub, err = c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
		require.NoError(t, err)
		require.NoError(t, sub.Close())
	})
}

func TestAResponseThatIsTooLargeFailsItsCall(t *testing.T) {
	t.Parallel()
	onEveryEnd(t, func(t *testing.T, _ *Queue, c *client.Client, _ func()) {
		got, err := client.Call[string](t.Context(), c, "large", map[string]int{"n": 8 << 10})
		require.NoError(t, err)
		require.Len(t, got, 8<<10)
		_, err = client.Call[string](t.Context(), c, "large", map[string]int{"n": 64 << 10})
		require.ErrorContains(t, err, "larger than 32768 bytes")
	}, client.MaxMessageBytes(32<<10))
}

func TestProgressHandlersMayCallTheServer(t *testing.T) {
	t.Parallel()
	onEveryEnd(t, func(t *testing.T, _ *Queue, c *client.Client, _ func()) {
		steps := func(heard func(*protocol.ProgressParams)) error {
			_, err := client.Call[string](t.Context(), c, "steps", map[string]int{"n": 3}, client.OnProgress(heard))
			return err
		}
		outer, inner := 0, 0
		require.NoError(t, steps(func(*protocol.ProgressParams) {
			outer++
			if err := steps(func(*protocol.ProgressParams) { inner++ }); err != nil {
				t.Error(err)
			}
		}))
		require.Equal(t, 3, outer)
		require.Equal(t, 9, inner)
	})
}
