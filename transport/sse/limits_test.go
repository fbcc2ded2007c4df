package sse_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport/sse"
)

func TestANewStreamEvictsTheOneThatWasIdleLongest(t *testing.T) {
	base, _ := serveHTTP(t, pong{}, &sse.Options{MaxSessions: 2})
	use := func(c *client) {
		require.NoError(t, c.Send([]byte(ping)))
		_, err := c.Receive()
		require.NoError(t, err)
	}
	first, second := open(t, base, nil), open(t, base, nil)
	use(second)
	use(first)
	third := open(t, base, nil)
	_, err := second.Receive()
	require.ErrorIs(t, err, io.EOF)
	use(first)
	use(third)
	require.NoError(t, first.Close())
	require.NoError(t, third.Close())
}

func TestUnfinishedPOSTsHoldBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		httpClient := serveWired(t, pong{}, &sse.Options{})
		c := openOn(t, httpClient, "http://mcp.test", nil)
		ctx, cancel := context.WithCancel(t.Context())
		statuses := make(chan int, 20)
		var posts sync.WaitGroup
		for range cap(statuses) {
			// Ends with ctx, or when the POST is refused.
			posts.Go(func() {
				body := io.MultiReader(strings.NewReader(strings.Repeat(" ", 4<<20-1)), untilDone{ctx})
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, body)
				if err != nil {
					return
				}
				r.Header.Set("Content-Type", "application/json")
				if resp, err := httpClient.Do(r); err == nil {
					_ = resp.Body.Close()
					statuses <- resp.StatusCode
				}
			})
		}
		require.Equal(t, http.StatusServiceUnavailable, <-statuses, "twenty bodies of 4 MiB exceed the limit of 64 MiB")
		cancel()
		posts.Wait()
		require.Eventually(t, func() bool { return c.Send([]byte(ping)) == nil }, time.Minute, time.Millisecond, "the memory is free again")
		_, err := c.Receive()
		require.NoError(t, err)
		require.NoError(t, c.Close())
	})
}

// untilDone is a body that sends nothing until its context ends.
type untilDone struct{ context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.Done()
	return 0, u.Err()
}

func TestCancelledCallsRespondAfterTheShutdownTimeout(t *testing.T) {
	h := make(holding)
	handler := sse.NewHandler(h, &sse.Options{Logger: quiet})
	server := httptest.NewServer(handler)
	defer server.Close()
	c := open(t, server.URL, nil)
	require.NoError(t, c.Send([]byte(ping)))
	<-h // begun
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	ended := make(chan error, 1)
	go func() { ended <- handler.Shutdown(ctx) }()
	got, err := c.Receive()
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, string(got), "the cancelled call may still respond")
	require.EqualError(t, <-ended, "no time")
	require.NoError(t, c.Close())
}
