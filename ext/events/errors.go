package events

import (
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A Fault is a kind of error that the extension defines. What is wrong with params has the code of
// JSON-RPC.
type Fault int

// The faults, with the members of their data.
const (
	NotFound          Fault = iota // kind: "event" or "subscription"
	Forbidden                      // reason
	ResourceExhausted              // limit, max
	Unsupported                    // feature, value or reason
	CallbackEndpoint               // reason: one of the Fail constants
)

// A Profile is a reading of the extension: the sources differ in numbers. The zero value is what the
// clients of today accept.
type Profile int

// The profiles.
const (
	// Clients is the sketch that today's clients and servers follow.
	Clients Profile = iota
	// SEP3415 is the proposal's text of October 2026.
	SEP3415
)

// profiles are all differences between the profiles.
var profiles = [...]struct {
	codes            [CallbackEndpoint + 1]int // by Fault
	messageIDs       bool                      // the webhook-id of an occurrence is not its eventId
	unknownIsMissing bool                      // the end of a subscription that there is not is NotFound
}{
	Clients: {codes: [...]int{-32011, -32012, -32013, -32014, -32015}},
	SEP3415: {codes: [...]int{-32023, -32024, -32025, -32026, -32027}, messageIDs: true, unknownIsMissing: true},
}

// errorf returns the error of a fault. The data is a JSON object.
func (p Profile) errorf(f Fault, data map[string]any, format string, args ...any) *jsonrpc.Error {
	err := jsonrpc.Errorf(profiles[p].codes[f], format, args...)
	err.Data, _ = jsonx.Marshal(data) // strings and numbers always encode
	return err
}

// FaultOf returns the fault that an error of a server means, in any profile.
func FaultOf(err *jsonrpc.Error) (f Fault, ok bool) {
	for _, p := range profiles {
		for i, code := range p.codes {
			if err.Code == code {
				return Fault(i), true
			}
		}
	}
	return 0, false
}

// invalid is the error of params that are wrong.
func invalid(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
}
