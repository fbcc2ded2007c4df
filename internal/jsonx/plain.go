//go:build mcpkit_plain

package jsonx

// fast disables the fast paths: the library and plain loops replace them.
const fast = false
