package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A legacyResource is a puppet of version 2025-11-25 with one resource. It answers requests to
// subscribe when settle is called, unless the client has cancelled them by then.
type legacyResource struct {
	p          *puppet
	subscribed bool
}

// settle answers all requests received so far, like a slow server.
func (r *legacyResource) settle() {
	synctest.Wait()
	var open []*jsonrpc.Request
	cancelled := map[string]bool{}
	for len(r.p.heard) > 0 {
		m := <-r.p.heard
		if m.Method == protocol.NotificationCancelled {
			cancelled[string(m.Param("requestId"))] = true
		} else {
			open = append(open, m)
		}
	}
	for _, m := range open {
		if !cancelled[m.ID.String()] {
			r.subscribed = m.Method == protocol.MethodResourcesSubscribe
			r.p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
		}
	}
	synctest.Wait()
}

// onLegacyResource runs test with a client of a legacyResource in a synctest bubble.
func onLegacyResource(t *testing.T, test func(t *testing.T, r *legacyResource, c *client.Client)) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{heard: make(chan *jsonrpc.Request, 1000), frozen: make(chan struct{}), over: make(chan struct{})}
		target := onStream(t, p, protocol.LatestLegacy)
		t.Cleanup(func() { close(p.over) })
		test(t, &legacyResource{p: p}, dial(t, target, client.Version(protocol.LatestLegacy)))
	})
}

// subscription is the outcome of Subscribe.
type subscription struct {
	s   *client.Subscription
	err error
}

// subscribe subscribes in the background.
func subscribe(ctx context.Context, c *client.Client, uri string) <-chan subscription {
	over := make(chan subscription, 1)
	go func() {
		s, err := c.Subscribe(ctx, uri)
		over <- subscription{s, err}
	}()
	return over
}

const updatedX = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://x"}}`

func TestASubscriptionSurvivesTheCancellationOfAnEarlierOne(t *testing.T) {
	onLegacyResource(t, func(t *testing.T, r *legacyResource, c *client.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		first := subscribe(ctx, c, "test://x")
		synctest.Wait()
		second := subscribe(t.Context(), c, "test://x")
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-first).err, context.Canceled)
		r.settle()
		got := <-second
		require.NoError(t, got.err)
		require.True(t, r.subscribed, "the server knows of the second subscription")
		r.p.say(updatedX)
		change, err := got.s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, client.Change{Kind: client.ResourceUpdated, URI: "test://x"}, change)
	})
}

func TestEachSubscriptionOfAResourceReceivesItsChanges(t *testing.T) {
	onLegacyResource(t, func(t *testing.T, r *legacyResource, c *client.Client) {
		first, second := subscribe(t.Context(), c, "test://x"), subscribe(t.Context(), c, "test://x")
		r.settle()
		one, two := <-first, <-second
		require.NoError(t, one.err)
		require.NoError(t, two.err)
		receive := func(s *client.Subscription) {
			t.Helper()
			r.p.say(updatedX)
			change, err := s.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, "test://x", change.URI)
		}
		receive(one.s)
		receive(two.s)
		require.NoError(t, one.s.Close())
		r.settle()
		require.True(t, r.subscribed, "the other subscription is open")
		receive(two.s)
		require.NoError(t, two.s.Close())
		r.settle()
		require.False(t, r.subscribed, "no subscription is open")
		third := subscribe(t.Context(), c, "test://x")
		r.settle()
		got := <-third
		require.NoError(t, got.err)
		require.True(t, r.subscribed)
		receive(got.s)
	})
}

func TestRefusedSubscriptionsAreAskedForAgain(t *testing.T) {
	onLegacyResource(t, func(t *testing.T, r *legacyResource, c *client.Client) {
		first, second := subscribe(t.Context(), c, "test://x"), subscribe(t.Context(), c, "test://x")
		for range 2 {
			synctest.Wait()
			r.p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no such resource"}}`, (<-r.p.heard).ID))
		}
		for _, over := range []<-chan subscription{first, second} {
			require.EqualError(t, (<-over).err, `client: resources/subscribe "test://x": no such resource (code -32002)`)
		}
		require.Empty(t, r.p.heard)
		again := subscribe(t.Context(), c, "test://x")
		r.settle()
		require.NoError(t, (<-again).err, "the client asks again")
	})
}

// A slowWatcher blocks on each change until the test takes it.
type slowWatcher struct{ tools, updated chan struct{} }

func (w slowWatcher) ToolsChanged(ctx context.Context) { take(ctx, w.tools) }

func (w slowWatcher) ResourceUpdated(ctx context.Context, _ string) { take(ctx, w.updated) }

func take(ctx context.Context, c chan struct{}) {
	select {
	case c <- struct{}{}:
	case <-ctx.Done():
	}
}

// once takes one change from a handler, and checks that no other waits.
func once(t *testing.T, reports chan struct{}) {
	t.Helper()
	synctest.Wait()
	<-reports
	synctest.Wait()
	select {
	case <-reports:
		require.Fail(t, "the handler received the change twice")
	default:
	}
}

// The server sends a change once for each listen request that covers it.
func TestHandlersReceiveEachChangeOnce(t *testing.T) {
	for _, v := range []protocol.Version{protocol.LatestLegacy, protocol.Latest} {
		t.Run(string(v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := shop(t)
				w := slowWatcher{make(chan struct{}), make(chan struct{})}
				c := dial(t, serveStream(t, srv, nil), client.Handlers(w), client.Version(v))
				filter := protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"shop://hours"}}
				var subs []*client.Subscription
				for range 2 {
					s, err := c.Listen(t.Context(), filter)
					require.NoError(t, err)
					subs = append(subs, s)
				}
				synctest.Wait() // until the server has agreed to the subscription of the handlers as well
				change := func(n int) {
					require.NoError(t, srv.Add(mcpkit.NewTool(fmt.Sprintf("more%d", n), func() string { return "" })))
					once(t, w.tools)
					srv.ResourceUpdated("shop://hours")
					once(t, w.updated)
				}
				for n := range 10 {
					change(n)
				}
				require.NoError(t, subs[0].Close())
				change(10)
				require.NoError(t, subs[1].Close())
				synctest.Wait()
				require.NoError(t, srv.Add(mcpkit.NewTool("last", func() string { return "" })))
				once(t, w.tools)
			})
		})
	}
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
