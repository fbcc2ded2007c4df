package streamable

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
	maxAgreedText       = 64  // bytes of the name and of the version of a client that are kept
	maxAgreedExtensions = 8   // that are kept
	maxAgreedBytes      = 148 // bytes of an agreement
)

// An agreementRecord is an agreement within the ID of a session.
type agreementRecord struct {
	Version      int      `json:"v"`           // its place in SupportedLegacy
	Capabilities uint16   `json:"c"`           // bits
	Name         string   `json:"n"`           // of the client
	Release      string   `json:"r"`           // the version of the client
	Extensions   []uint32 `json:"x,omitempty"` // a checksum of each
}

// packAgreement returns what initialize agreed on, as text that fits into an ID, with those extensions of
// the client that the server has. Long names and versions of clients are cut.
func packAgreement(agreed []byte, extensions []string) (b []byte) {
	var p protocol.InitializeParams
	_ = jsonx.Unmarshal(agreed, &p) // StoreSession has encoded it
	version := slices.Index(protocol.SupportedLegacy, p.ProtocolVersion)
	r := agreementRecord{Version: version, Capabilities: bitsOf(&p.Capabilities)}
	for _, id := range extensions {
		if p.Capabilities.Extensions[id] != nil && len(r.Extensions) < maxAgreedExtensions {
			r.Extensions = append(r.Extensions, crc32.ChecksumIEEE([]byte(id)))
		}
	}
	for room := maxAgreedText; b == nil || len(b) > maxAgreedBytes; room /= 2 { // escapes and extensions need room, too
		r.Name, r.Release = cut(p.ClientInfo.Name, room), cut(p.ClientInfo.Version, room)
		b, _ = jsonx.Marshal(r) // it always encodes
	}
	return b
}

// cut returns at most the first n bytes of a text, without a part of a character.
func cut(text string, n int) string { return strings.ToValidUTF8(text[:min(len(text), n)], "") }

// unpackAgreement is the inverse of packAgreement.
func unpackAgreement(b []byte, extensions []string) ([]byte, error) {
	var r agreementRecord
	if jsonx.Unmarshal(b, &r) != nil || r.Version < 0 || r.Version >= len(protocol.SupportedLegacy) {
		return nil, errors.New("streamable: the session is not one that this server stored")
	}
	p := protocol.InitializeParams{
		ProtocolVersion: protocol.SupportedLegacy[r.Version], Capabilities: capabilitiesOf(r.Capabilities),
		ClientInfo: protocol.Implementation{Name: r.Name, Version: r.Release},
	}
	for _, id := range extensions {
		if !slices.Contains(r.Extensions, crc32.ChecksumIEEE([]byte(id))) {
			continue
		}
		if p.Capabilities.Extensions == nil {
			p.Capabilities.Extensions = map[string]protocol.Object{}
		}
		p.Capabilities.Extensions[id] = protocol.Object{}
	}
	return jsonx.Marshal(&p)
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
