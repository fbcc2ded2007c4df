package duplex

import (
	"bytes"
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// A head is what the beginning of a message says of it, as far as it goes.
type head struct {
	id       jsonrpc.ID
	request  bool // or a notification
	response bool
}

// headOf reads the beginning of a message that is not there whole.
func headOf(beginning []byte) (h head) {
	d := json.NewDecoder(bytes.NewReader(beginning))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return h
	}
	var id jsonrpc.ID
	for {
		name, err := d.Token()
		if err != nil {
			return h
		}
		h.id = id // something comes behind it, so it is whole
		switch name {
		case "method":
			h.request = true
		case "result", "error":
			h.response = true
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return h
		}
		if name == "id" {
			_ = id.UnmarshalJSON(value) // one that is none stays none
		}
	}
}

// unread deals with a message that was too much to be read: the call that it was about fails, rather than wait for nothing.
func (l *Link) unread(bad *BadMessageError) task {
	h := headOf(bad.Head)
	refusal := &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", bad.Text)}
	if h.request {
		refusal.ID = h.id
		return task{refusal: refusal}
	}
	if h.id.IsValid() {
		refusal.ID = h.id
	} else if h.response {
		refusal.ID = l.onlyAsked()
	}
	if l.isAsked(refusal.ID) {
		l.answered(refusal)
		return task{}
	}
	refusal.ID = jsonrpc.ID{}
	return task{refusal: refusal}
}

// onlyAsked is the ID of our one request that is not answered; none where there are several.
func (l *Link) onlyAsked() (id jsonrpc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asked) == 1 {
		for id = range l.asked {
		}
	}
	return id
}

func (l *Link) isAsked(id jsonrpc.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.asked[id]
	return ok
}
