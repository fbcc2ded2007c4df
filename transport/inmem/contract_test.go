package inmem_test

import (
	"context"
	"sync"
	"testing"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

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
