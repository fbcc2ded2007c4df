//go:build !mcpkit_plain

package client

// plainOutputs turns acceptors off.
const plainOutputs = false
