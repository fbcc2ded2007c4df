package mcpkit

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// sessionSeal separates sealed sessions from other records.
const sessionSeal = "session"

// SealSession returns plain as bytes that only this server, and those with the same [StateKeys] and
// name, can read or make. It implements [transport.SessionStorer].
func (s *Server) SealSession(plain []byte) []byte { return s.state.SealRecord(sessionSeal, plain) }

// OpenSession is the inverse of SealSession.
func (s *Server) OpenSession(sealed []byte) ([]byte, error) {
	return s.state.OpenRecord(sessionSeal, sealed)
}

const (
	maxClientName   = 64  // bytes of the name and of the version of a client that its session keeps
	maxAgreed       = 148 // bytes of what initialize agreed on
	extensionDigest = 4   // bytes that stand for an extension
)

// sessionChanges is what a client has changed in its session.
type sessionChanges struct {
	LogLevel      int32    `json:"logLevel"`
	Subscriptions []string `json:"subscriptions,omitempty"`
}

// StoreSession returns the state of a session: version, capabilities, client and extensions of the
// client that this server has; and what the client has changed. It implements
// [transport.SessionStorer].
func (s *Server) StoreSession(ts *transport.Session) (agreed, changes []byte) {
	state, ok := ts.State().(*session)
	if !ok {
		return nil, nil
	}
	agreed = append(agreed, byte(versionIndex(state.version)))
	agreed = binary.BigEndian.AppendUint16(agreed, capabilityBits(&state.capabilities))
	var extensions []byte
	for _, d := range s.catalog.Load().extensions {
		if state.capabilities.Extensions[d.id] != nil {
			extensions = binary.BigEndian.AppendUint32(extensions, digestOf(d.id))
		}
	}
	room := max(maxAgreed-len(agreed)-2-len(extensions), 0)
	for _, text := range []string{state.info.Name, state.info.Version} {
		text = strings.ToValidUTF8(text[:min(len(text), maxClientName, room)], "") // a part of a character goes
		room -= len(text)
		agreed = append(append(agreed, byte(len(text))), text...)
	}
	agreed = append(agreed, extensions...)
	subscriptions := state.uris()
	if level := state.logLevel.Load(); level != defaultLogLevel || len(subscriptions) > 0 {
		changes, _ = jsonx.Marshal(sessionChanges{level, subscriptions}) // these always encode
	}
	return agreed[:min(len(agreed), maxAgreed)], changes
}

// RestoreSession sets the state of a session that StoreSession returned, for a request with ctx. It
// implements [transport.SessionStorer].
func (s *Server) RestoreSession(ctx context.Context, ts *transport.Session, agreed, changes []byte) error {
	c := sessionChanges{LogLevel: defaultLogLevel}
	if changes != nil {
		if err := jsonx.Unmarshal(changes, &c); err != nil {
			return err
		}
	}
	state, known := ts.State().(*session)
	if !known {
		var err error
		if state, err = s.openSession(agreed); err != nil {
			return err
		}
		state.link = ts
		state.principal.Store(oauth.FromContext(ctx))
	}
	state.logLevel.Store(c.LogLevel)
	state.mu.Lock()
	state.subscriptions = c.Subscriptions
	state.mu.Unlock()
	if !known {
		ts.SetVersion(string(state.version))
		ts.SetState(state)
		s.audience.sessions.add(state)
	}
	return nil
}

// openSession reads what StoreSession wrote.
func (s *Server) openSession(agreed []byte) (*session, error) {
	errDamaged := errors.New("mcpkit: the session is not one that this server stored")
	if len(agreed) < 5 || int(agreed[0]) >= len(versions) {
		return nil, errDamaged
	}
	capabilities, err := capabilitiesOf(binary.BigEndian.Uint16(agreed[1:]))
	if err != nil {
		return nil, err
	}
	state := &session{version: versions[agreed[0]], capabilities: capabilities}
	state.ready.Store(true)
	rest := agreed[3:]
	for _, text := range []*string{&state.info.Name, &state.info.Version} {
		if len(rest) == 0 || len(rest) <= int(rest[0]) {
			return nil, errDamaged
		}
		*text, rest = string(rest[1:1+rest[0]]), rest[1+rest[0]:]
	}
	for ; len(rest) >= extensionDigest; rest = rest[extensionDigest:] {
		for _, d := range s.catalog.Load().extensions {
			if digestOf(d.id) == binary.BigEndian.Uint32(rest) {
				if state.capabilities.Extensions == nil {
					state.capabilities.Extensions = map[string]protocol.Object{}
				}
				state.capabilities.Extensions[d.id] = protocol.Object{}
			}
		}
	}
	return state, nil
}

func digestOf(extension string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(extension)) // never fails
	return h.Sum32()
}

// sealedCapabilities are the capabilities that a sealed session keeps, each as the bit of its place.
var sealedCapabilities = [...]struct{ name, part string }{
	{"roots", ""}, {"roots", "listChanged"},
	{"sampling", ""}, {"sampling", "context"}, {"sampling", "tools"},
	{"elicitation", ""}, {"elicitation", "form"}, {"elicitation", "url"},
}

func capabilityBits(c *protocol.ClientCapabilities) (bits uint16) {
	declared, _ := jsonx.Marshal(c) // it was decoded
	for i, known := range sealedCapabilities {
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
	for i, known := range sealedCapabilities {
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

// SessionMissed notifies a client of all that may have changed while it listened to no replica. It
// implements [transport.SessionStorer].
func (s *Server) SessionMissed(ts *transport.Session) {
	state, ok := ts.State().(*session)
	if !ok {
		return
	}
	c := s.catalog.Load()
	for _, f := range listFeatures {
		if f.has(c) {
			s.tellSession(state, f.listChanged, json.RawMessage("{}"))
		}
	}
	for _, uri := range state.uris() {
		params, _ := jsonx.Marshal(&protocol.ResourceUpdatedParams{URI: uri}) // a string always encodes
		s.tellSession(state, protocol.NotificationResourcesUpdated, params)
	}
}

// SessionEnded removes a session. Transports call it.
func (s *Server) SessionEnded(ts *transport.Session) {
	if state, ok := ts.State().(*session); ok {
		s.audience.sessions.remove(state)
	}
}

var _ transport.SessionStorer = (*Server)(nil)
