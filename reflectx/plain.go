//go:build mcpkit_plain

package reflectx

// fast says that the general paths do what fast paths do otherwise.
const fast = false
