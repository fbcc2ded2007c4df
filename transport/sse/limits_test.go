package sse_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport/sse"
)

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
