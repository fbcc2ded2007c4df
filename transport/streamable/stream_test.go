package streamable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestServerAsksTheClient(t *testing.T) {
	type outcome struct {
		resp *jsonrpc.Response
		err  error
	}
	got := make(chan outcome, 1)
	s := serve(t, script{"ask": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		resp, err := peer.Call(ctx, notification("roots/list", `{"b":2}`))
		got <- outcome{resp, err}
		return result(req, `{"done":true}`)
	}}, nil)
	c, other := s.legacy("2025-06-18"), s.legacy("2025-06-18")
	ev := eventsOf(t, c.call(7, "ask"))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{"b":2}}`, ev.data())

	// A response in another session or with another ID is ignored.
	for _, answer := range []struct {
		c  *client
		id string
	}{{other, `1`}, {c, `"1"`}, {c, `2`}} {
		require.Equal(t, http.StatusAccepted, answer.c.post(`{"jsonrpc":"2.0","id":`+answer.id+`,"result":{"wrong":true}}`).StatusCode)
	}
	resp := c.post(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
	require.Empty(t, read(t, resp))
	require.Equal(t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","id":1,"result":{"late":true}}`).StatusCode)
	o := <-got
	require.NoError(t, o.err)
	require.JSONEq(t, `{"roots":[]}`, string(o.resp.Result))
	require.Equal(t, answer7, ev.data())
	ev.end()

	for name, c := range map[string]*client{
		"modern": s.modern(), "no streams": c.with("Accept", "application/json"), "stateless": serve(t, s.rpc.methods, &Options{Stateless: true}).client(),
	} {
		require.Equal(t, http.StatusOK, c.call(7, "ask").StatusCode)
		require.ErrorIs(t, (<-got).err, transport.ErrNoServerRequests, name)
	}
}

