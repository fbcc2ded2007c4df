package mcptest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// pipes is a handler that forwards messages through a pair of pipes to the stdio transport. It
// reads line by line, so the notifications of a call always arrive before its response.
type pipes struct {
	out    *io.PipeWriter // to the server
	in     *io.PipeReader
	served chan error    // the result of Serve
	read   chan struct{} // closed at the end of the input

	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan *jsonrpc.Response // by request ID; nil after the disconnect; guarded by mu
	peers   []transport.Peer                      // of the calls in flight; guarded by mu
	session *transport.Session                    // guarded by mu
}

// startPipes serves h on pipes.
func startPipes(h transport.Handler) *pipes {
	serverIn, out := io.Pipe()
	in, serverOut := io.Pipe()
	p := &pipes{out: out, in: in, served: make(chan error, 1), read: make(chan struct{}), waiting: map[jsonrpc.ID]chan *jsonrpc.Response{}}
	server := stdio.NewIO(serverIn, serverOut, &stdio.Options{Logger: slog.New(slog.DiscardHandler)})
	// Ends when close closes the pipe.
	go func() { p.served <- server.Serve(context.Background(), h) }()
	// Ends when the transport closes its output.
	go p.readAll()
	return p
}

// close disconnects the client.
func (p *pipes) close() error {
	_ = p.out.Close() // always nil
	err := <-p.served
	<-p.read
	return err
}

// ServeRPC sends a message and returns the response.
func (p *pipes) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if req.IsNotification() {
		p.write(jsonrpc.AppendRequest(nil, req))
		return nil
	}
	answered := make(chan *jsonrpc.Response, 1)
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server closed its output")}
	}
	p.waiting[req.ID] = answered
	p.peers, p.session = append(p.peers, peer), peer.Session()
	p.mu.Unlock()
	defer p.forget(req.ID, peer)
	p.write(jsonrpc.AppendRequest(nil, req))
	select {
	case resp := <-answered:
		if version := jsonx.Member(resp.Result, "protocolVersion"); version != nil && req.Method == protocol.MethodInitialize {
			peer.Session().SetVersion(jsonx.String(version)) // the server has only seen the session of its transport
		}
		return resp
	case <-ctx.Done():
		if n, err := jsonrpc.NewNotification(protocol.NotificationCancelled, map[string]jsonrpc.ID{"requestId": req.ID}); err == nil {
			p.write(jsonrpc.AppendRequest(nil, n))
		}
		return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "%v", context.Cause(ctx))}
	}
}

func (p *pipes) forget(id jsonrpc.ID, peer transport.Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
	if i := slices.Index(p.peers, peer); i >= 0 {
		p.peers = slices.Delete(p.peers, i, i+1)
	}
}

// write writes a line. If the server has disconnected, readAll reports it.
func (p *pipes) write(message []byte) {
	_, _ = p.out.Write(append(message, '\n'))
}

// readAll handles the messages of the server in order.
func (p *pipes) readAll() {
	defer close(p.read)
	lines := bufio.NewReader(p.in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		msg, bad := jsonrpc.Decode(line)
		if bad != nil {
			_ = p.in.CloseWithError(errors.New("mcptest: the server wrote a line that is not a JSON-RPC message"))
			break
		}
		p.handle(&msg)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, w := range p.waiting {
		w <- &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server closed its output before it responded to %s", id)}
	}
	p.waiting = nil
}

func (p *pipes) handle(msg *jsonrpc.Message) {
	p.mu.Lock()
	var peer transport.Peer
	if n := len(p.peers); n > 0 {
		peer = p.peers[n-1]
	}
	session := p.session
	var answered chan *jsonrpc.Response
	if r := msg.Response; r != nil && p.waiting != nil {
		answered = p.waiting[r.ID]
		delete(p.waiting, r.ID)
	}
	p.mu.Unlock()
	switch {
	case answered != nil:
		answered <- msg.Response
	case msg.Request == nil: // the response to a cancelled request
	case !msg.Request.IsNotification() && peer != nil:
		// Ends when the client has answered or disconnected.
		go p.ask(msg.Request, peer)
	case peer != nil:
		_ = peer.Notify(context.Background(), msg.Request)
	case session != nil:
		_ = session.Notify(context.Background(), msg.Request)
	}
}

// ask forwards a request of the server to the client.
func (p *pipes) ask(req *jsonrpc.Request, peer transport.Peer) {
	id := req.ID // the client gets another one
	resp, err := peer.Call(context.Background(), req)
	if err != nil {
		resp = &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "%v", err)}
	}
	answer := *resp
	answer.ID = id
	p.write(jsonrpc.AppendResponse(nil, &answer))
}
