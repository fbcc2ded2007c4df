package client_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A babbler is a server with a valid handshake that answers calls with the bytes of a fuzzer. It
// refuses other requests.
type babbler struct {
	answer func(r *http.Request) *http.Response

	mu    sync.Mutex
	posts int // guarded by mu
}

func respond(r *http.Request, status int, media string, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, ContentLength: -1, Body: body, Request: r}
}

func text(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

func (b *babbler) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost {
		return respond(r, http.StatusMethodNotAllowed, "text/plain", text("")), nil
	}
	b.mu.Lock()
	b.posts++
	b.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, _ := jsonrpc.Decode(body)
	switch {
	case m.Request == nil || m.Request.IsNotification():
		return respond(r, http.StatusAccepted, "text/plain", text("")), nil
	case handshake(m.Request.Method) != "":
		return respond(r, http.StatusOK, "application/json", text(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.Request.ID, handshake(m.Request.Method)))), nil
	}
	return b.answer(r), nil
}

// callThrough calls a tool in a synctest bubble, and checks what must hold whatever the server
// sends.
func callThrough(t *testing.T, rt http.RoundTripper, target any, v protocol.Version) {
	synctest.Test(t, func(t *testing.T) {
		c, err := client.Dial(t.Context(), target, client.Version(v), client.HTTPClient(&http.Client{Transport: rt}), client.Handlers(&user{}),
			client.Logger(slog.New(slog.DiscardHandler)), client.MaxMessageBytes(1<<16), client.Timeout(0))
		require.NoError(t, err)
		r, err := c.CallTool(t.Context(), "x", nil)
		if err == nil {
			require.NotNil(t, r)
		}
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, c.Close())
	})
}

var babble = []string{
	`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"x"}]}}`,
	`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`,
	`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}`,
	`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`,
	`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x"}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`,
	`{"jsonrpc":"2.0","id":2,"Result":{}}`,
	`[{"jsonrpc":"2.0","id":2}]`,
	"\xff",
}

// Whatever a server responds over HTTP, the call returns.
func FuzzResponsesOverHTTP(f *testing.F) {
	for _, b := range babble {
		for _, modern := range []bool{false, true} {
			f.Add(modern, 200, "application/json", []byte(b))
			f.Add(modern, 200, "text/event-stream", []byte("id: 1\nretry: 1\ndata: "+b+"\n\n"))
			f.Add(modern, 401, "application/json", []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, modern bool, status int, media string, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		v := protocol.LatestLegacy
		if modern {
			v = protocol.Latest
		}
		b := &babbler{}
		b.answer = func(r *http.Request) *http.Response {
			return respond(r, status, media, io.NopCloser(bytes.NewReader(body)))
		}
		callThrough(t, b, "http://example.com/mcp", v)
		// The client sends at most one message for each message of the server, and one for each
		// round of questions.
		require.LessOrEqual(t, b.posts, 30+bytes.Count(body, []byte("{")))
	})
}

// Whatever a server of HTTP+SSE sends, the call returns when the stream ends.
func FuzzStreamsOfHTTPSSE(f *testing.F) {
	for _, b := range babble {
		f.Add([]byte("event: message\ndata: " + b + "\n\n"))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		callThrough(t, &oldBabbler{stream: stream}, client.HTTPSSE("http://example.com/sse"), protocol.LatestLegacy)
	})
}

// An oldBabbler is a babbler that speaks HTTP+SSE. After the bytes of the fuzzer its stream ends.
type oldBabbler struct {
	stream []byte
	events *io.PipeWriter // made by the GET, which comes first
}

func (b *oldBabbler) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		body, events := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(r.Context().Err()) })
		b.events = events
		go b.send("event: endpoint\ndata: /post\n\n", nil)
		return respond(r, http.StatusOK, "text/event-stream", body), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	switch m, _ := jsonrpc.Decode(body); {
	case m.Request == nil || m.Request.IsNotification():
	case m.Request.Method == protocol.MethodInitialize:
		go b.send(event(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.Request.ID, handshake(m.Request.Method))), nil)
	default:
		go b.send(string(b.stream), io.EOF)
	}
	return respond(r, http.StatusAccepted, "text/plain", text("")), nil
}

// send writes to the stream, and ends it with err unless that is nil. It returns when the client
// has read everything or has disconnected.
func (b *oldBabbler) send(s string, err error) {
	_, _ = io.WriteString(b.events, s)
	if err != nil {
		_ = b.events.CloseWithError(err)
	}
}
