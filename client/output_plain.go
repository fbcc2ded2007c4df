//go:build mcpkit_plain

package client

// plainOutputs leaves every output to the validator.
const plainOutputs = true
