// Package events sends events to clients that poll, that hold a stream open, or that named a
// webhook: the extension io.modelcontextprotocol/events, which is in its beta stage.
package events
