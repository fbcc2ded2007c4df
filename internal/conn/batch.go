package conn

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// receiveBatch records the messages of a JSON array. Only version 2025-03-26 has batches.
func (c *Conn) receiveBatch(elements []json.RawMessage, bad *jsonrpc.Response, from Origin) {
	if c.handshake != nil {
		<-c.handshake // it agrees on the version
	}
	if c.session.Version() != batchVersion {
		bad = &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"batches exist only in %s; send each message by itself", batchVersion)}
	}
	if bad != nil {
		if c.opts.Client {
			c.opts.Logger.Warn("conn: the peer sent a batch that is not accepted", "fault", bad.Error.Message)
		} else {
			c.refuse(bad)
		}
		return
	}

	b := &batch{out: &c.out, open: 1}
	for _, element := range elements {
		m, bad := jsonrpc.Decode(element)
		switch {
		case m.Response != nil:
			c.requests.Answer(m.Response)
		case bad != nil:
			if refusal := c.faulty(element, malformed, bad); refusal != nil {
				b.refuse(refusal.ID, refusal.Error)
			}
		case m.Request.IsNotification():
			c.receiveNotification(m.Request, len(element), from)
		case m.Request.Method == protocol.MethodInitialize:
			b.refuse(m.Request.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be in a batch"))
		case protocol.IsModern("", m.Request.Param("_meta")):
			b.refuse(m.Request.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a request of a modern version must not be in a batch"))
		default:
			k, refused := c.begin(m.Request, len(element), from)
			if refused != nil {
				b.refuse(m.Request.ID, refused)
				continue
			}
			k.batch = b
			b.mu.Lock()
			b.open++
			b.mu.Unlock()
			c.start(k)
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
	room     int64    // reserved for them; guarded by mu
}

// refuse adds an error response.
func (b *batch) refuse(id jsonrpc.ID, err *jsonrpc.Error) {
	b.add(jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: id, Error: err}), 0)
}

// add adds a response, if it is not nil, for which so much room is reserved.
func (b *batch) add(part []byte, room int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if part != nil {
		b.parts = append(b.parts, part)
	}
	b.room += room
}

// closeOne ends one request, k if it is not nil, and sends the array after the last one. An empty
// array is not sent.
func (b *batch) closeOne(k *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k != nil {
		b.answered = append(b.answered, k)
	}
	if b.open--; b.open > 0 {
		return
	}
	array := slices.Concat([]byte{'['}, bytes.Join(b.parts, []byte{','}), []byte{']'})
	b.out.send(array, b.room, func() bool {
		for _, k := range b.answered {
			k.entry.End()
		}
		return len(b.parts) > 0
	})
}
