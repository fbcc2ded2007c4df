package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
	link                      *transport.Session
	protocol.InitializeParams // the version is that of the session
	subscriptions             // to lists from notifications/initialized on
	logLevel                  atomic.Int32
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
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the session has begun already, with version %s", call.session.ProtocolVersion)
	}
	version := p.ProtocolVersion
	if !version.Legacy() || !s.config.serves(version) {
		version = s.config.versions[slices.IndexFunc(s.config.versions, protocol.Version.Legacy)]
	}
	call.version = version // the response has the new version
	if ts := call.peer.Session(); ts != nil {
		capabilities := capabilitiesIn(version, p.Capabilities)
		s.begin(ts, &protocol.InitializeParams{ProtocolVersion: version, ClientInfo: p.ClientInfo, Capabilities: capabilities})
	}
	about := s.about.Load()
	return &protocol.InitializeResult{
		ProtocolVersion: version,
		Capabilities:    call.catalog.capabilities(version),
		ServerInfo:      about.info,
		Instructions:    about.instructions,
	}, nil
}

// capabilitiesIn returns the capabilities of a client without those that the version does not have.
func capabilitiesIn(version protocol.Version, c protocol.ClientCapabilities) protocol.ClientCapabilities {
	switch {
	case c.Elicitation == nil:
	case version < protocol.V20250618:
		c.Elicitation = nil
	case version < protocol.V20251125:
		c.Elicitation = &protocol.ElicitationCapability{} // only forms
	}
	return c
}

// begin adds a session.
func (s *Server) begin(ts *transport.Session, agreed *protocol.InitializeParams) *session {
	state := &session{link: ts, InitializeParams: *agreed}
	state.subjects = map[subject]bool{}
	state.logLevel.Store(defaultLogLevel)
	ts.SetVersion(string(agreed.ProtocolVersion))
	ts.SetState(state)
	for _, t := range s.topics {
		t.subscribers.Store(state, nil)
	}
	return state
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

// StoreSession returns the state of a session: what initialize agreed on, and what the client has
// changed. It implements [transport.SessionStorer].
func (s *Server) StoreSession(ts *transport.Session) (agreed, changes []byte) {
	state, ok := ts.State().(*session)
	if !ok {
		return nil, nil
	}
	subscriptions := slices.Sorted(slices.Values(state.keys(s.topics[resourceTopic])))
	if level := state.logLevel.Load(); level != defaultLogLevel || len(subscriptions) > 0 {
		changes, _ = jsonx.Marshal(sessionChanges{level, subscriptions}) // these always encode
	}
	agreed, _ = jsonx.Marshal(&state.InitializeParams) // it was decoded
	return agreed, changes
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
		p := new(protocol.InitializeParams)
		if err := jsonx.Unmarshal(agreed, p); err != nil {
			return err
		}
		if !s.config.serves(p.ProtocolVersion) {
			return fmt.Errorf("version %s is not served", p.ProtocolVersion)
		}
		state = s.begin(ts, p)
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

// Extensions returns the names of the server's extensions.
func (s *Server) Extensions() (ids []string) {
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
