//go:build mcpkit_plain

package duplex

// leads is off: each request runs on a goroutine beside the one that reads.
const leads = false
