package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Fleet makes the server one of several replicas that share an engine, behind any load balancer.
// Legacy sessions, their streams, the answers to their questions and tasks are in the engine, and a
// client may reach another replica with each request. Modern clients need that only for tasks and
// notifications. Rate limits count the calls of one replica.
//
// The option needs [StateKeys], and all replicas need the same keys and name. The server closes
// the engine when it is closed. Without this option, everything is in memory.
//
// Package fleet says what an engine is; there are engines for Redis and bbolt.
func Fleet(engine fleet.Engine, opts ...fleet.Option) Option {
	if engine == nil {
		return newOption(func(*config) error { return errors.New("mcpkit: Fleet: the engine is nil") })
	}
	return FleetFrom(func() (fleet.Engine, error) { return engine, nil }, opts...)
}

// FleetFrom is [Fleet] with an engine that [New] opens when it has found no other fault. An error of
// open is that of New.
func FleetFrom(open func() (fleet.Engine, error), opts ...fleet.Option) Option {
	return newOption(func(c *config) error {
		switch {
		case open == nil:
			return errors.New("mcpkit: FleetFrom: open is nil")
		case c.openEngine != nil:
			return errors.New("mcpkit: Fleet is given twice")
		}
		c.openEngine, c.fleetOptions = open, opts
		return nil
	})
}

// Fleet returns the server's view of the fleet that it is part of, or nil. Transports and extensions
// share state with it.
func (s *Server) Fleet() *fleet.Fleet { return s.fleet }

// Fleet returns the fleet of the server, or nil. An extension keeps what replicas share in sets of
// its own: see [fleet.Fleet.Set].
func (r *Runner) Fleet() *fleet.Fleet { return r.to().fleet }

// Fleet returns the fleet of the server that the client sent the request to, or nil. Middleware
// shares state with it.
func (c *Call) Fleet() *fleet.Fleet { return c.server.fleet }

// The kinds of messages between replicas.
const (
	kindLists   = "lists-changed"    // [3]bool
	kindUpdated = "resource-updated" // a URI
)

// joinFleet makes the server a replica.
func (s *Server) joinFleet() error {
	c := s.config
	if c.openEngine == nil {
		return nil
	}
	if len(c.stateKeys) == 0 {
		return errors.New("mcpkit: Fleet: what replicas share is sealed with keys that all of them have; add mcpkit.StateKeys(key) with 32 random bytes")
	}
	engine, err := c.openEngine()
	if err != nil {
		return err
	}
	if engine == nil {
		return errors.New("mcpkit: FleetFrom: open returned no engine")
	}
	opts := fleet.Options{Logger: c.logger}
	for _, o := range c.fleetOptions {
		o(&opts)
	}
	opts.Seal, opts.Open = s.state.SealRecord, s.state.OpenRecord
	s.fleet = fleet.New(engine, opts)
	c.logger = s.fleet.Logger()
	s.life.addFirst(s.fleet)
	s.fleet.On(kindLists, func(_ string, payload []byte) {
		var changed [3]bool
		if json.Unmarshal(payload, &changed) == nil {
			s.announceHere(changed)
		}
	})
	s.fleet.On(kindUpdated, func(_ string, payload []byte) { s.updatedHere(jsonx.String(payload)) })
	s.fleet.OnMissed(s.missed)
	return nil
}

// tellReplicas sends a message to the other replicas, if there may be any.
func (s *Server) tellReplicas(kind string, payload any) {
	if s.fleet != nil {
		s.fleet.Tell("", kind, payload)
	}
}

// missed notifies clients of all changes of which this replica may have missed the notification.
func (s *Server) missed() {
	s.announceHere([3]bool{true, true, true})
	uris := map[string]struct{}{}
	for _, l := range s.listens.snapshot() {
		for _, uri := range l.filter.ResourceSubscriptions {
			uris[uri] = struct{}{}
		}
	}
	for _, state := range s.sessions.snapshot() {
		state.mu.Lock()
		for _, uri := range state.subscriptions {
			uris[uri] = struct{}{}
		}
		state.mu.Unlock()
	}
	for uri := range uris {
		s.updatedHere(uri)
	}
}

// A sessionRecord is the state of a session in the store of a fleet.
type sessionRecord struct {
	Version       protocol.Version            `json:"version"`
	Info          protocol.Implementation     `json:"info"`
	Capabilities  protocol.ClientCapabilities `json:"capabilities"`
	Ready         bool                        `json:"ready"`
	LogLevel      int32                       `json:"logLevel"`
	Subscriptions []string                    `json:"subscriptions,omitempty"`
	Scopes        []string                    `json:"scopes,omitempty"` // of the caller
}

// change changes the state with f, on all replicas. f may run more than once.
func (state *session) change(ctx context.Context, f func()) error {
	err := state.link.Change(ctx, f)
	if errors.Is(err, transport.ErrClosed) {
		return errors.New("the session has ended")
	}
	return err
}

// StoreSession returns the state of a session. It implements [transport.SessionStorer].
func (s *Server) StoreSession(ts *transport.Session) ([]byte, error) {
	state, ok := ts.State().(*session)
	if !ok {
		return nil, errors.New("mcpkit: the session has not begun")
	}
	state.mu.Lock()
	subscriptions := slices.Clone(state.subscriptions)
	state.mu.Unlock()
	r := &sessionRecord{
		Version: state.version, Info: state.info, Capabilities: state.capabilities,
		Ready: state.ready.Load(), LogLevel: state.logLevel.Load(), Subscriptions: subscriptions,
	}
	if p := state.caller(); p != nil {
		r.Scopes = p.Scopes
	}
	return jsonx.Marshal(r)
}

// RestoreSession sets the state of a session that another replica stored. It implements
// [transport.SessionStorer].
func (s *Server) RestoreSession(ts *transport.Session, data []byte) error {
	var r sessionRecord
	if err := jsonx.Unmarshal(data, &r); err != nil {
		return err
	}
	state, ok := ts.State().(*session)
	if !ok {
		state = &session{link: ts, version: r.Version, info: r.Info, capabilities: r.Capabilities}
	}
	state.ready.Store(r.Ready)
	state.logLevel.Store(r.LogLevel)
	state.restored.Store(&oauth.Principal{Scopes: r.Scopes})
	state.mu.Lock()
	state.subscriptions = slices.Compact(slices.Sorted(slices.Values(r.Subscriptions)))
	state.mu.Unlock()
	if !ok {
		ts.SetVersion(string(r.Version))
		ts.SetState(state)
		s.sessions.add(state)
	}
	return nil
}

// SessionMissed notifies a client of all that may have changed while no replica notified it. It
// implements [transport.SessionStorer].
func (s *Server) SessionMissed(ts *transport.Session) {
	state, ok := ts.State().(*session)
	if !ok || !state.ready.Load() {
		return
	}
	c := s.catalog.Load()
	for i, f := range [...]*feature{featureTools, featurePrompts, featureResources} {
		if f.has(c) {
			s.tellSession(state, s.broadcast(listChanged[i], &protocol.EmptyParams{}))
		}
	}
	state.mu.Lock()
	uris := slices.Clone(state.subscriptions)
	state.mu.Unlock()
	for _, uri := range uris {
		s.tellSession(state, s.broadcast(protocol.NotificationResourcesUpdated, &protocol.ResourceUpdatedParams{URI: uri}))
	}
}

var _ transport.SessionStorer = (*Server)(nil)
