package proxy_test

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/proxy"
)

// switched returns a server that is the proxy of a Switch, which has no remote server yet.
func switched(t *testing.T, sw *proxy.Switch, opts ...proxy.Option) *mcpkit.Server {
	t.Helper()
	srv := proxy.MustNew(sw, append([]proxy.Option{proxy.Logger(silent), proxy.Dial(client.Timeout(0), client.Logger(silent), client.Stderr(io.Discard))}, opts...)...)
	require.NoError(t, srv.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return srv
}

// numbered is a server whose name and tool tell which one it is.
func numbered(n string) *mcpkit.Server {
	srv := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.Name("shop", n), mcpkit.Instructions("This is "+n))
	say := func() string { return n }
	if err := srv.Add(mcpkit.NewTool("which", say), mcpkit.NewTool("only_in_"+n, say)); err != nil {
		panic(err)
	}
	return srv
}

func TestASwitchReplacesTheRemoteServer(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			var sw proxy.Switch
			srv := switched(t, &sw)
			c := dial(t, srv, v)
			changes, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
			require.NoError(t, err)
			defer changes.Close()
			for tool, err := range c.Tools(t.Context()) {
				require.NoError(t, err)
				t.Errorf("it has the tool %q before it has a remote server", tool.Name)
			}
			for _, n := range []string{"one", "two"} {
				require.NoError(t, sw.Connect(t.Context(), numbered(n)))
				_, err = changes.Next(t.Context())
				require.NoError(t, err)
				got, err := client.Call[string](t.Context(), c, "only_in_"+n, nil)
				require.NoError(t, err)
				require.Equal(t, n, got)
				got, err = client.Call[string](t.Context(), c, "which", nil)
				require.NoError(t, err)
				require.Equal(t, n, got)
				later := dial(t, srv, v)
				require.Equal(t, protocol.Implementation{Name: "shop", Version: n}, later.Server(), "it says what the remote server says")
				require.Equal(t, "This is "+n, later.Instructions())
			}
			_, err = c.CallTool(t.Context(), "only_in_one", nil)
			require.ErrorContains(t, err, `unknown tool "only_in_one"`)
		})
	}
}

func TestWhatASwitchCannotReachChangesNothing(t *testing.T) {
	var sw proxy.Switch
	require.EqualError(t, sw.Connect(t.Context(), numbered("one")), "proxy: Switch.Connect: the proxy has not started")
	srv := switched(t, &sw)
	c := dial(t, srv, protocol.V20260728)
	require.ErrorContains(t, sw.Connect(t.Context(), client.Command(os.Args[0], "-test.run", "^$")), "proxy: client: ")
	require.NoError(t, sw.Connect(t.Context(), numbered("one")))
	require.ErrorContains(t, sw.Connect(t.Context(), "no-such-program-here"), "executable file not found")
	got, err := client.Call[string](t.Context(), c, "only_in_one", nil)
	require.NoError(t, err)
	require.Equal(t, "one", got)
	_, err = proxy.New(&sw)
	require.EqualError(t, err, "proxy: the Switch belongs to another proxy; each needs its own")
}

func TestAClosedProxyDoesNotSwitch(t *testing.T) {
	var sw proxy.Switch
	srv := switched(t, &sw)
	require.NoError(t, sw.Connect(t.Context(), numbered("one")))
	require.NoError(t, srv.Close())
	require.ErrorIs(t, sw.Connect(t.Context(), numbered("two")), context.Canceled)
}

func TestAProcessBehindASwitchIsStartedAgain(t *testing.T) {
	var sw proxy.Switch
	c := dial(t, switched(t, &sw), protocol.V20260728)
	require.NoError(t, sw.Connect(t.Context(), numbered("one")))
	require.NoError(t, sw.Connect(t.Context(), client.Command(os.Args[0], asChild)))
	_, err := c.CallTool(t.Context(), "crash", nil)
	require.ErrorContains(t, err, "was lost")
	got, err := client.Call[[]int](t.Context(), c, "count", nil)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, got)
}

// slow has a tool that runs until release is closed.
type slow struct {
	begun, release chan struct{}
}

