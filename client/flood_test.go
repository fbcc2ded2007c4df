package client_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

const (
	floodBytes  = 72 << 20 // that the server sends; a 32nd of it with the race detector
	floodUnit   = 1 << 20  // of a message
	maxLiveHeap = 64 << 20 // limit of the heap
)

// A flooder is a legacy server that sends many messages, either on the stream of each call or on
// that of the session. It ignores responses.
type flooder struct {
	message   func(n int, id jsonrpc.ID, filler string) string // id is that of the call, or absent
	onSession bool
}

const floodHandshake = `{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}},"serverInfo":{"name":"flood","version":"1"}}`

// write writes messages until floodBytes are written or w fails.
func (f *flooder) write(w io.Writer, id jsonrpc.ID, frame func(message string) string) {
	filler := strings.Repeat("x", floodUnit)
	messages := floodBytes / floodUnit
	if raceDetector {
		messages /= 32
	}
	for n := range messages {
		if _, err := io.WriteString(w, frame(f.message(n, id, filler))); err != nil {
			return
		}
	}
}

// RoundTrip answers without a network, so that synctest.Wait works.
func (f *flooder) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, media, text string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
	stream := func(id jsonrpc.ID, flooded bool) (*http.Response, error) {
		body, events := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(r.Context().Err()) })
		if flooded {
			// Ends when all is sent, or with the request.
			go f.write(events, id, event)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: body, Request: r}, nil
	}
	if r.Method == http.MethodGet {
		return stream(jsonrpc.ID{}, f.onSession)
	}
	if r.Method == http.MethodDelete {
		return answer(http.StatusMethodNotAllowed, "text/plain", "")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, _ := jsonrpc.Decode(body)
	switch {
	case m.Response != nil:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case m.Request.IsNotification():
		return answer(http.StatusAccepted, "text/plain", "")
	case m.Request.Method == protocol.MethodInitialize:
		return answer(http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.Request.ID, floodHandshake))
	case m.Request.Method == protocol.MethodResourcesSubscribe:
		return answer(http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.Request.ID))
	}
	return stream(m.Request.ID, !f.onSession)
}

// lines serves a connection.
func (f *flooder) lines(conn net.Conn) {
	defer conn.Close()
	in := make([]byte, 0, 64<<10)
	for {
		if i := bytes.IndexByte(in, '\n'); i >= 0 {
			m, _ := jsonrpc.Decode(bytes.Clone(in[:i]))
			in = in[i+1:]
			switch {
			case m.Request == nil || m.Request.IsNotification():
			case m.Request.Method == protocol.MethodInitialize:
				_, _ = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.Request.ID, floodHandshake)
			case m.Request.Method == protocol.MethodResourcesSubscribe:
				_, _ = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.Request.ID)
			default:
				f.write(conn, m.Request.ID, func(message string) string { return message + "\n" })
				return
			}
			continue
		}
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		in = append(in, b[:n]...)
	}
}

// busy is a handler that blocks.
type busy struct{}

func (busy) Elicit(ctx context.Context, _ *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (busy) Log(ctx context.Context, _ *protocol.LoggingMessageParams) { <-ctx.Done() }
func (busy) ToolsChanged(ctx context.Context)                          { <-ctx.Done() }
func (busy) ResourceUpdated(ctx context.Context, _ string)             { <-ctx.Done() }

func TestAFloodOfNotificationsUsesLimitedMemory(t *testing.T) {
	for name, message := range map[string]func(n int, id jsonrpc.ID, filler string) string{
		"questions": func(n int, _ jsonrpc.ID, filler string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"%s","requestedSchema":{}}}`, n, filler)
		},
		"log messages": func(n int, _ jsonrpc.ID, filler string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%d%s"}}`, n, filler)
		},
		"progress": func(n int, id jsonrpc.ID, filler string) string {
			if !id.IsValid() {
				id = jsonrpc.NumberID(3) // of the call
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"%s"}}`, id, n, filler)
		},
	} {
		for _, where := range []string{"a call over HTTP", "the session over HTTP", "a stream"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &flooder{message: message, onSession: where == "the session over HTTP"}
					var target any = "http://example.com/mcp"
					if where == "a stream" {
						ours, theirs := net.Pipe()
						// Ends with the connection.
						go f.lines(theirs)
						target = ours
					}
					c, err := client.Dial(t.Context(), target, client.Version(protocol.V20251125), client.HTTPClient(&http.Client{Transport: f}),
						client.Handlers(busy{}), client.Logger(slog.New(slog.DiscardHandler)))
					require.NoError(t, err)
					_, err = c.Subscribe(t.Context(), "test://x")
					require.NoError(t, err)
					before := liveHeap()
					ctx, cancel := context.WithCancel(t.Context())
					over := make(chan error, 1)
					go func() {
						_, err := c.CallTool(ctx, "x", nil, client.OnProgress(func(*protocol.ProgressParams) { <-ctx.Done() }))
						over <- err
					}()
					synctest.Wait()
					require.Less(t, liveHeap()-before, int64(maxLiveHeap))
					cancel()
					require.NoError(t, c.Close())
					require.Error(t, <-over)
				})
			})
		}
	}
}

// liveHeap returns the bytes of the heap that are in use.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
