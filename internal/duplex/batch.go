package duplex

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// batch handles the messages of a JSON array, which only one revision has. Its requests run at the same time;
// their answers go out as one array when all are there, or not at all when there are none.
func (l *Link) batch(elements []json.RawMessage, bad *jsonrpc.Response, t uint64, more bool) {
	if l.session.Version() != batchVersion {
		bad = &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"batches are for sessions of revision %s; send each message alone", batchVersion)}
	}
	if bad != nil {
		l.refuse(bad, more)
		return
	}
	var b batch
	var all sync.WaitGroup
	for _, element := range elements {
		m, bad := jsonrpc.Decode(element)
		switch {
		case m.Response != nil:
			l.answered(m.Response)
		case bad != nil:
			b.add(bad.ID, bad)
		case m.Request.IsNotification():
			l.notification(m.Request, t)
		default:
			l.member(&b, &all, m.Request, len(element), t)
		}
	}
	// The calls may take long, and the leader has to read their cancellations.
	all.Wait()
	if text := b.close(); text != nil {
		_ = l.out.add(l.base, more && l.turn.Load() == t, func(dst []byte) []byte { return append(dst, text...) })
	}
}

// member begins one request of a batch.
func (l *Link) member(b *batch, all *sync.WaitGroup, req *jsonrpc.Request, size int, t uint64) {
	if req.Method == methodInitialize {
		b.add(req.ID, &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch")})
		return
	}
	c, ctx, refused := l.admit(req, size, t)
	if refused != nil {
		b.add(req.ID, &jsonrpc.Response{Error: refused})
		return
	}
	// Ends with the call, which batch waits for.
	all.Go(func() {
		resp := c.run(ctx)
		if l.release(c) && resp != nil {
			b.add(req.ID, resp)
		}
	})
}

// batch is the answer to a batch. The zero value is empty.
type batch struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

// add adds the answer r to the request id.
func (b *batch) add(id jsonrpc.ID, r *jsonrpc.Response) {
	out := *r
	out.ID = id
	var one bytes.Buffer
	if err := writeStream(&one, &out); err != nil {
		one.Reset()
		_ = jsonrpc.WriteResponse(&one, &jsonrpc.Response{ID: id, Error: internalError})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text == nil {
		b.text = append(b.text, '[')
	} else {
		b.text = append(b.text, ',')
	}
	b.text = append(b.text, one.Bytes()...)
}

// close returns the array, nil when it is empty.
func (b *batch) close() []byte {
	if b.text == nil {
		return nil
	}
	return append(b.text, ']')
}
