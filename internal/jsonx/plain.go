//go:build mcpkit_plain

package jsonx

// fast says that the library and plain loops do what fast paths do otherwise.
const fast = false
