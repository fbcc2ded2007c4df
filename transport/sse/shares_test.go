package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport/sse"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestOneAddressCannotTakeAllStreams(t *testing.T) {
	base, _ := serveHTTP(t, pong{}, &sse.Options{MaxSessions: 5, TrustedProxies: loopback})
	var flood []*client
	for i := range 5 {
		c := open(t, base, http.Header{"X-Forwarded-For": {"203.0.113.1"}})
		require.NoError(t, c.Send([]byte(ping)), i)
		_, err := c.Receive()
		require.NoError(t, err)
		flood = append(flood, c)
	}
	ended := make(chan error, len(flood))
	for _, c := range flood {
		go func() { // ends with the stream
			_, err := c.Receive()
			ended <- err
		}()
	}
	for i := range 2 {
		c := open(t, base, http.Header{"X-Forwarded-For": {fmt.Sprintf("192.0.2.%d", i+1)}})
		require.NoError(t, c.Send([]byte(ping)))
		_, err := c.Receive()
		require.NoError(t, err, "a new caller is served")
		require.ErrorIs(t, <-ended, io.EOF, "a stream of the flooding address was evicted")
		defer c.Close()
	}
	for _, c := range flood {
		require.NoError(t, c.Close())
	}
	for range 3 {
		<-ended
	}
}

func TestUnfinishedPOSTsHoldBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		httpClient := serveWired(t, pong{}, &sse.Options{})
		c := openOn(t, httpClient, "http://mcp.test", nil)
		ctx, cancel := context.WithCancel(t.Context())
		statuses := make(chan int, 12)
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
		require.Equal(t, http.StatusServiceUnavailable, <-statuses, "twelve bodies of 4 MiB exceed the limit of 32 MiB")
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
