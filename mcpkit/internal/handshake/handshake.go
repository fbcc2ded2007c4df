// Package handshake has what initialize agrees on with a legacy client, and its form within the ID of
// a sealed session.
package handshake

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

const (
	maxText  = 64  // bytes of the name and of the version of a client that are kept
	maxBytes = 148 // bytes of an agreement
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

// Bytes returns the agreement with the extensions of the client that the server has: a byte for the
// version, the bits of the capabilities, name and version of the client, and a digest of each
// extension.
func (a *Agreement) Bytes(extensions []string) []byte {
	b := []byte{byte(slices.Index(protocol.SupportedLegacy, a.Version))}
	b = binary.BigEndian.AppendUint16(b, bitsOf(&a.Capabilities))
	var digests []byte
	for _, id := range extensions {
		if a.Capabilities.Extensions[id] != nil {
			digests = binary.BigEndian.AppendUint32(digests, digestOf(id))
		}
	}
	room := max(maxBytes-len(b)-2-len(digests), 0)
	for _, text := range []string{a.Client.Name, a.Client.Version} {
		text = strings.ToValidUTF8(text[:min(len(text), maxText, room)], "") // a part of a character goes
		room -= len(text)
		b = append(append(b, byte(len(text))), text...)
	}
	b = append(b, digests...)
	return b[:min(len(b), maxBytes)]
}

var errDamaged = errors.New("mcpkit: the session is not one that this server stored")

// Read is the inverse of Bytes.
func Read(b []byte, extensions []string) (a Agreement, err error) {
	if len(b) < 5 || int(b[0]) >= len(protocol.SupportedLegacy) {
		return a, errDamaged
	}
	a.Version = protocol.SupportedLegacy[b[0]]
	a.Capabilities = capabilitiesOf(binary.BigEndian.Uint16(b[1:]))
	rest := b[3:]
	for _, text := range []*string{&a.Client.Name, &a.Client.Version} {
		if len(rest) == 0 || len(rest) <= int(rest[0]) {
			return a, errDamaged
		}
		*text, rest = string(rest[1:1+rest[0]]), rest[1+rest[0]:]
	}
	for ; len(rest) >= 4; rest = rest[4:] {
		known := slices.IndexFunc(extensions, func(id string) bool { return digestOf(id) == binary.BigEndian.Uint32(rest) })
		if known < 0 {
			continue
		}
		if a.Capabilities.Extensions == nil {
			a.Capabilities.Extensions = map[string]protocol.Object{}
		}
		a.Capabilities.Extensions[extensions[known]] = protocol.Object{}
	}
	return a, nil
}

func digestOf(extension string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(extension)) // never fails
	return h.Sum32()
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
		if includes(declared, []byte(capability)) {
			bits |= 1 << i
		}
	}
	return bits
}

// includes reports whether an object has all that the capability has.
func includes(object, capability []byte) bool {
	for name, part := range jsonx.Members(capability) {
		if value := jsonx.Member(object, jsonx.String(name)); value == nil || jsonx.Kind(value) == 'f' || !includes(value, part) {
			return false
		}
	}
	return true
}

func capabilitiesOf(bits uint16) (c protocol.ClientCapabilities) {
	for i, capability := range capabilities {
		if bits&(1<<i) != 0 {
			_ = jsonx.Unmarshal([]byte(capability), &c) // adds to what is there
		}
	}
	return c
}
