//go:build !mcpkit_plain

package jsonx

// fast enables the fast paths of this package. The build tag mcpkit_plain disables them, so that
// tests and benchmarks can compare.
const fast = true
