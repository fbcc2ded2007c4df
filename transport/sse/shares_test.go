package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport/sse"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestStreamsOfOneAddressLockNobodyOut(t *testing.T) {
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
		require.NoError(t, err, "a newcomer is served")
		require.ErrorIs(t, <-ended, io.EOF, "in the place of one of the flood")
		defer c.Close()
	}
	for _, c := range flood {
		require.NoError(t, c.Close())
	}
	for range 3 {
		<-ended
	}
}

func TestCallsAreAnsweredWhenTheTimeForShuttingDownIsOver(t *testing.T) {
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
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, string(got), "it is cancelled, and says so as it likes")
	require.EqualError(t, <-ended, "no time")
	require.NoError(t, c.Close())
}
