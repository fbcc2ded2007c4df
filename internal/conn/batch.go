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
	var refusals [][]byte
	for _, element := range elements {
		if refusal := c.receiveOne(element, from, b); refusal != nil {
			refusals = append(refusals, jsonrpc.AppendResponse(nil, refusal))
		}
	}
	b.closeOne(nil, refusals...)
}

// notInBatch returns why a request must not be in a batch, or nil.
func notInBatch(req *jsonrpc.Request) *jsonrpc.Error {
	switch {
	case req.Method == protocol.MethodInitialize:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be in a batch")
	case protocol.IsModern("", req.Param("_meta")):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a request of a modern version must not be in a batch")
	}
	return nil
}

// A batch collects the responses to a JSON array of messages. Its requests stay in flight until it
// is sent.
type batch struct {
	out *output

	mu       sync.Mutex
	open     int      // unanswered requests, plus one while the array is read; guarded by mu
	answered []*call  // guarded by mu
	parts    [][]byte // responses; guarded by mu
}

// join makes the response of k a part of b. Notifications have none, and b may be nil.
func (k *call) join(b *batch) {
	if b != nil && !k.entry.Request.IsNotification() {
		k.batch = b
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open++
	}
}

// closeOne ends one request, k if it is not nil, and sends the array after the last one. Parts that
// are nil are left out, and an empty array is not sent.
func (b *batch) closeOne(k *call, parts ...[]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts = append(b.parts, slices.DeleteFunc(parts, func(part []byte) bool { return part == nil })...)
	if k != nil {
		b.answered = append(b.answered, k)
	}
	if b.open--; b.open > 0 {
		return
	}
	var array []byte
	if len(b.parts) > 0 {
		array = slices.Concat([]byte{'['}, bytes.Join(b.parts, []byte{','}), []byte{']'})
	}
	b.out.send(array, b.answered...)
}
