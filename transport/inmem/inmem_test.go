package inmem_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// handler has a function for each method, and counts the sessions that have ended.
type handler struct{ ended int }

func (h *handler) SessionEnded(*transport.Session) { h.ended++ }

func (h *handler) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	switch req.Method {
	case "initialize":
		peer.Session().SetVersion("2025-11-25")
	case "block":
		<-ctx.Done()
	case "nothing":
		return nil
	case "fail":
		return &jsonrpc.Response{Error: jsonrpc.Errorf(-32000, "no")}
	case "echo":
		return &jsonrpc.Response{Result: req.Params}
	case "stream":
		return &jsonrpc.Response{Stream: func(w io.Writer) error {
			_, err := io.WriteString(w, `[1]`)
			return err
		}}
	case "broken stream":
		return &jsonrpc.Response{Stream: func(io.Writer) error { return errors.New("no more") }}
	case "ask":
		q, _ := jsonrpc.NewRequest(jsonrpc.ID{}, "roots/list", nil)
		resp, err := peer.Call(ctx, q)
		if err != nil {
			return &jsonrpc.Response{Error: jsonrpc.Errorf(-32000, "%v", err)}
		}
		return resp
	}
	return &jsonrpc.Response{}
}

func TestResponses(t *testing.T) {
	conn := inmem.Connect(t.Context(), &handler{})
	for _, test := range []struct{ id, method, want string }{
		{`1`, "ask", `"error":{"code":-32000,"message":"transport: this peer takes no requests from the server"}`},
		{`1`, "initialize", `"result":{}`},
		{`"a"`, "echo", `"result":{"x":1}`},
		{`2`, "fail", `"error":{"code":-32000,"message":"no"}`},
		{`2`, "stream", `"result":[1]`},
		{`2`, "broken stream", `"error":{"code":-32603,"message":"internal error"}`},
		{`2`, "nothing", `"error":{"code":-32603,"message":"internal error"}`},
		{`2`, "ask", `"error":{"code":-32601,"message":"method not found: roots/list"}`},
	} {
		t.Run(test.method, func(t *testing.T) {
			m, _ := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":` + test.id + `,"method":"` + test.method + `","params":{"x":1}}`))
			resp, err := conn.Do(t.Context(), m.Request)
			require.NoError(t, err)
			require.Equal(t, `{"jsonrpc":"2.0","id":`+test.id+`,`+test.want+`}`, string(jsonrpc.AppendResponse(nil, resp)))
		})
	}
	require.NoError(t, conn.Close())
}

func TestCallsHaveParams(t *testing.T) {
	conn := inmem.Connect(t.Context(), &handler{})
	defer conn.Close()
	resp, err := conn.Call(t.Context(), "echo", map[string]int{"a": 1})
	require.NoError(t, err)
	require.Equal(t, `{"a":1}`, string(resp.Result))
	require.True(t, resp.ID.IsValid())

	_, err = conn.Call(t.Context(), "echo", []int{1})
	require.EqualError(t, err, `jsonrpc: params of "echo" must be a JSON object; []int encodes as something else`)
	require.EqualError(t, conn.Notify(t.Context(), "echo", []int{1}), `jsonrpc: params of "echo" must be a JSON object; []int encodes as something else`)
}

func TestCallsEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(conn *inmem.Conn, stop context.CancelFunc, cancel context.CancelFunc)
		err  error
	}{
		{"with their context", func(_ *inmem.Conn, _, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"with the connection's context", func(_ *inmem.Conn, stop, _ context.CancelFunc) { stop() }, transport.ErrClosed},
		{"with the connection", func(conn *inmem.Conn, _, _ context.CancelFunc) { conn.Close() }, transport.ErrClosed},
		{"with a notification", func(conn *inmem.Conn, _, _ context.CancelFunc) {
			_ = conn.Notify(context.Background(), "notifications/cancelled", map[string]int{"requestId": 1})
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{}
				whole, stop := context.WithCancel(t.Context())
				one, cancel := context.WithCancel(t.Context())
				defer cancel()
				defer stop()
				conn := inmem.Connect(whole, h)
				ended := make(chan error, 1)
				go func() {
					_, err := conn.Call(one, "block", nil)
					ended <- err
				}()
				synctest.Wait()
				test.end(conn, stop, cancel)
				if test.err == nil {
					require.EqualError(t, <-ended, "cancelled by the peer")
				} else {
					require.ErrorIs(t, <-ended, test.err)
				}
				require.NoError(t, conn.Close())
				require.NoError(t, conn.Close())
				require.Equal(t, 1, h.ended)
				_, err := conn.Call(t.Context(), "echo", nil)
				require.ErrorIs(t, err, transport.ErrClosed)
				require.ErrorIs(t, conn.Notify(t.Context(), "echo", nil), transport.ErrClosed)
			})
		})
	}
}

// A raw client sends and receives encoded messages.
type raw struct {
	conn *inmem.Conn
	out  chan []byte
	over chan struct{} // closed by Close
	done chan struct{}
	once sync.Once
	runs sync.WaitGroup

	mu      sync.Mutex
	answers map[jsonrpc.ID]chan *jsonrpc.Response
}

func connectRaw(t *testing.T, h transport.Handler) transporttest.Conn {
	r := &raw{
		conn: inmem.Connect(t.Context(), h), out: make(chan []byte), over: make(chan struct{}), done: make(chan struct{}),
		answers: make(map[jsonrpc.ID]chan *jsonrpc.Response),
	}
	r.conn.OnNotification = func(n *jsonrpc.Request) { r.put(jsonrpc.AppendRequest(nil, n)) }
	r.conn.OnRequest = r.asked
	return r
}

func (r *raw) put(message []byte) {
	select {
	case r.out <- message:
	case <-r.over:
	}
}

func (r *raw) asked(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response {
	answer := make(chan *jsonrpc.Response, 1)
	r.mu.Lock()
	r.answers[req.ID] = answer
	r.mu.Unlock()
	r.put(jsonrpc.AppendRequest(nil, req))
	select {
	case resp := <-answer:
		return resp
	case <-ctx.Done():
		return nil
	}
}

func (r *raw) Send(message []byte) error {
	m, bad := jsonrpc.Decode(message)
	switch {
	case bad != nil:
		r.runs.Go(func() { r.put(jsonrpc.AppendResponse(nil, bad)) })
	case m.Response != nil:
		r.mu.Lock()
		defer r.mu.Unlock()
		if answer := r.answers[m.Response.ID]; answer != nil {
			delete(r.answers, m.Response.ID)
			answer <- m.Response
		}
	case m.Request.IsNotification():
		return r.conn.Notify(context.Background(), m.Request.Method, m.Request.Params)
	default:
		r.runs.Go(func() {
			if resp, err := r.conn.Do(context.Background(), m.Request); err == nil {
				r.put(jsonrpc.AppendResponse(nil, resp))
			}
		})
	}
	return nil
}

func (r *raw) Receive() ([]byte, error) {
	select {
	case message := <-r.out:
		return message, nil
	case <-r.over:
		return nil, transport.ErrClosed
	}
}

func (r *raw) Close() error {
	r.once.Do(func() {
		close(r.over)
		_ = r.conn.Close()
		r.runs.Wait()
		close(r.done)
	})
	return nil
}

func (r *raw) Stop()                 {}
func (r *raw) Done() <-chan struct{} { return r.done }

func TestContract(t *testing.T) {
	transporttest.RunInBubble(t, connectRaw, transporttest.Unlimited, transporttest.Undrained)
}
