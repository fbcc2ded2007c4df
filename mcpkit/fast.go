//go:build !mcpkit_plain

package mcpkit

// respondsEarly lets methods run on the goroutine of the transport. The build tag mcpkit_plain
// disables it, so that tests and benchmarks can compare.
const respondsEarly = true
