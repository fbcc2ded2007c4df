package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestBatches(t *testing.T) {
	const (
		echo1  = `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}`
		echo2  = `{"jsonrpc":"2.0","id":2,"method":"echo","params":{"a":2}}`
		talk   = `{"jsonrpc":"2.0","id":7,"method":"talk"}`
		notice = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		result = `{"jsonrpc":"2.0","id":1,"result":{}}`
		init   = `{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}`
	)
	for _, test := range []struct {
		name   string
		body   string
		status int
		want   string
	}{
		{"requests and a notification", `[` + echo1 + `,` + notice + `, ` + echo2 + `]`, 200,
			`[{"jsonrpc":"2.0","id":1,"result":{"a":1}},{"jsonrpc":"2.0","id":2,"result":{"a":2}}]`},
		{"no requests", `[` + notice + `,` + result + `]`, 202, ""},
		{"empty", ` [ ] `, 400, `-32600`},
		{"malformed", `[` + echo1, 400, `-32700`},
		{"elements that are not messages", `[1,` + echo1 + `]`, 200,
			`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid message: a message is a JSON object"}},{"jsonrpc":"2.0","id":1,"result":{"a":1}}]`},
		{"only elements that are not messages", `[1]`, 400,
			`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid message: a message is a JSON object"}}]`},
		{"the same ID twice", `[` + echo1 + `,` + echo1 + `]`, 200,
			`[{"jsonrpc":"2.0","id":1,"result":{"a":1}},{"jsonrpc":"2.0","id":1,"result":{"a":1}}]`},
		{"initialize", `[` + init + `]`, 200, `[{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"initialize must not be in a batch"}}]`},
		{"a request of a modern version", `[{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}]`, 200,
			`[{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"a request of a modern version must not be in a batch"}}]`},
		{"too many", `[` + strings.Repeat(notice+",", 100) + notice + `]`, 400, `-32600`},
		{"notifications without a stream", `[` + echo1 + `,` + talk + `,` + echo2 + `]`, 200,
			`[{"jsonrpc":"2.0","id":1,"result":{"a":1}},` + answer7 + `,{"jsonrpc":"2.0","id":2,"result":{"a":2}}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, script{"talk": talkative}, nil)
			c := s.legacy("2025-03-26")
			resp := c.post(test.body)
			body := read(t, resp)
			require.Equal(t, test.status, resp.StatusCode, body)
			if strings.HasPrefix(test.want, "-") {
				require.Contains(t, body, `"code":`+test.want)
			} else {
				require.Equal(t, test.want, body)
			}
			c.works()
		})
	}
}

func TestBatchOfAStatelessClient(t *testing.T) {
	s := serve(t, script{"talk": talkative}, &Options{Stateless: true})
	resp := s.client().post(`[` + call1(1, "echo") + `,` + call1(7, "talk") + `]`)
	require.Equal(t, `[{"jsonrpc":"2.0","id":1,"result":{"a":1}},`+answer7+`]`, read(t, resp))
	require.Equal(t, http.StatusBadRequest, s.client("MCP-Protocol-Version", "2025-06-18").post(`[`+call1(1, "echo")+`]`).StatusCode)
}

func TestStreamedResultsInBatchesAreHeldWhileTheirCallLasts(t *testing.T) {
	endless := func(w io.Writer) error {
		block := strings.Repeat("1", 64<<10)
		for {
			if _, err := io.WriteString(w, block); err != nil {
				return err
			}
		}
	}
	s := serve(t, script{
		"living": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(w io.Writer) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				_, err := io.WriteString(w, `"alive"`)
				return err
			}}
		},
		"endless": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: endless}
		},
		"bounded": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: endless, MaxHeld: 1000}
		},
	}, &Options{MaxBytes: 1 << 20})
	other := conn.Share{All: &s.handler.bytes}
	require.True(t, other.Take(1), "another request holds something")
	resp := s.legacy("2025-03-26").post(`[` + call1(1, "living") + `,` + call1(2, "endless") + `,` + call1(3, "bounded") + `]`)
	body := read(t, resp)
	require.Contains(t, body, `"id":3,"error":{"code":-32603,"message":"the result is larger than 1000 bytes`)
	require.Contains(t, body, `{"jsonrpc":"2.0","id":1,"result":"alive"}`)
	require.Contains(t, body, `"id":2,"error":{"code":-32603,"message":"busy: too many bytes`)
}

func streamed(chunks []string, end error) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, chunk := range chunks {
			if _, err := io.WriteString(w, chunk); err != nil {
				return err
			}
		}
		return end
	}
}

func TestStreamedResults(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for _, test := range []struct {
		name   string
		chunks []string
		data   string // of the event
	}{
		{"small", []string{`{"a":`, `1}`}, `{"a":1}`},
		{"several lines", []string{"{\n", "\"a\":\r\n1}"}, "{\n\"a\":\n1}"},
		{"large", []string{`{"a":"`, big, big, `"}`}, `{"a":"` + big + big + `"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, script{
				"plain": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
					return &jsonrpc.Response{ID: req.ID, Stream: streamed(test.chunks, nil)}
				},
				"talk": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
					_ = notify(ctx, peer, 1)
					return &jsonrpc.Response{ID: req.ID, Stream: streamed(test.chunks, nil)}
				},
			}, nil)
			for name, c := range map[string]*client{"modern": s.modern(), "legacy": s.legacy("2025-06-18")} {
				resp := c.call(1, "plain")
				require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
				require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+strings.Join(test.chunks, "")+`}`, read(t, resp), name)
				ev := eventsOf(t, c.call(1, "talk"))
				require.Equal(t, progress1, ev.data())
				require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+test.data+`}`, ev.data(), name)
				ev.end()
			}
		})
	}
}

func TestFailedStreamDoesNotLookComplete(t *testing.T) {
	broken := errors.New("broken")
	s := serve(t, script{
		"plain": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{ID: req.ID, Stream: streamed([]string{`{"a":`}, broken)}
		},
		"talk": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_ = notify(ctx, peer, 1)
			return &jsonrpc.Response{ID: req.ID, Stream: streamed([]string{`{"a":`}, broken)}
		},
	}, nil)
	resp, err := s.modern().do(t.Context(), http.MethodPost, call1(1, "plain"))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	require.Error(t, err)

	ev := eventsOf(t, s.modern().call(1, "talk"))
	require.Equal(t, progress1, ev.data())
	_, err = ev.r.Next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	// A client that resumes the stream gets an error.
	c := s.legacy("2025-11-25")
	ev = eventsOf(t, c.call(1, "talk"))
	ev.next()
	first := ev.next()
	require.Equal(t, progress1, string(first.Data))
	_, err = ev.r.Next()
	require.Error(t, err)
	ev = eventsOf(t, c.with("Last-Event-ID", first.ID).get())
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`, ev.data())
	ev.end()
	c.works()
}

func TestResponseTooLargeToBeStored(t *testing.T) {
	closed, goOn := make(chan error, 1), make(chan struct{})
	big := `{"a":"` + strings.Repeat("x", 5000) + `"}`
	s := serve(t, script{
		"poll": func(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			closed <- peer.(transport.StreamCloser).CloseStream(0)
			<-goOn
			return result(req, big)
		},
		"talk": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_ = notify(ctx, peer, 1)
			return result(req, big)
		},
	}, nil)
	memoryOf(s.handler).sessionBytes = 3000
	c := s.legacy("2025-11-25")
	priming := eventsOf(t, c.call(1, "poll")).next().ID
	require.NoError(t, <-closed)
	ev := eventsOf(t, c.with("Last-Event-ID", priming).get())
	close(goOn)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the response was lost with the connection and is too large to be stored"}}`, ev.data())
	ev.end()

	ev = eventsOf(t, c.call(1, "talk"))
	ev.next()
	require.Equal(t, progress1, ev.data())
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+big+`}`, ev.data(), "a connected client gets the response")
	ev.end()
}

