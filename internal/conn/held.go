package conn

import "github.com/mcpkit/mcpkit-go/protocol/jsonrpc"

// ErrNoRoom is the error of a request if there is no memory left for it or its response.
var ErrNoRoom = jsonrpc.Errorf(jsonrpc.CodeInternalError,
	"busy: too many bytes of requests and unread responses are in memory; try again later")

// A Held holds in memory what cannot be passed on while it is produced, such as a streamed result.
// Its Write fails when no room is left, so nothing is read completely only to be refused.
type Held struct {
	Text []byte

	Limit int                    // of the length of Text; 0 is no limit
	Spend func(bytes int64) bool // takes room for that much more text; returns false if there is none
}

// Write implements [io.Writer].
func (h *Held) Write(p []byte) (int, error) {
	if h.Limit > 0 && len(h.Text)+len(p) > h.Limit {
		return 0, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the result is larger than %d bytes; "+
			"raise mcpkit.MaxResultBytes, or serve it over Streamable HTTP, which sends it while it is read", h.Limit)
	}
	if !h.Spend(int64(len(p))) {
		return 0, ErrNoRoom
	}
	h.Text = append(h.Text, p...)
	return len(p), nil
}
