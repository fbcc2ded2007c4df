package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A session is the state of a legacy client between its requests.
type session struct {
	link *transport.Session
	agreement
	subscriptions // to lists from notifications/initialized on
	logLevel      atomic.Int32
}

// notify sends a notification outside of any request, unless the session has just ended.
func (state *session) notify(s subject, params json.RawMessage) {
	_ = state.link.Notify(context.Background(), &jsonrpc.Request{Method: s.topic.notification, Params: params})
}

// change changes the session with f, which may run more than once, on all replicas. Without a session
// the client cannot be notified, but it can read.
func (state *session) change(ctx context.Context, f func(subjects map[subject]bool)) error {
	if state == nil {
		return nil
	}
	return state.link.Change(ctx, func() { state.edit(f) })
}

// maxSubscriptions limits the resources that a session may subscribe to, and that one
// subscriptions/listen may name.
const maxSubscriptions = 1000

// defaultLogLevel is the level of log messages that sessions begin with.
var defaultLogLevel = int32(protocol.LevelInfo.Severity())

// initialize opens a legacy session (basic/lifecycle).
func initialize(_ context.Context, call *Call, p *protocol.InitializeParams) (Result, error) {
	s := call.server
	if p.ProtocolVersion == "" {
		return nil, invalidParams("initialize needs protocolVersion")
	}
	if call.session != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the session has begun already, with version %s", call.session.Version)
	}
	version := p.ProtocolVersion
	if !version.Legacy() || !s.config.serves(version) {
		version = s.config.versions[slices.IndexFunc(s.config.versions, protocol.Version.Legacy)]
	}
	call.version = version // the response has the new version
	if ts := call.peer.Session(); ts != nil {
		s.begin(ts, newAgreement(version, p.ClientInfo, p.Capabilities))
	}
	about := s.about.Load()
	return &protocol.InitializeResult{
		ProtocolVersion: version,
		Capabilities:    call.catalog.capabilities(version),
		ServerInfo:      about.info,
		Instructions:    about.instructions,
	}, nil
}

// begin adds a session.
func (s *Server) begin(ts *transport.Session, agreed agreement) *session {
	state := &session{link: ts, agreement: agreed}
	state.subjects = map[subject]bool{}
	state.logLevel.Store(defaultLogLevel)
	ts.SetVersion(string(agreed.Version))
	ts.SetState(state)
	for _, t := range s.topics {
		t.subscribers.Store(state, nil)
	}
	return state
}

// initialized ends the handshake: the client is now notified of changes.
func initialized(_ context.Context, call *Call) (Result, error) {
	if call.session != nil {
		call.session.edit(call.server.allLists)
	}
	return nil, nil
}

// ping returns at once.
func ping(context.Context, *Call) (Result, error) { return nil, nil }

// discover answers server/discover.
func discover(_ context.Context, call *Call) (Result, error) {
	s := call.server
	return &protocol.DiscoverResult{
		SupportedVersions: s.config.versions,
		Capabilities:      call.catalog.capabilities(call.version),
		Instructions:      s.about.Load().instructions,
		Cache:             cacheHint(s.config.listTTL, false),
	}, nil
}

// cacheHint returns how long a result may be cached, and by whom.
func cacheHint(ttl time.Duration, private bool) protocol.Cache {
	ms := ttl.Milliseconds()
	scope := protocol.CachePublic
	if private {
		scope = protocol.CachePrivate
	}
	return protocol.Cache{TTLMs: &ms, CacheScope: scope}
}

// ServerCard returns the server card (SEP-2127), made from what the server says about itself. It
// implements [transport.CardHandler].
func (s *Server) ServerCard(url string) ([]byte, error) {
	return protocol.ServerCard(s.about.Load().info, url, s.config.versions)
}

// HasSessions reports whether the server serves legacy versions. It implements [transport.SessionStorer].
func (s *Server) HasSessions() bool { return s.config.oldest().Legacy() }

// sessionSeal separates sealed sessions from other records.
const sessionSeal = "session"

// SealSession returns plain as bytes that only this server, and those with the same [StateKeys] and
// name, can read or make. It implements [transport.SessionStorer].
func (s *Server) SealSession(plain []byte) []byte { return s.state.SealRecord(sessionSeal, plain) }

// OpenSession is the inverse of SealSession.
func (s *Server) OpenSession(sealed []byte) ([]byte, error) {
	return s.state.OpenRecord(sessionSeal, sealed)
}

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
	subscriptions := slices.Sorted(slices.Values(state.keys(s.topics[resourceTopic])))
	if level := state.logLevel.Load(); level != defaultLogLevel || len(subscriptions) > 0 {
		changes, _ = jsonx.Marshal(sessionChanges{level, subscriptions}) // these always encode
	}
	return state.bytes(s.extensionIDs()), changes
}

