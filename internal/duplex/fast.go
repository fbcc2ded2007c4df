//go:build !mcpkit_plain

package duplex

// leads lets the goroutine that reads run quick requests. The build tag mcpkit_plain disables it,
// so that tests and benchmarks can compare.
const leads = true
