package protocol

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Keys of _meta that the specification defines (basic, "_meta").
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"    // request, modern, required: string
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities" // request, modern, required: ClientCapabilities
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"         // request, modern: Implementation
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"           // request, modern: LoggingLevel
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"         // result, modern: Implementation
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"     // messages of a listen stream: the id of its request
	MetaRelatedTask        = "io.modelcontextprotocol/related-task"       // 2025-11-25 only
	MetaProgressToken      = "progressToken"                              // request: string or integer
	MetaTraceParent        = "traceparent"                                // W3C Trace Context
	MetaTraceState         = "tracestate"                                 // W3C Trace Context
	MetaBaggage            = "baggage"                                    // W3C Baggage
)

// A Meta is the _meta member of params, results and many objects. Nil is absent; an empty one is
// written as {}. Values are written as they were received.
type Meta map[string]json.RawMessage

// Decode decodes the value of key into v and reports whether the key is there.
func (m Meta) Decode(key string, v any) (bool, error) {
	raw, ok := m[key]
	if !ok {
		return false, nil
	}
	return true, jsonx.Unmarshal(raw, v)
}

// Set sets key to the JSON of v. It panics if the map is nil.
func (m Meta) Set(key string, v any) error {
	raw, err := jsonx.Marshal(v)
	if err != nil {
		return err
	}
	m[key] = raw
	return nil
}

// AppendJSON appends m as a JSON object, with sorted keys.
func (m Meta) AppendJSON(dst []byte) ([]byte, error) { return appendObject(dst, m) }

// An Object is a JSON object with any members, such as the settings of a capability. {} means that
// the capability is supported, a nil Object that it is not.
type Object map[string]json.RawMessage

// IsModern reports whether a request belongs to a modern version: its _meta names a protocol version, or
// headerVersion is set and is not one of the four legacy versions. headerVersion is the value of
// the MCP-Protocol-Version header, or "". An unknown version counts as modern, so that it is
// refused in the modern way.
func IsModern(headerVersion string, meta json.RawMessage) bool {
	if headerVersion != "" && !Version(headerVersion).Legacy() {
		return true
	}
	return jsonx.Member(meta, MetaProtocolVersion) != nil
}
