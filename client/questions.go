package client

import (
	"context"
	"errors"
	"sync"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// questions are the requests of a legacy server over HTTP that are being answered: it may take one back on another stream than it came on, and
// while the call that it belongs to goes on. Connections that are one stream see to that themselves. The zero value holds none.
type questions struct {
	mu   sync.Mutex
	open map[string]*question // by ID, as JSON; guarded by mu
}

type question struct{ takeBack context.CancelCauseFunc }

// errTakenBack is the cause of the context's end when the server does not want the answer any more.
var errTakenBack = errors.New("client: the server does not wait for the answer any more")

// begin returns the context for answering the question id. Answered must be called.
func (qs *questions) begin(ctx context.Context, id jsonrpc.ID) (asked context.Context, answered func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	q, key := &question{cancel}, id.String()
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.open == nil {
		qs.open = map[string]*question{}
	}
	qs.open[key] = q
	return ctx, func() {
		qs.mu.Lock()
		if qs.open[key] == q { // a server may use an ID twice
			delete(qs.open, key)
		}
		qs.mu.Unlock()
		cancel(nil)
	}
}

// takenBack ends the answering of the question that n names. It may be answered already: the two crossed then.
func (qs *questions) takenBack(n *jsonrpc.Request) {
	id := n.Param("requestId")
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.open[string(id)]; q != nil {
		q.takeBack(errTakenBack)
	}
}
