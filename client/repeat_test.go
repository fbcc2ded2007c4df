package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

const threeTools = `{"tools":[{"name":"reads","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
	{"name":"repeats","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}},
	{"name":"writes","inputSchema":{"type":"object"}}]}`

// A proxy whose server has died answers 502; the next server answers.
func TestCallsThatDoNoHarmAreRepeatedAtAnotherServer(t *testing.T) {
	t.Parallel()
	lost := rpcError(-32603, "the process has ended", `{"lost":true}`)
	retryLater := func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
		w.Header().Set("Retry-After", "60")
		status(http.StatusServiceUnavailable, "full")(w, r, req)
	}
	for _, test := range []struct {
		name  string
		first answer
		tool  string
		calls int
		err   string
	}{
		{"broken stream, reads", breaks, "reads", 2, ""},
		{"broken stream, writes", breaks, "writes", 1, "the stream ended before the response"},
		{"bad gateway, reads", status(502, ""), "reads", 2, ""},
		{"bad gateway, repeats", status(502, ""), "repeats", 2, ""},
		{"bad gateway, writes", status(502, ""), "writes", 1, "502 Bad Gateway"},
		{"gateway timeout", status(504, ""), "reads", 2, ""},
		{"unavailable", status(503, ""), "reads", 2, ""},
		{"unavailable for a minute", retryLater, "reads", 1, "503 Service Unavailable"},
		{"too many requests", status(429, ""), "reads", 1, "429 Too Many Requests"},
		{"its process has ended, reads", lost, "reads", 2, ""},
		{"its process has ended, writes", lost, "writes", 1, "the process has ended"},
		{"internal error", rpcError(-32603, "bug", ""), "reads", 1, "bug"},
		{"internal error with data", rpcError(-32603, "bug", `{"lost":"yes"}`), "reads", 1, "bug"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, map[string]answer{"tools/list": result(threeTools), "tools/call": inTurn(test.first, raw("application/json", done("x")))})
			c := dial(t, f.URL)
			list(t, c)
			text, err := client.Call[string](t.Context(), c, test.tool, nil)
			require.Equal(t, test.calls, f.count("tools/call"))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "x", text)
		})
	}
}

// A restarting refuses the first connections.
type restarting struct {
	http.RoundTripper
	refuse atomic.Int64
}

func (r *restarting) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.refuse.Add(-1) >= 0 {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return r.RoundTripper.RoundTrip(req)
}

// A request that no server received is sent again, whatever it does.
func TestRefusedConnectionsAreTriedAgain(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]answer{"tools/list": result(threeTools), "tools/call": raw("application/json", done("x"))})
	via := &restarting{RoundTripper: f.Client().Transport}
	via.refuse.Store(1)
	c := dial(t, f.URL, client.HTTPClient(&http.Client{Transport: via}))
	list(t, c)
	via.refuse.Store(2)
	text, err := client.Call[string](t.Context(), c, "writes", nil)
	require.NoError(t, err)
	require.Equal(t, "x", text)
	require.Equal(t, 1, f.count("tools/call"))

	via.refuse.Store(1000)
	_, err = client.Call[string](t.Context(), c, "reads", nil)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.EqualValues(t, 1000-4, via.refuse.Load(), "the attempts are limited")
}

func TestSessionsBeginWhenAServerIsRestarted(t *testing.T) {
	t.Parallel()
	f := newLegacyFake(t, map[string]answer{
		"initialize":                inTurn(status(502, ""), initialized("2025-11-25", "one")),
		"notifications/initialized": inTurn(status(502, ""), status(202, "")),
	})
	c := dial(t, f.URL, client.Version(protocol.V20251125))
	require.Equal(t, protocol.V20251125, c.Version())
	require.Equal(t, 2, f.count("initialize"))
	require.Equal(t, 2, f.count("notifications/initialized"))

	modern := newFake(t, map[string]answer{"server/discover": inTurn(breaks, status(502, ""), result(discovered))})
	require.Equal(t, protocol.V20260728, dial(t, modern.URL).Version(), "it does not count as a legacy server")
}

// TestAnswersAreSentAgain loses the first POST with the answer to a question.
func TestAnswersAreSentAgain(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]answer{"bad gateway": status(502, ""), "broken connection": cut} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan struct{})
			f := newLegacyFake(t, map[string]answer{
				"tools/call": func(w http.ResponseWriter, _ *http.Request, req *jsonrpc.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, event(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`))
					w.(http.Flusher).Flush()
					<-answered
					_, _ = io.WriteString(w, withID(event(done("thanks")), req))
				},
				"response": inTurn(first, func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Request) {
					w.WriteHeader(http.StatusAccepted)
					close(answered)
				}),
			})
			c := dial(t, f.URL, client.Handlers(&clerk{}))
			text, err := client.Call[string](t.Context(), c, "ask", nil)
			require.NoError(t, err)
			require.Equal(t, "thanks", text)
			require.Equal(t, 2, f.count("response"))
		})
	}
}

// cut closes the connection without a response.
func cut(http.ResponseWriter, *http.Request, *jsonrpc.Request) { panic(http.ErrAbortHandler) }

// TestAStreamThatCannotBeResumedIsACallThatIsLost answers 400 to the GET that resumes a stream.
func TestAStreamThatCannotBeResumedIsACallThatIsLost(t *testing.T) {
	t.Parallel()
	brief := func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: s-0\nretry: 100\ndata:\n\n")
	}
	f := newLegacyFake(t, map[string]answer{
		"tools/list": result(threeTools), "tools/call": inTurn(brief, raw("application/json", done("x")), brief),
		"GET": status(http.StatusBadRequest, "no longer stored"),
	})
	c := dial(t, f.URL)
	list(t, c)
	_, err := client.Call[string](t.Context(), c, "repeats", nil)
	require.NoError(t, err)
	_, err = client.Call[string](t.Context(), c, "writes", nil)
	require.ErrorContains(t, err, "the stream ended before the response")
	require.ErrorContains(t, err, "no longer stored")
}

func TestSubscriptionsOpenWhenAServerIsRestarted(t *testing.T) {
	ack := event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}`)
	f := newFake(t, map[string]answer{"subscriptions/listen": inTurn(status(502, ""), func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
		stream(ack)(w, r, req)
		<-r.Context().Done()
	})})
	c := dial(t, f.URL)
	s, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, 2, f.count("subscriptions/listen"))
}

func TestACancelledCallIsNotRepeated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFake(t, map[string]answer{"tools/list": result(threeTools), "tools/call": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
		cancel()
		status(502, "")(w, r, req)
	}})
	c := dial(t, f.URL)
	list(t, c)
	_, err := client.Call[string](ctx, c, "reads", nil)
	require.True(t, errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "502"), "%v", err)
	require.Equal(t, 1, f.count("tools/call"))
}