func (s *slow) server() *mcpkit.Server {
	srv := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.ToolTimeout(0))
	if err := srv.Add(mcpkit.NewTool("slow", func(ctx context.Context) (string, error) {
		s.begun <- struct{}{}
		select {
		case <-s.release:
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})); err != nil {
		panic(err)
	}
	return srv
}

func TestCallsInFlightFinishOnThePreviousServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sw proxy.Switch
		srv := switched(t, &sw)
		s := &slow{make(chan struct{}, 2), make(chan struct{})}
		require.NoError(t, sw.Connect(t.Context(), s.server()))
		c := dial(t, srv, protocol.V20260728)
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				got, err := client.Call[string](t.Context(), c, "slow", nil)
				require.NoError(t, err)
				require.Equal(t, "done", got)
			})
			<-s.begun
		}
		require.NoError(t, sw.Connect(t.Context(), numbered("two")))
		got, err := client.Call[string](t.Context(), c, "which", nil)
		require.NoError(t, err)
		require.Equal(t, "two", got)
		time.Sleep(29 * time.Second)
		close(s.release)
		calls.Wait()
	})
}

func TestCallsThatOutlastTheDrainAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := proxy.Switch{Drain: 5 * time.Second}
		srv := switched(t, &sw)
		s := &slow{make(chan struct{}, 1), make(chan struct{})}
		require.NoError(t, sw.Connect(t.Context(), s.server()))
		c := dial(t, srv, protocol.V20260728)
		began := time.Now()
		ended := make(chan error)
		go func() { _, err := c.CallTool(t.Context(), "slow", nil); ended <- err }()
		<-s.begun
		require.NoError(t, sw.Connect(t.Context(), numbered("two")))
		require.ErrorContains(t, <-ended, "was lost; the call may or may not have taken effect")
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestAQuestionOutlastsTheSwitch(t *testing.T) {
	for _, inner := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		for _, outer := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			t.Run(string(inner)+" for "+string(outer), func(t *testing.T) {
				var sw proxy.Switch
				srv := switched(t, &sw, proxy.Dial(client.Version(inner)))
				d, next := &desk{}, &desk{}
				require.NoError(t, sw.Connect(t.Context(), mcpkit.MustNew(d, mcpkit.Logger(silent))))
				u := &switching{before: func(ctx context.Context) error { return sw.Connect(ctx, mcpkit.MustNew(next, mcpkit.Logger(silent))) }}
				c := dial(t, srv, outer, client.Handlers(u))
				got, err := client.Call[ticket](t.Context(), c, "book", order{"Rome"})
				require.NoError(t, err)
				require.Equal(t, 3, got.Days)
				require.Equal(t, []string{"How many days in Rome?", "How many more?"}, u.asked, "each question is asked once")
				require.EqualValues(t, 1, d.booked.Load())
				_, err = client.Call[int64](t.Context(), c, "again", nil)
				require.NoError(t, err)
				require.EqualValues(t, 1, next.booked.Load(), "new calls reach the new server")
			})
		}
	}
}

// switching is a user who replaces the server before the first answer.
type switching struct {
	user
	before func(ctx context.Context) error
}

func (s *switching) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	if before := s.before; before != nil {
		s.before = nil
		if err := before(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	return s.user.Elicit(ctx, p)
}

func TestOneUserGetsTheQuestionsOfUnknownCalls(t *testing.T) {
	srv := proxy.MustNew(client.Command(os.Args[0], asChild), proxy.OneUser(), proxy.Logger(silent),
		proxy.Dial(client.Version(protocol.V20251125), client.Stderr(io.Discard)))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	u := &user{}
	c := dial(t, srv, protocol.V20251125, client.Handlers(u))
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, "wait", nil, client.OnProgress(func(*protocol.ProgressParams) { begun <- struct{}{} }))
		ended <- err
	}()
	<-begun
	got, err := client.Call[ticket](t.Context(), c, "book", order{"Rome"})
	require.NoError(t, err)
	require.Equal(t, "Rome", got.City)
	cancel()
	require.True(t, errors.Is(<-ended, context.Canceled))
	u.mu.Lock()
	defer u.mu.Unlock()
	require.Len(t, u.asked, 2)
	require.Contains(t, u.logged, `warning "booking Rome"`)
}