func TestAStreamedResultGoesWhereTheClientHasResumedTheStream(t *testing.T) {
	goOn := make(chan struct{})
	s := serve(t, script{
		"talk": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_ = notify(ctx, peer, 1)
			<-goOn
			return &jsonrpc.Response{ID: req.ID, Stream: streamed([]string{`{"a":`, `1}`}, nil)}
		},
	}, nil)
	c := s.legacy("2025-11-25")
	ev := eventsOf(t, c.call(1, "talk"))
	ev.next()
	resumed := eventsOf(t, c.with("Last-Event-ID", ev.next().ID).get())
	close(goOn)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, resumed.data())
	resumed.end()
}

// A stuckWriter is a connection whose client does not read.
type stuckWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
	stuck    bool
}

func (w *stuckWriter) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

func (w *stuckWriter) FlushError() error {
	if !w.stuck {
		return nil
	}
	time.Sleep(time.Until(w.deadline))
	return os.ErrDeadlineExceeded
}

func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuckWriter{ResponseRecorder: httptest.NewRecorder()}
		var took time.Duration
		rpc := &scripted{methods: script{"talk": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_ = notify(ctx, peer, 1)
			w.stuck = true
			begin := time.Now()
			_ = notify(ctx, peer, 2)
			_ = notify(ctx, peer, 3)
			took = time.Since(begin)
			return result(req, `{"done":true}`)
		}}}
		h := NewHandler(rpc, nil)
		defer h.Close()
		id := begin(t, h, "")
		h.ServeHTTP(w, newPost(call1(7, "talk"), "Mcp-Session-Id", id))
		require.Equal(t, 30*time.Second, took, "after the first write, the server writes nothing")
		_, first, _ := strings.Cut(w.Body.String(), "event: message\nid: ")
		first, _, _ = strings.Cut(first, "\n")

		r := newGet(t.Context(), id)
		r.Header.Set("Last-Event-ID", first)
		again := httptest.NewRecorder()
		h.ServeHTTP(again, r)
		require.Equal(t, "event: message\nid: 1-2\ndata: "+progress2+"\n\nevent: message\nid: 1-3\ndata: "+
			strings.ReplaceAll(progress2, "2}}", "3}}")+"\n\nevent: message\nid: 1-4\ndata: "+answer7+"\n\n", tags.ReplaceAllString(again.Body.String(), "$1"))
	})
}

