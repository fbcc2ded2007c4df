package conn

import (
	"bytes"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// heldStep is how many bytes of a streamed result are spent at once.
const heldStep = 64 << 10

// A Held holds a streamed result in memory when it cannot be sent as it is produced. Its Write
// fails when no room is left, so a result is not read completely only to be refused.
type Held struct {
	Limit int64                  // the most bytes of one result; 0 is no limit
	Spend func(bytes int64) bool // reserves room; returns false if there is none
	Text  bytes.Buffer
	Spent int64 // bytes of room that are reserved
}

// Write implements [io.Writer].
func (h *Held) Write(p []byte) (int, error) {
	if h.Limit > 0 && int64(h.Text.Len()+len(p)) > h.Limit {
		return 0, jsonrpc.Errorf(jsonrpc.CodeInternalError,
			"the result is larger than %d bytes, and larger ones are sent over HTTP only", h.Limit)
	}
	for h.Spent < int64(h.Text.Len()+len(p)) {
		if !h.Spend(heldStep) {
			return 0, jsonrpc.Errorf(jsonrpc.CodeInternalError,
				"the result is too large to be held in memory; other responses wait to be read")
		}
		h.Spent += heldStep
	}
	return h.Text.Write(p)
}
