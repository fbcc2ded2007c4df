package duplex

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// prepareBatch enters the messages of a JSON array into the tables, as prepare does with one. Only one revision
// has batches.
func (l *Link) prepareBatch(elements []json.RawMessage, bad *jsonrpc.Response, from Origin) task {
	l.awaitHandshake()
	if l.session.Version() != batchVersion {
		bad = &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"batches are for sessions of revision %s; send each message alone", batchVersion)}
	}
	if bad != nil {
		return task{refusal: bad}
	}
	b := new(batch)
	for _, element := range elements {
		m, bad := jsonrpc.Decode(element)
		switch {
		case m.Response != nil:
			l.answered(m.Response)
		case bad != nil:
			b.add(bad.ID, bad)
		case m.Request.IsNotification():
			b.notes = l.note(m.Request, from) || b.notes
		case m.Request.Method == methodInitialize:
			b.add(m.Request.ID, &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch")})
		default:
			l.prepareMember(b, m.Request, len(element), from)
		}
	}
	return task{batch: b}
}

func (l *Link) prepareMember(b *batch, req *jsonrpc.Request, size int, from Origin) {
	c, ctx, refused := l.admit(req, size, from)
	if refused != nil {
		b.add(req.ID, &jsonrpc.Response{Error: refused})
		return
	}
	b.members = append(b.members, member{c, ctx})
}

// handleBatch runs the requests of b at the same time. Their answers go out as one array when all are there, or not at
// all when there are none.
func (l *Link) handleBatch(b *batch, t uint64) {
	var all sync.WaitGroup
	for _, m := range b.members {
		m.call.turn = t
		// Ends with the call, which is waited for below.
		all.Go(func() {
			resp := &jsonrpc.Response{Error: internalError} // if run does not return
			defer func() {
				if streams(resp) {
					m.call.finish()
					defer l.release(m.call)
					if !m.call.gone.Load() {
						b.add(m.call.req.ID, resp)
					}
				} else if l.release(m.call) && resp != nil {
					b.add(m.call.req.ID, resp)
				}
			}()
			resp = m.call.run(m.ctx)
		})
	}
	if b.notes {
		l.handleNotes(t)
	}
	all.Wait()
	if text := b.close(); text != nil {
		_ = l.out.add(l.base, false, func(dst []byte) []byte { return append(dst, text...) })
	}
}

// batch is a batch being handled, and the answer to it.
type batch struct {
	members []member // requests that were admitted
	notes   bool     // notifications are to be handled

	mu   sync.Mutex
	text []byte // the answer as far as it is there; guarded by mu
}

// A member is one request of a batch.
type member struct {
	call *call
	ctx  context.Context
}

// add adds the answer r to the request id.
func (b *batch) add(id jsonrpc.ID, r *jsonrpc.Response) {
	out := *r
	out.ID = id
	var one bytes.Buffer
	if err := writeStream(&one, &out); err != nil {
		one.Reset()
		_ = jsonrpc.WriteResponse(&one, &jsonrpc.Response{ID: id, Error: out.Broken(err)})
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