// RestoreSession sets the state of a session that StoreSession returned, for a request with ctx. It
// implements [transport.SessionStorer].
func (s *Server) RestoreSession(ctx context.Context, ts *transport.Session, agreed, changes []byte) error {
	c := sessionChanges{LogLevel: defaultLogLevel}
	if len(changes) > 0 {
		if err := jsonx.Unmarshal(changes, &c); err != nil {
			return err
		}
	}
	state, known := ts.State().(*session)
	if !known {
		agreement, err := readAgreement(agreed, s.extensionIDs())
		if err == nil && !s.config.serves(agreement.Version) {
			err = fmt.Errorf("version %s is not served", agreement.Version)
		}
		if err != nil {
			return err
		}
		state = s.begin(ts, agreement)
		state.principal.Store(oauth.FromContext(ctx))
	}
	state.logLevel.Store(c.LogLevel)
	state.edit(func(subjects map[subject]bool) {
		clear(subjects)
		s.allLists(subjects)
		for _, uri := range c.Subscriptions {
			subjects[s.updates(uri)] = true
		}
	})
	if len(c.Subscriptions) > 0 {
		go s.watch(context.WithoutCancel(ctx), c.Subscriptions) // ends after watchTime
	}
	return nil
}

// watchTime is how long the servers of resources may take to accept subscriptions.
const watchTime = 30 * time.Second

// watch begins to watch resources that the client of a session has subscribed to at another replica.
func (s *Server) watch(ctx context.Context, uris []string) {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	for _, uri := range uris {
		if e, _ := s.catalog.Load().findResource(uri); e != nil && e.subscribe != nil {
			_ = e.subscribe(ctx, uri) // its server has accepted it before
		}
	}
}

// extensionIDs returns the names of the server's extensions.
func (s *Server) extensionIDs() (ids []string) {
	for _, e := range s.catalog.Load().extensions {
		ids = append(ids, e.ID)
	}
	return ids
}

// SessionMissed notifies a client of all that may have changed while it listened to no replica. It
// implements [transport.SessionStorer].
func (s *Server) SessionMissed(ts *transport.Session) {
	if state, ok := ts.State().(*session); ok {
		s.missed(state)
	}
}

// SessionEnded removes a session. Transports call it.
func (s *Server) SessionEnded(ts *transport.Session) {
	if state, ok := ts.State().(*session); ok {
		for _, t := range s.topics {
			t.subscribers.Delete(state)
		}
	}
}

var _ transport.SessionStorer = (*Server)(nil)

const (
	maxAgreedText       = 64  // bytes of the name and of the version of a client that are kept
	maxAgreedExtensions = 8   // that are kept
	maxAgreedBytes      = 148 // bytes of an agreement
)

// An agreement is what a session keeps of its initialize.
type agreement struct {
	Version      protocol.Version
	Client       protocol.Implementation
	Capabilities protocol.ClientCapabilities
}

// newAgreement returns what a session in the version keeps. Capabilities that the version does not have are left
// out.
func newAgreement(version protocol.Version, client protocol.Implementation, c protocol.ClientCapabilities) agreement {
	switch {
	case c.Elicitation == nil:
	case version < protocol.V20250618:
		c.Elicitation = nil
	case version < protocol.V20251125:
		c.Elicitation = &protocol.ElicitationCapability{} // only forms
	}
	return agreement{version, client, c}
}

// An agreementRecord is an agreement within the ID of a session.
type agreementRecord struct {
	Version      int      `json:"v"`           // its place in SupportedLegacy
	Capabilities uint16   `json:"c"`           // bits
	Name         string   `json:"n"`           // of the client
	Release      string   `json:"r"`           // the version of the client
	Extensions   []uint32 `json:"x,omitempty"` // a checksum of each
}

// bytes returns the agreement with the extensions of the client that the server has. Long names and
// versions of clients are cut.
func (a *agreement) bytes(extensions []string) (b []byte) {
	r := agreementRecord{Version: slices.Index(protocol.SupportedLegacy, a.Version), Capabilities: bitsOf(&a.Capabilities)}
	for _, id := range extensions {
		if a.Capabilities.Extensions[id] != nil && len(r.Extensions) < maxAgreedExtensions {
			r.Extensions = append(r.Extensions, crc32.ChecksumIEEE([]byte(id)))
		}
	}
	for room := maxAgreedText; b == nil || len(b) > maxAgreedBytes; room /= 2 { // escapes and extensions need room, too
		r.Name, r.Release = cut(a.Client.Name, room), cut(a.Client.Version, room)
		b, _ = jsonx.Marshal(r) // it always encodes
	}
	return b
}

// cut returns at most the first n bytes of a text, without a part of a character.
func cut(text string, n int) string { return strings.ToValidUTF8(text[:min(len(text), n)], "") }

// readAgreement is the inverse of bytes.
func readAgreement(b []byte, extensions []string) (a agreement, err error) {
	var r agreementRecord
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
