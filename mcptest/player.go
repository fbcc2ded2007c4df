package mcptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
)

// A player says the client's lines of a transcript.
type player struct {
	t       testing.TB
	tape    *tape
	script  []line
	conn    *inmem.Conn
	flights sync.WaitGroup
	ended   context.Context // the transcript is over
	cancel  context.CancelFunc

	asked   chan struct{}          // the server asks
	answers chan *jsonrpc.Response // what the client says to that
}

// answer waits for what the transcript says to a request of the server.
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
	return &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "the transcript has no answer")}
}

// play goes through the script. What it returns is why it could not to the end; "" when it did.
func (p *player) play() (why string) {
	p.ended, p.cancel = context.WithCancel(p.t.Context())
	var flight <-chan struct{} // closed when the last request is answered
	waiting := 0               // questions of the server
	for i, l := range p.script {
		if !l.client {
			continue
		}
		msg, bad := jsonrpc.Decode([]byte(p.tape.restore(l.text)))
		if bad != nil {
			return fmt.Sprintf("line %d: the client says what is no message: %s", i+1, bad.Error.Message)
		}
		before, _ := p.tape.said()
		switch {
		case msg.Response != nil:
			if waiting == 0 {
				return fmt.Sprintf("line %d: the client answers, but the server has not asked\n  %s", i+1, l.text)
			}
			waiting--
			select {
			case p.answers <- msg.Response:
			case <-time.After(replayPatience):
				return fmt.Sprintf("line %d: the server does not wait for the answer any more\n  %s", i+1, l.text)
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

// send begins a request or a notification; what it returns is closed when it is done.
func (p *player) send(req *jsonrpc.Request) <-chan struct{} {
	done := make(chan struct{})
	// Ends when the server has answered, or with the transcript.
	p.flights.Go(func() {
		defer close(done)
		if req.IsNotification() {
			_ = p.conn.Notify(p.ended, req.Method, req.Params) // what comes of it is on the tape
		} else {
			_, _ = p.conn.Do(p.ended, req)
		}
	})
	return done
}

// wait lets the server speak after line i of the script: until it has answered, asks or, while a subscription goes on, has said as much
// as it does there.
func (p *player) wait(flight <-chan struct{}, i, before int, req *jsonrpc.Request) (asks int, why string) {
	end := len(p.script)
	if next := slices.IndexFunc(p.script[i+1:], func(l line) bool { return l.client }); next >= 0 {
		end = i + 1 + next
	}
	enough := -1 // lines of the server after which it goes on without an answer
	if req != nil && req.Method == protocol.MethodSubscriptionsListen {
		enough = max(1, end-i-1) // it says at least that it listens
	}
	late := time.NewTimer(replayPatience)
	defer late.Stop()
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
		case <-late.C:
			return 0, fmt.Sprintf("line %d: the server does not answer\n  %s", i+1, p.script[i].text)
		}
	}
}
