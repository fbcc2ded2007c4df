// Package handshake has what initialize agrees on with a legacy client, and its form within the ID of
// a sealed session.
package handshake

import (
	"bytes"
	"errors"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

const (
	maxText       = 64  // bytes of the name and of the version of a client that are kept
	maxExtensions = 8   // that are kept
	maxBytes      = 148 // bytes of an agreement
)

// An Agreement is what a session keeps of its initialize.
type Agreement struct {
	Version      protocol.Version
	Client       protocol.Implementation
	Capabilities protocol.ClientCapabilities
}

// New returns what a session in the version keeps. Capabilities that the version does not have are left
// out.
func New(version protocol.Version, client protocol.Implementation, c protocol.ClientCapabilities) Agreement {
	switch {
	case c.Elicitation == nil:
	case version < protocol.V20250618:
		c.Elicitation = nil
	case version < protocol.V20251125:
		c.Elicitation = &protocol.ElicitationCapability{} // only forms
	}
	return Agreement{version, client, c}
}

// A record is an agreement within the ID of a session.
type record struct {
	Version      int      `json:"v"`           // its place in SupportedLegacy
	Capabilities uint16   `json:"c"`           // bits
	Name         string   `json:"n"`           // of the client
	Release      string   `json:"r"`           // the version of the client
	Extensions   []uint32 `json:"x,omitempty"` // a checksum of each
}

// Bytes returns the agreement with the extensions of the client that the server has. Long names and
// versions of clients are cut.
func (a *Agreement) Bytes(extensions []string) (b []byte) {
	r := record{Version: slices.Index(protocol.SupportedLegacy, a.Version), Capabilities: bitsOf(&a.Capabilities)}
	for _, id := range extensions {
		if a.Capabilities.Extensions[id] != nil && len(r.Extensions) < maxExtensions {
			r.Extensions = append(r.Extensions, crc32.ChecksumIEEE([]byte(id)))
		}
	}
	for room := maxText; b == nil || len(b) > maxBytes; room /= 2 { // escapes and extensions need room, too
		r.Name, r.Release = cut(a.Client.Name, room), cut(a.Client.Version, room)
		b, _ = jsonx.Marshal(r) // it always encodes
	}
	return b
}

// cut returns at most the first n bytes of a text, without a part of a character.
func cut(text string, n int) string { return strings.ToValidUTF8(text[:min(len(text), n)], "") }

// Read is the inverse of Bytes.
func Read(b []byte, extensions []string) (a Agreement, err error) {
	var r record
	if jsonx.Unmarshal(b, &r) != nil || r.Version < 0 || r.Version >= len(protocol.SupportedLegacy) {
		return a, errors.New("mcpkit: the session is not one that this server stored")
	}
	a.Version = protocol.SupportedLegacy[r.Version]
	a.Client = protocol.Implementation{Name: r.Name, Version: r.Release}
	a.Capabilities = capabilitiesOf(r.Capabilities)
	for _, id := range extensions {
		if !slices.Contains(r.Extensions, crc32.ChecksumIEEE([]byte(id))) {
			continue
		}
		if a.Capabilities.Extensions == nil {
			a.Capabilities.Extensions = map[string]protocol.Object{}
		}
		a.Capabilities.Extensions[id] = protocol.Object{}
	}
	return a, nil
}

// capabilities are those that are kept, each as the bit of its place.
var capabilities = [...]string{
	`{"roots":{}}`, `{"roots":{"listChanged":true}}`,
	`{"sampling":{}}`, `{"sampling":{"context":{}}}`, `{"sampling":{"tools":{}}}`,
	`{"elicitation":{}}`, `{"elicitation":{"form":{}}}`, `{"elicitation":{"url":{}}}`,
}

func bitsOf(c *protocol.ClientCapabilities) (bits uint16) {
	declared, _ := jsonx.Marshal(c) // it was decoded
	for i, capability := range capabilities {
		var more protocol.ClientCapabilities
		_, _ = jsonx.Unmarshal(declared, &more), jsonx.Unmarshal([]byte(capability), &more)
		if all, _ := jsonx.Marshal(more); bytes.Equal(all, declared) { // it was there
			bits |= 1 << i
		}
	}
	return bits
}

func capabilitiesOf(bits uint16) (c protocol.ClientCapabilities) {
	for i, capability := range capabilities {
		if bits&(1<<i) != 0 {
			_ = jsonx.Unmarshal([]byte(capability), &c) // adds to what is there
		}
	}
	return c
}