func TestReplyAfterTheWriteTimeoutOfTheServer(t *testing.T) {
	for name, talk := range map[string]bool{"JSON": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 10 * time.Second
				h := NewHandler(&scripted{methods: script{"slow": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
					if talk {
						_ = notify(ctx, peer, 1)
					}
					time.Sleep(2 * timeout)
					return result(req, `{"done":true}`)
				}}}, nil)
				defer h.Close()
				client, closeAll := testkit.Serve(&http.Server{Handler: h, ReadTimeout: timeout, WriteTimeout: timeout})
				defer closeAll()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://mcp.test", strings.NewReader(call1(7, "slow")))
				require.NoError(t, err)
				r.Header = newPost("", "Mcp-Protocol-Version", "2026-07-28").Header
				resp, err := client.Do(r)
				require.NoError(t, err)
				require.Contains(t, read(t, resp), answer7)
			})
		})
	}
}

func TestHTTP2(t *testing.T) {
	closed := make(chan error, 1)
	s := serve(t, script{"talk": talkative, "poll": func(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		closed <- peer.(transport.StreamCloser).CloseStream(0)
		return result(req, `{"done":true}`)
	}}, nil)
	server := httptest.NewUnstartedServer(s.handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	s.url = server.URL
	c := s.legacy2(server.Client(), "2025-11-25")
	ev := eventsOf(t, c.call(7, "talk"))
	require.Regexp(t, "_1-0$", ev.next().ID)
	require.Equal(t, progress1, ev.data())
	require.Equal(t, progress2, ev.data())
	require.Equal(t, answer7, ev.data())
	ev.end()
	resp := c.call(7, "poll")
	require.Equal(t, 2, resp.ProtoMajor)
	require.ErrorIs(t, <-closed, errors.ErrUnsupported)
	require.Equal(t, answer7, read(t, resp))
}

// A streamed result is in flight until it ends: the client may cancel it, and reuse the ID
// afterwards.
func TestStreamedResultsCanBeCancelled(t *testing.T) {
	begun, causes := make(chan struct{}, 2), make(chan error, 2)
	s := serve(t, script{"drip": func(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		return &jsonrpc.Response{ID: req.ID, Stream: func(w io.Writer) error {
			if _, err := io.WriteString(w, `"drop`); err != nil {
				return err
			}
			begun <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return context.Cause(ctx)
		}}
	}}, nil)
	c := s.legacy("2025-11-25")
	for range 2 {
		over := make(chan error, 1)
		go func() {
			resp, err := c.do(t.Context(), http.MethodPost, call1(7, "drip"))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			over <- err
		}()
		<-begun
		require.Equal(t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`).StatusCode)
		require.EqualError(t, <-causes, "cancelled by the peer")
		require.Error(t, <-over)
	}
	c.works()
}
