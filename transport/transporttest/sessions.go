package transporttest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Sessions is what a handler of tests embeds to have sessions over HTTP: it is a
// [transport.SessionStorer] but for ServeRPC. It keeps the version, and seals nothing.
type Sessions struct{}

// HasSessions returns true.
func (Sessions) HasSessions() bool { return true }

// SealSession adds a random text, so that no two are equal.
func (Sessions) SealSession(plain []byte) []byte { return append([]byte(rand.Text()), plain...) }

// OpenSession removes it.
func (Sessions) OpenSession(sealed []byte) ([]byte, error) {
	if n := len(rand.Text()); len(sealed) > n {
		return sealed[n:], nil
	}
	return nil, errors.New("it is not sealed")
}

// Extensions returns none.
func (Sessions) Extensions() []string { return nil }

// StoreSession returns the version, 2025-03-26 if the handler has set none.
func (Sessions) StoreSession(s *transport.Session) (agreed, changes []byte) {
	p := protocol.InitializeParams{ProtocolVersion: cmp.Or(protocol.Version(s.Version()), protocol.V20250326)}
	agreed, _ = jsonx.Marshal(p) // it always encodes
	return agreed, nil
}

// RestoreSession sets the version.
func (Sessions) RestoreSession(_ context.Context, s *transport.Session, agreed, _ []byte) error {
	var p protocol.InitializeParams
	err := jsonx.Unmarshal(agreed, &p)
	s.SetVersion(string(p.ProtocolVersion))
	return err
}

// SessionMissed does nothing.
func (Sessions) SessionMissed(*transport.Session) {}

// SessionEnded does nothing.
func (Sessions) SessionEnded(*transport.Session) {}
