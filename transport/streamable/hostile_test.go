package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestMalformedResponseEndsTheServerRequest(t *testing.T) {
	got := make(chan *jsonrpc.Response, 1)
	s := serve(t, script{"ask": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		resp, err := peer.Call(ctx, notification("ping", ""))
		if err == nil {
			got <- resp
		}
		return result(req, `{"done":true}`)
	}}, nil)
	c := s.legacy("2025-06-18")
	ev := eventsOf(t, c.call(7, "ask"))
	ev.data()
	resp := c.post(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.NotNil(t, (<-got).Error)
	require.Equal(t, answer7, ev.data())
}

// A brokenStore keeps nothing.
type brokenStore struct{ eventStore }

func (brokenStore) append(context.Context, *legacySession, event) error {
	return errors.New("disk full")
}

func TestBrokenEventStoreCostsOnlyResumption(t *testing.T) {
	s := serve(t, script{"talk": talkative}, nil)
	s.handler.events = brokenStore{s.handler.events}
	c := s.legacy("2025-11-25")
	ev := eventsOf(t, c.call(7, "talk"))
	require.Regexp(t, "_1-0$", ev.next().ID)
	require.Equal(t, progress1, ev.data())
	require.Equal(t, progress2, ev.data())
	require.Equal(t, answer7, ev.data())
	ev.end()
	require.Contains(t, s.log.String(), `level=ERROR msg="streamable: event store did not keep a message" err="disk full"`)
	c.send(http.MethodDelete, "")
	require.NoError(t, s.handler.Shutdown(t.Context()))
}

func TestListenerThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: time.Minute})
		defer h.Close()
		id := begin(t, h, "")
		w := &stuckWriter{recorder: *newRecorder(), stuck: true}
		begin := time.Now()
		h.ServeHTTP(w, newGet(t.Context(), id))
		require.Equal(t, 30*time.Second, time.Since(begin))
		require.False(t, known(h, id).out.listening())
	})
}

func TestListenerOutlivesTheTimeoutsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: 40 * time.Second})
		defer h.Close()
		client, closeAll := testkit.Serve(&http.Server{Handler: h, ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second})
		defer closeAll()
		open := newRecorder()
		h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`))
		id := open.Header().Get("Mcp-Session-Id")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://mcp.test", nil)
		require.NoError(t, err)
		r.Header = newGet(t.Context(), id).Header
		begun := time.Now()
		resp, err := client.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		var comments [3 * len(": keep-alive\n\n")]byte
		_, err = io.ReadFull(resp.Body, comments[:])
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begun), time.Minute)
		require.NoError(t, known(h, id).Notify(t.Context(), notification("n", "")))
		require.Equal(t, `{"jsonrpc":"2.0","method":"n"}`, eventsOf(t, resp).data())
	})
}

func TestListenersEndWithTheirCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: time.Second})
		defer h.Close()
		ctx := func() context.Context {
			return oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann", Expires: time.Now().Add(time.Minute)})
		}
		open := newRecorder()
		h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`).WithContext(ctx()))
		for range 2 { // the client resumes with another token
			begin := time.Now()
			w := newRecorder()
			h.ServeHTTP(w, newGet(ctx(), open.Header().Get("Mcp-Session-Id")))
			require.Equal(t, time.Minute, time.Since(begin))
			require.Equal(t, http.StatusOK, w.status)
		}
	})
}
