// Package relay is what package mcpkit lets a proxy do beyond what programs may: to register the definitions of another server
// as they came, and to pass questions and log messages on as they are. Package mcpkit sets the functions.
package relay

import (
	"context"
	"encoding/json"
)

// Definitions are all that another server has, each an object as that server gave it.
type Definitions struct {
	Tools, Prompts, Resources, Templates []json.RawMessage

	Site      string   // where they come from, for errors
	Scopes    []string // what each of them demands
	Completes bool     // the other server completes arguments
}

// A Handler answers the calls of everything that was registered, found by the call of its context.
//
// It returns a result of package protocol.
type Handler func(ctx context.Context) (any, error)

var (
	// Replace makes the definitions all that server, a *mcpkit.Server, has of this kind, and tells its clients of lists that
	// differ from before. Skipped are the definitions that it cannot have, and why.
	Replace func(server any, d Definitions, h Handler) (skipped []error, err error)

	// Ask puts a question to the client of the call that ctx belongs to. Key names it among those of the call.
	Ask func(ctx context.Context, method string, params json.RawMessage, key string) (json.RawMessage, error)

	// Pending reports whether err says that the answer of a question is not there yet: the call has to return it.
	Pending func(err error) bool

	// Log sends a log message to the client of the call that ctx belongs to, if it wants that level.
	Log func(ctx context.Context, params json.RawMessage)

	// Has reports whether the server that call, a *mcpkit.Call, is made of has the resource, as far as its caller may see.
	Has func(call any, uri string) bool
)
