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

// Bytes returns the agreement with the extensions of the client that the server has: a byte for the
// version, the bits of the capabilities, name and version of the client, and a digest of each
// extension.
func (a *Agreement) Bytes(extensions []string) []byte {
	b := []byte{byte(slices.Index(protocol.SupportedLegacy, a.Version))}
	b = binary.BigEndian.AppendUint16(b, capabilityBits(&a.Capabilities))
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
	if a.Capabilities, err = capabilitiesOf(binary.BigEndian.Uint16(b[1:])); err != nil {
		return a, err
	}
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
var capabilities = [...]struct{ name, part string }{
	{"roots", ""}, {"roots", "listChanged"},
	{"sampling", ""}, {"sampling", "context"}, {"sampling", "tools"},
	{"elicitation", ""}, {"elicitation", "form"}, {"elicitation", "url"},
}

func capabilityBits(c *protocol.ClientCapabilities) (bits uint16) {
	declared, _ := jsonx.Marshal(c) // it was decoded
	for i, known := range capabilities {
		value := jsonx.Member(declared, known.name)
		if known.part != "" {
			value = jsonx.Member(value, known.part)
		}
		if value != nil && jsonx.Kind(value) != 'f' {
			bits |= 1 << i
		}
	}
	return bits
}

func capabilitiesOf(bits uint16) (c protocol.ClientCapabilities, err error) {
	declared := map[string]map[string]any{}
	for i, known := range capabilities {
		switch {
		case bits&(1<<i) == 0:
		case known.part == "":
			declared[known.name] = map[string]any{}
		case known.part == "listChanged":
			declared[known.name][known.part] = true
		default:
			declared[known.name][known.part] = map[string]any{}
		}
	}
	text, err := jsonx.Marshal(declared)
	if err != nil {
		return c, err
	}
	return c, jsonx.Unmarshal(text, &c)
}
