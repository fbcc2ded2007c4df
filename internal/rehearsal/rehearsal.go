// Package rehearsal is what package mcpkit and the tool that checks services from their source share, so that the tool says
// what a start of the server would.
package rehearsal

// WellKnown are methods that mean something to Go programs; they are not for clients unless the annotation block says so.
var WellKnown = []string{
	"Start", "Close", "Shutdown", "String", "GoString", "Error", "Unwrap", "Is", "As", "Format", "ServeHTTP",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalBinary", "UnmarshalBinary",
	"MarshalYAML", "UnmarshalYAML", "Read", "Write", "Seek", "Len", "Less", "Swap", "Lock", "Unlock", "LogValue",
}
