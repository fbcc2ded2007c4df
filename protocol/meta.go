package protocol

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// Keys of _meta that the specification defines (basic, "_meta").
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"    // request, modern, required: string
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities" // request, modern, required: ClientCapabilities
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"         // request, modern: Implementation
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"           // request, modern: LoggingLevel
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"         // result, modern: Implementation
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"     // messages of a listen stream: the id of its request
	MetaRelatedTask        = "io.modelcontextprotocol/related-task"       // 2025-11-25 alone
	MetaProgressToken      = "progressToken"                              // request: string or integer
	MetaTraceParent        = "traceparent"                                // W3C Trace Context
	MetaTraceState         = "tracestate"                                 // W3C Trace Context
	MetaBaggage            = "baggage"                                    // W3C Baggage
)

// A Meta is the _meta member of params, results and many objects. Nil is absent; an empty one is
// written as {}. The values are kept as they came.
type Meta map[string]json.RawMessage

// Decode decodes the value of key into v and reports whether the key is there.
func (m Meta) Decode(key string, v any) (bool, error) {
	raw, ok := m[key]
	if !ok {
		return false, nil
	}
	return true, jsonx.Unmarshal(raw, v)
}

// Set sets key to the JSON of v. The map must not be nil.
func (m Meta) Set(key string, v any) error {
	raw, err := jsonx.Marshal(v)
	if err != nil {
		return err
	}
	m[key] = raw
	return nil
}

// AppendJSON appends m as a JSON object, its keys sorted.
func (m Meta) AppendJSON(dst []byte) ([]byte, error) { return appendObject(dst, m) }

// An Object is a JSON object whose members are kept as they came: an open settings object, where {}
// says "supported" and a nil Object says nothing.
type Object map[string]json.RawMessage

// IsModern reports whether req belongs to the modern era: its _meta names a protocol version, or
// headerVersion, the value of the MCP-Protocol-Version header if there is one, is set and is none
// of the four legacy revisions. A version that nobody knows is modern too, so that it is refused in
// the modern way.
func IsModern(headerVersion string, req *jsonrpc.Request) bool {
	if headerVersion != "" && !Version(headerVersion).Legacy() {
		return true
	}
	return jsonx.Member(req.Param("_meta"), MetaProtocolVersion) != nil
}
