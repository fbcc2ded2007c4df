package ledger

import (
	"bytes"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// heldStep is how many bytes of a streamed result are spent at a time.
const heldStep = 64 << 10

// A Held holds a streamed result in memory, where it cannot be sent as it comes. Its Write fails when there is no more room, so
// a result is never read into memory only to be refused.
type Held struct {
	Spend func(bytes int64) bool // takes room for so many bytes; false if there is none
	Text  bytes.Buffer
	Spent int64 // bytes of room that were taken
}

// Write implements [io.Writer].
func (h *Held) Write(p []byte) (int, error) {
	for h.Spent < int64(h.Text.Len()+len(p)) {
		if !h.Spend(heldStep) {
			return 0, jsonrpc.Errorf(jsonrpc.CodeInternalError,
				"the result is too large to be held in memory; send its request alone, and read the response as it comes")
		}
		h.Spent += heldStep
	}
	return h.Text.Write(p)
}