func TestStandaloneStream(t *testing.T) {
	s := serve(t, nil, nil)
	c := s.legacy("2025-11-25")
	want := func(n int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":{"n":%d}}`, n) }
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := c.do(ctx, http.MethodGet, "")
	require.NoError(t, err)
	ev := eventsOf(t, resp)
	session := known(s.handler, c.header.Get("Mcp-Session-Id"))
	tell := func(n int) {
		require.NoError(t, session.Notify(t.Context(), notification("n", fmt.Sprintf(`{"n":%d}`, n))))
	}
	priming := ev.next()
	require.Regexp(t, "_0-0-", priming.ID)
	require.Equal(t, []byte{}, priming.Data)
	tell(1)
	first := ev.next()
	require.Equal(t, want(1), string(first.Data))
	require.Regexp(t, "_0-1$", first.ID)
	tell(2)
	require.Equal(t, want(2), ev.data())
	cancel()
	require.NoError(t, resp.Body.Close())
	tell(3)
	ev = eventsOf(t, c.with("Last-Event-ID", first.ID).get())
	require.Regexp(t, "_0-1-", ev.next().ID)
	require.Equal(t, want(2), ev.data(), "the messages after Last-Event-ID")
	require.Equal(t, want(3), ev.data())
	tell(4)
	require.Equal(t, want(4), ev.data())
}

// There are clients that give up if none of their connections brings them a new ID.
func TestEachConnectionOfTheSessionsStreamBeginsWithAnIDOfItsOwn(t *testing.T) {
	s := serve(t, nil, nil)
	c := s.legacy("2025-11-25")
	first := eventsOf(t, c.get()).next()
	second := eventsOf(t, c.with("Last-Event-ID", first.ID).get()).next()
	require.Regexp(t, "_0-0-", second.ID)
	require.NotEqual(t, first.ID, second.ID)
}

func TestASecondGETSupersedesTheFirst(t *testing.T) {
	s := serve(t, nil, nil)
	c := s.legacy("2025-11-25")
	first := eventsOf(t, c.get())
	priming := first.next()
	second := eventsOf(t, c.with("Last-Event-ID", priming.ID).get())
	first.end()
	second.next()
	require.NoError(t, known(s.handler, c.header.Get("Mcp-Session-Id")).Notify(t.Context(), notification("n", "")))
	require.Equal(t, `{"jsonrpc":"2.0","method":"n"}`, second.data())
}

// A stream of another process with the same keys, such as this one before it was started again.
func TestTheStandaloneStreamOfAnotherProcessIsReplaced(t *testing.T) {
	s := serve(t, nil, nil)
	c := s.legacy("2025-11-25")
	ev := eventsOf(t, c.with("Last-Event-ID", "abcdefgh_0-7-6ETRDJDS4X").get())
	require.Regexp(t, "_0-0-", ev.next().ID)
	require.NoError(t, known(s.handler, c.header.Get("Mcp-Session-Id")).Notify(t.Context(), notification("n", "")))
	require.Equal(t, `{"jsonrpc":"2.0","method":"n"}`, ev.data())
}

func TestUnknownLastEventIDIsRefused(t *testing.T) {
	s := serve(t, script{"talk": talkative}, nil)
	c := s.legacy("2025-11-25")
	talk := eventsOf(t, c.call(7, "talk"))
	tag := strings.TrimSuffix(talk.next().ID, "1-0")
	require.Equal(t, []string{progress1, progress2}, []string{talk.data(), talk.data()})
	require.Contains(t, talk.data(), "done")
	talk.end()
	for _, id := range []string{"x", "-", "0", "0-1", "1-", "-1", tag + "0-1", tag + "0-0-", tag + "0-0-x", tag + "1-99999999999999999999"} {
		resp := c.with("Last-Event-ID", id).get()
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, id)
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Last-Event-ID: \"%s\" is not an event ID of this session"}}`, id),
			read(t, resp))
	}
	for _, id := range []string{tag + "1-3", tag + "2-0", "abcdefgh_1-0"} { // of this process, and of another one
		resp := c.with("Last-Event-ID", id).get()
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, id)
		require.Contains(t, read(t, resp), "Last-Event-ID: the messages of that stream are no longer stored; send the request again")
	}
	c.works()
}

func TestPolling(t *testing.T) {
	closed, goOn := make(chan error, 1), make(chan struct{})
	s := serve(t, script{"poll": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		err := peer.(transport.StreamCloser).CloseStream(700 * time.Millisecond)
		if err == nil {
			err = peer.(transport.StreamCloser).CloseStream(0)
		}
		closed <- err
		if err != nil {
			return nil
		}
		<-goOn
		_ = notify(ctx, peer, 1)
		return result(req, `{"done":true}`)
	}}, nil)
	c := s.legacy("2025-11-25")
	resp := c.call(7, "poll")
	require.NoError(t, <-closed)
	text := read(t, resp)
	require.Regexp(t, "^id: [a-z2-7]{8}_1-0\ndata: \n\nretry: 700\n\n$", text, "the reply is complete while the method runs")

	priming, _, _ := strings.Cut(strings.TrimPrefix(text, "id: "), "\n")
	ev := eventsOf(t, c.with("Last-Event-ID", priming).get())
	close(goOn)
	require.Equal(t, progress1, ev.data())
	require.Equal(t, answer7, ev.data())
	ev.end()

	for name, c := range map[string]*client{
		"before 2025-11-25": s.legacy("2025-06-18"), "modern": s.modern(), "no streams": c.with("Accept", "application/json"),
	} {
		c.call(7, "poll")
		require.ErrorIs(t, <-closed, errors.ErrUnsupported, name)
	}
}

func TestPollingOverHTTP10(t *testing.T) {
	goOn := make(chan struct{})
	s := serve(t, script{"poll": func(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		if peer.(transport.StreamCloser).CloseStream(0) != nil {
			return nil
		}
		<-goOn
		return result(req, `{"done":true}`)
	}}, nil)
	c := s.legacy("2025-11-25")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	body := call1(7, "poll")
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s",
		c.header.Get("Mcp-Session-Id"), len(body), body)
	require.NoError(t, err)
	reply, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Regexp(t, "\r\n\r\nid: [a-z2-7]{8}_1-0\ndata: \n\nretry: 0\n\n$", string(reply))
	close(goOn)
}

func TestRepliesThatCannotBeStreams(t *testing.T) {
	plain := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(struct{ http.ResponseWriter }{w}, r) // without Flush and Unwrap
		})
	}
	for _, test := range []struct {
		name   string
		opts   Options
		fields []string
		wrap   func(http.Handler) http.Handler
		warns  string // "" if it was meant
	}{
		{name: "JSONOnly", opts: Options{JSONOnly: true}},
		{name: "the client accepts only JSON", fields: []string{"Accept", "application/json"}, warns: `why="the client does not accept text/event-stream"`},
		{name: "the writer does not flush", wrap: plain, warns: `why="the response writer cannot flush; does a middleware buffer it?"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, script{"talk": talkative}, &test.opts)
			s.url = serveHTTP(t, s.handler)
			if test.wrap != nil {
				s.url = serveHTTP(t, test.wrap(s.handler))
			}
			for range 3 {
				resp := s.modern().with(test.fields...).call(7, "talk")
				require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
				require.Equal(t, answer7, read(t, resp))
			}
			if test.warns == "" {
				require.Empty(t, s.log.String())
			} else {
				require.Equal(t, 1, strings.Count(s.log.String(), "\n"), s.log.String())
				require.Contains(t, s.log.String(), test.warns)
			}
			if test.wrap != nil {
				require.Equal(t, http.StatusMethodNotAllowed, s.legacy("2025-06-18").get().StatusCode)
			}
		})
	}
}

