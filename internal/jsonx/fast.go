//go:build !mcpkit_plain

package jsonx

// fast says that the fast paths of this package are taken. The build tag mcpkit_plain leaves them
// out, so that tests and benchmarks can compare.
const fast = true
