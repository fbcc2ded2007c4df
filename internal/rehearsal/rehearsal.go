// Package rehearsal is what package mcpkit and the tool that checks services from their source share, so that the tool says
// what a start of the server would.
package rehearsal

import (
	"encoding/json"
	"reflect"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// WellKnown are methods that mean something to Go programs; they are not for clients unless the annotation block says so.
var WellKnown = []string{
	"Start", "Close", "Shutdown", "String", "GoString", "Error", "Unwrap", "Is", "As", "Format", "ServeHTTP",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalBinary", "UnmarshalBinary",
	"MarshalYAML", "UnmarshalYAML", "Read", "Write", "Seek", "Len", "Less", "Swap", "Lock", "Unlock", "LogValue",
}

// A Service is all that mcpkit looks at when it registers one. Nothing of it is called.
type Service struct {
	Name    string       // of its type
	Type    reflect.Type // a struct with its blank and its embedded fields
	Methods []reflectx.Method
	Prefix  string
	OptIn   bool

	Words    reflectx.Words
	Provided []reflect.Type
}

// A Result is what came of registering a service.
type Result struct {
	Faults reflectx.Errors
	// Tools are the tools' definitions as the newest revision has them: a JSON array.
	Tools json.RawMessage
}

// Run registers a service with a server that nobody serves. Package mcpkit sets it.
var Run func(Service) Result
