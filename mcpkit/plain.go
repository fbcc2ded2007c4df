//go:build mcpkit_plain

package mcpkit

// respondsEarly is off: each method with a time limit has a goroutine of its own.
const respondsEarly = false
