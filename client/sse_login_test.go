package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
)

// An oldLink is an HTTP+SSE server without a network. Its POST of x/login waits for 15 seconds,
// and x/refresh fails before it is sent.
type oldLink struct{ stream *io.PipeWriter }

var errRefresh = errors.New("the token cannot be refreshed")

func (o *oldLink) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		body, stream := io.Pipe()
		o.stream = stream
		go func() { _, _ = io.WriteString(stream, "event: endpoint\ndata: /post?session=4711\n\n") }()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return nil, err
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`
	case "x/login":
		select {
		case <-time.After(15 * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	case "x/refresh", "notifications/roots/list_changed":
		return nil, errRefresh
	}
	if m.ID != nil {
		go func() {
			_, _ = fmt.Fprintf(o.stream, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result)
		}()
	}
	return &http.Response{StatusCode: http.StatusAccepted, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func TestLoginsDuringAPostConcernItsCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		defer func() { require.NotContains(t, logged.String(), "4711", "the session ID") }()
		c, err := client.Dial(t.Context(), client.HTTPSSE("https://old.example.com"), client.HTTPClient(&http.Client{Transport: &oldLink{}}),
			client.Logger(slog.New(slog.NewTextHandler(&logged, nil))))
		require.NoError(t, err)
		defer c.Close()
		err = c.Request(t.Context(), "x/refresh", nil, nil)
		require.ErrorIs(t, err, errRefresh)
		require.NotContains(t, err.Error(), "4711", "the session ID")
		require.NoError(t, c.Ping(t.Context()))
		require.NoError(t, c.Notify(t.Context(), "notifications/roots/list_changed", nil))
		require.NoError(t, c.Ping(t.Context()))
		require.NoError(t, c.Request(t.Context(), "x/login", nil, nil), "a login of 15 seconds")
		require.ErrorContains(t, c.Request(t.Context(), "x/login", nil, nil, client.Timeout(12*time.Second)), "no response within 12s")
		require.NoError(t, c.Ping(t.Context()))
	})
}
