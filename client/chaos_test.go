package client_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// chaosCalls is the number of calls in each of the two versions; a tenth of it with the race
// detector, or unless long tests run.
const chaosCalls = 5_000

// Ledger books numbers and counts how often it books each.
type Ledger struct {
	_ struct {
		Book mcpkit.Tool
		Show mcpkit.Tool `hints:"readonly"`
	}

	mu     sync.Mutex
	booked map[int]int // guarded by mu
}

type entry struct {
	Number int `json:"number" validate:"required"`
}

// Book books a number and reports progress.
func (l *Ledger) Book(call *mcpkit.Call, in entry) entry {
	l.mu.Lock()
	l.booked[in.Number]++
	l.mu.Unlock()
	for step := range in.Number % 3 {
		call.Progress(float64(step+1), 0, "")
	}
	return in
}

// Show returns the number.
func (l *Ledger) Show(in entry) entry { return in }

// faults are the faults of the network and the server. One seed determines them.
type faults struct {
	on atomic.Bool

	mu   sync.Mutex
	dice *rand.Rand // guarded by mu

	resets, losses atomic.Int64
}

func (f *faults) roll(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.IntN(n)
}

// listener resets each connection after a random number of bytes, in the middle of a message.
type listener struct {
	net.Listener
	faults *faults
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r := &resetting{Conn: c, faults: l.faults}
	r.left.Store(int64(500 + l.faults.roll(8_000)))
	return r, nil
}

type resetting struct {
	net.Conn
	faults *faults
	left   atomic.Int64
}

// spend counts n bytes, and resets the connection when it has carried all that it may.
func (c *resetting) spend(n int) int {
	left := c.left.Add(int64(-n))
	if left > 0 || !c.faults.on.Load() {
		return n
	}
	if left+int64(n) > 0 {
		c.faults.resets.Add(1)
	}
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	_ = c.Conn.Close()
	return max(0, n+int(left))
}

func (c *resetting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.spend(n) < n {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *resetting) Write(p []byte) (int, error) {
	// Write the rest that the connection may carry, so that messages break anywhere.
	if part := c.left.Load(); part < int64(len(p)) && c.faults.on.Load() {
		n, _ := c.Conn.Write(p[:max(0, part)])
		c.spend(len(p))
		return n, net.ErrClosed
	}
	c.spend(len(p))
	return c.Conn.Write(p)
}

// forgetful ends random sessions without telling the client.
type forgetful struct {
	http.Handler
	faults *faults
}

func (h forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if id := r.Header.Get("Mcp-Session-Id"); id != "" && r.Method == http.MethodPost && h.faults.on.Load() && h.faults.roll(50) == 0 {
		end := r.Clone(r.Context())
		end.Method, end.Body, end.ContentLength = http.MethodDelete, http.NoBody, 0
		ended := httptest.NewRecorder()
		h.Handler.ServeHTTP(ended, end)
		if ended.Code == http.StatusNoContent {
			h.faults.losses.Add(1)
		}
	}
	h.Handler.ServeHTTP(w, r)
}

// Calls are cancelled, connections are reset and sessions end. Each call ends once, with its own
// result or an error; no booking runs twice; no goroutine or file descriptor is left.
func TestTenThousandCallsInChaos(t *testing.T) {
	calls := chaosCalls
	if raceDetector || !testkit.LongTests() {
		calls /= 10
	}
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			before, others := descriptors(t), goleak.IgnoreCurrent()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			inChaos(t, v, calls, seed)
			testkit.VerifyNone(t, others)
			require.LessOrEqual(t, descriptors(t), before, "file descriptors")
		})
	}
}

func inChaos(t *testing.T, v protocol.Version, calls int, seed uint64) {
	f := &faults{dice: rand.New(rand.NewPCG(seed, 1))}
	ledger := &Ledger{booked: map[int]int{}}
	srv, err := mcpkit.New(ledger, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	h := streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
	web := httptest.NewUnstartedServer(forgetful{h, f})
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.Listener = listener{web.Listener, f}
	web.Start()

	network := &http.Transport{MaxIdleConnsPerHost: 32}
	c, err := client.Dial(t.Context(), web.URL, client.Version(v), client.HTTPClient(&http.Client{Transport: network}),
		client.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	f.on.Store(true)

	const workers = 16
	var done, good, cancelled, wrong atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		dice := rand.New(rand.NewPCG(seed, uint64(w+2)))
		all.Go(func() {
			for n := w + 1; n <= calls; n += workers {
				err := callInChaos(t.Context(), c, n, dice)
				done.Add(1)
				switch {
				case err == nil:
					good.Add(1)
				case errors.Is(err, errWrongResult):
					wrong.Add(1)
				case errors.Is(err, context.Canceled):
					cancelled.Add(1)
				}
			}
		})
	}
	all.Wait()
	f.on.Store(false)

	require.EqualValues(t, calls, done.Load())
	require.Zero(t, wrong.Load())
	require.Greater(t, good.Load(), int64(calls/2))
	require.Positive(t, cancelled.Load())
	require.Positive(t, f.resets.Load())
	if !v.Modern() {
		require.Positive(t, f.losses.Load())
	}
	t.Logf("%d good, %d cancelled, %d resets, %d sessions lost", good.Load(), cancelled.Load(), f.resets.Load(), f.losses.Load())
	require.NoError(t, c.Ping(t.Context()), "the client works without faults")
	require.NoError(t, c.Close())
	network.CloseIdleConnections()
	require.NoError(t, h.Shutdown(t.Context()))
	web.Close()
	require.NoError(t, srv.Close())
	for n, times := range ledger.booked {
		require.Equal(t, 1, times, "how often %d was booked", n)
	}
}

var errWrongResult = errors.New("a call got the result of another")

// callInChaos makes one call, which it may cancel, and returns its error.
func callInChaos(ctx context.Context, c *client.Client, n int, dice *rand.Rand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if dice.IntN(5) == 0 {
		cancelling := time.AfterFunc(time.Duration(dice.IntN(2_000))*time.Microsecond, cancel)
		defer cancelling.Stop()
	}
	tool := "book"
	if n%4 == 0 {
		tool = "show"
	}
	var opts []client.CallOption
	if n%2 == 0 {
		opts = append(opts, client.OnProgress(func(*protocol.ProgressParams) {}))
	}
	out, err := client.Call[entry](ctx, c, tool, entry{n}, opts...)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err == nil && out.Number != n:
		return errWrongResult
	}
	return err
}

func init() {
	children["mortal"] = func() int {
		ledger := &Ledger{booked: map[int]int{}}
		srv := mcpkit.MustNew(ledger, mcpkit.Logger(slog.New(slog.DiscardHandler)))
		srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
			var calls atomic.Int64
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				if calls.Add(1) == 200 {
					os.Exit(7)
				}
				return next(ctx, call)
			}
		})
		_ = srv.Serve(context.Background())
		return 0
	}
}

// descriptors returns how many sockets and pipes this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	open := 0
	for _, link := range links {
		to, err := os.Readlink(link)
		if err == nil && (strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "pipe:")) {
			open++
		}
	}
	return open
}
