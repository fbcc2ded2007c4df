package conn

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Lost returns the response to a request whose process has ended. Its data is {"lost": true}, so
// that clients know that they may send a request again that does no harm when it runs twice.
func Lost(id jsonrpc.ID) *jsonrpc.Response {
	e := jsonrpc.Errorf(jsonrpc.CodeInternalError, "the process that ran the request has ended; the request may have had effects")
	e.Data = json.RawMessage(`{"lost":true}`)
	return &jsonrpc.Response{ID: id, Error: e}
}

// IsLost reports whether e is the error of [Lost].
func IsLost(e *jsonrpc.Error) bool {
	return e.Code == jsonrpc.CodeInternalError && string(jsonx.Member(e.Data, "lost")) == "true"
}