func TestWithoutAStreamOfTheirOwnMessagesGoToThatOfTheSession(t *testing.T) {
	s := serve(t, script{"talk": talkative, "ask": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		resp, err := peer.Call(ctx, notification("ping", ""))
		if err != nil {
			return nil
		}
		return &jsonrpc.Response{ID: req.ID, Result: resp.Result}
	}}, nil)
	for name, test := range map[string]struct{ version, accept, begin, end string }{
		"the client accepts only JSON": {"2025-06-18", "application/json", "", ""},
		"a batch":                      {"2025-03-26", "application/json, text/event-stream", "[", "]"},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.legacy(test.version).with("Accept", test.accept)
			ev := eventsOf(t, c.with("Accept", "text/event-stream").get())
			require.Equal(t, test.begin+answer7+test.end, read(t, c.post(test.begin+call1(7, "talk")+test.end)))
			require.Equal(t, progress1, ev.data())
			require.Equal(t, progress2, ev.data())

			reply := c.background(t.Context(), test.begin+call1(7, "ask")+test.end)
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, ev.data())
			require.Equal(t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","id":1,"result":{"pong":1}}`).StatusCode)
			require.Equal(t, test.begin+`{"jsonrpc":"2.0","id":7,"result":{"pong":1}}`+test.end, read(t, <-reply))
		})
	}
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{methods: script{"slow": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_ = notify(ctx, peer, 1)
			time.Sleep(65 * time.Second)
			_ = notify(ctx, peer, 2)
			time.Sleep(20 * time.Second)
			return result(req, `{"done":true}`)
		}}}
		h := NewHandler(rpc, &Options{KeepAlive: 30 * time.Second})
		defer h.Close()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, newPost(call1(7, "slow"), "MCP-Protocol-Version", "2026-07-28"))
		const alive = ": keep-alive\n\n"
		require.Equal(t, "event: message\ndata: "+progress1+"\n\n"+alive+alive+"event: message\ndata: "+progress2+"\n\nevent: message\ndata: "+answer7+"\n\n",
			w.Body.String())

		w = httptest.NewRecorder()
		h.ServeHTTP(w, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`))
		get := httptest.NewRecorder()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		h.ServeHTTP(get, newGet(ctx, w.Header().Get("Mcp-Session-Id")))
		require.Equal(t, alive+alive+alive, get.Body.String())
	})
}

func TestSlowReaderDoesNotBlockOthers(t *testing.T) {
	s := serve(t, nil, nil)
	c := s.legacy("2025-11-25")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", c.header.Get("Mcp-Session-Id"))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	ev := eventsOf(t, resp)
	require.Regexp(t, "_0-0-", ev.next().ID)
	// The client does not read. 64 MiB do not fit into the buffers of the connection and the store.
	big := notification("n", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)
	session := known(s.handler, c.header.Get("Mcp-Session-Id"))
	for range 64 {
		require.NoError(t, session.Notify(t.Context(), big))
	}
	c.works()
	require.LessOrEqual(t, memoryOf(s.handler).bytes, 4<<20)

	// When the client reads again, the stream ends without a gap.
	for err == nil {
		_, err = ev.r.Next()
	}
	require.Equal(t, io.EOF, err)
	require.Contains(t, s.log.String(), "client reads too slowly; closing its stream")
}
