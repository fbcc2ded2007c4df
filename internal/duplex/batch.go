package duplex

import (
	"encoding/json"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// receiveBatch records the messages of a JSON array. Only version 2025-03-26 has batches.
func (l *Link) receiveBatch(elements []json.RawMessage, bad *jsonrpc.Response, from Origin) {
	l.awaitHandshake()
	if l.session.Version() != batchVersion {
		bad = &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"batches exist only in %s; send each message by itself", batchVersion)}
	}
	if bad != nil {
		if l.opts.Client {
			l.opts.Logger.Warn("duplex: the peer sent a batch that is not accepted", "fault", bad.Error.Message)
		} else {
			l.refuse(bad)
		}
		return
	}
	b := &batch{out: &l.out, open: 1}
	for _, element := range elements {
		m, bad := jsonrpc.Decode(element)
		switch {
		case m.Response != nil:
			l.requests.Answer(m.Response)
		case bad != nil:
			if refusal := l.faulty(element, malformed, bad); refusal != nil {
				b.add(refusal.ID, refusal)
			}
		case m.Request.IsNotification():
			l.receiveNotification(m.Request, len(element), from)
		case m.Request.Method == protocol.MethodInitialize:
			b.add(m.Request.ID, &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be in a batch")})
		case protocol.IsModern("", m.Request):
			b.add(m.Request.ID, &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a request of a modern version must not be in a batch")})
		default:
			c, refused := l.beginCall(m.Request, len(element), from)
			if refused != nil {
				b.add(m.Request.ID, &jsonrpc.Response{Error: refused})
				continue
			}
			c.batch = b
			b.mu.Lock()
			b.open++
			b.mu.Unlock()
			if l.startsNow(c) {
				l.workers.run(c.serve)
			}
		}
	}
	b.closeOne(nil)
}

// A batch collects the responses to a JSON array of messages. Its requests stay in flight until it
// is sent.
type batch struct {
	out *output

	mu       sync.Mutex
	open     int      // unanswered requests, plus one while the array is read; guarded by mu
	answered []*call  // guarded by mu
	parts    [][]byte // responses; guarded by mu
	reserved int64    // bytes of them; guarded by mu
}

// endRequest ends the request c of b with the response resp.
func (b *batch) endRequest(c *call, resp *jsonrpc.Response) {
	if resp != nil && c.entry.Wanted() {
		b.add(c.entry.Request.ID, resp)
	}
	b.closeOne(c)
}

// add adds the response r to the request id.
func (b *batch) add(id jsonrpc.ID, r *jsonrpc.Response) {
	out := *r
	out.ID = id
	part, reserved := b.encode(&out)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts = append(b.parts, part)
	b.reserved += reserved
}

// encode encodes r and reserves its bytes. If there is no room, or its Stream fails, it encodes an
// error instead.
func (b *batch) encode(r *jsonrpc.Response) (part []byte, reserved int64) {
	if streams(r) {
		w := &ledger.Held{Spend: func(n int64) bool { return b.out.reserve(n) == nil }}
		if err := writeStream(w, r); err != nil {
			b.out.unreserve(w.Spent)
			return jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: r.ID, Error: r.Broken(err)}), 0
		}
		return w.Text.Bytes(), w.Spent
	}
	part = jsonrpc.AppendResponse(make([]byte, 0, size(r)), r)
	reserved = int64(len(part))
	if refused := b.out.reserve(reserved); refused != nil {
		return jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: r.ID, Error: refused}), 0
	}
	return part, reserved
}

// closeOne ends one request, c if it is not nil, and sends the array after the last one. An empty
// array is not sent.
func (b *batch) closeOne(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c != nil {
		b.answered = append(b.answered, c)
	}
	if b.open--; b.open > 0 {
		return
	}
	b.out.array(b.parts, b.reserved, func() {
		for _, c := range b.answered {
			c.entry.End()
		}
	})
	b.parts = nil
}
