package mcptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
)

// A player sends the client's messages of a transcript.
type player struct {
	t       testing.TB
	tape    *tape
	script  []line
	conn    *inmem.Conn
	flights sync.WaitGroup
	ended   context.Context // ends with the transcript
	cancel  context.CancelFunc

	asked   chan struct{}          // the server sent a request
	answers chan *jsonrpc.Response // the client's responses
}

// answer waits for the transcript's response to a request of the server.
func (p *player) answer(ctx context.Context, _ *jsonrpc.Request) *jsonrpc.Response {
	select {
	case p.asked <- struct{}{}:
		select {
		case resp := <-p.answers:
			return resp
		case <-p.ended.Done():
		case <-ctx.Done():
		}
	case <-p.ended.Done():
	case <-ctx.Done():
	}
	return &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "the transcript has no response")}
}

// play sends all messages. It returns why it stopped, or "".
func (p *player) play() (why string) {
	p.ended, p.cancel = context.WithCancel(p.t.Context())
	var flight <-chan struct{} // closed when the last request has a response
	waiting := 0               // requests of the server without a response
	for i, l := range p.script {
		if !l.client {
			continue
		}
		msg, bad := jsonrpc.Decode([]byte(p.tape.restore(l.text)))
		if bad != nil {
			return fmt.Sprintf("line %d: this is not a JSON-RPC message: %s", i+1, bad.Error.Message)
		}
		before, _ := p.tape.said()
		switch {
		case msg.Response != nil:
			if waiting == 0 {
				return fmt.Sprintf("line %d: the client responds, but the server has not sent a request\n  %s", i+1, l.text)
			}
			waiting--
			select {
			case p.answers <- msg.Response:
			case <-time.After(replayPatience):
				return fmt.Sprintf("line %d: the server no longer waits for the response\n  %s", i+1, l.text)
			}
		default:
			flight = p.send(msg.Request)
		}
		asks, why := p.wait(flight, i, before, msg.Request)
		if why != "" {
			return why
		}
		waiting += asks
	}
	return ""
}

// send starts a request or a notification, and returns a channel that is closed when it is done.
func (p *player) send(req *jsonrpc.Request) <-chan struct{} {
	done := make(chan struct{})
	// Ends when the server has responded, or with the transcript.
	p.flights.Go(func() {
		defer close(done)
		if req.IsNotification() {
			_ = p.conn.Notify(p.ended, req.Method, req.Params) // the tape has what follows
		} else {
			_, _ = p.conn.Do(p.ended, req)
		}
	})
	return done
}

// wait waits after line i of the script until the server has responded, sends a request or, during
// a subscription, has sent as many messages as in the script.
func (p *player) wait(flight <-chan struct{}, i, before int, req *jsonrpc.Request) (asks int, why string) {
	end := len(p.script)
	if next := slices.IndexFunc(p.script[i+1:], func(l line) bool { return l.client }); next >= 0 {
		end = i + 1 + next
	}
	enough := -1 // messages of the server after which to continue without a response
	if req != nil && req.Method == protocol.MethodSubscriptionsListen {
		enough = max(1, end-i-1) // at least that the subscription began
	}
	late := time.After(replayPatience)
	for {
		n, grown := p.tape.said()
		if enough >= 0 && n-before >= enough {
			return 0, ""
		}
		select {
		case <-flight:
			return 0, ""
		case <-p.asked:
			return 1, ""
		case <-grown:
		case <-late:
			return 0, fmt.Sprintf("line %d: the server does not respond\n  %s", i+1, p.script[i].text)
		}
	}
}
