package mcpkit

import (
	"errors"
	"slices"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Fleet makes the server one of several replicas that share an engine, behind any load balancer.
// Tasks, streams to resume, and what legacy clients change in their sessions are in the engine, and a
// client may reach another replica with each request. Modern clients need that only for tasks and
// notifications. Rate limits count the calls of one replica.
//
// The option needs [StateKeys], and all replicas need the same keys and name. The server closes
// the engine when it is closed. Without this option, everything is in memory.
//
// Package fleet says what an engine is; there are engines for Redis and bbolt.
func Fleet(engine fleet.Engine, opts ...fleet.Option) Option {
	return FleetFrom(func() (fleet.Engine, error) { return engine, nil }, opts...)
}

// FleetFrom is [Fleet] with an engine that [New] opens when it has found no other fault. An error of
// open is that of New.
func FleetFrom(open func() (fleet.Engine, error), opts ...fleet.Option) Option {
	return option(func(c *config) error {
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
func (r *Runner) Fleet() *fleet.Fleet { return r.server.Load().fleet }

// Fleet returns the fleet of the server that the client sent the request to, or nil. Middleware
// shares state with it.
func (c *Call) Fleet() *fleet.Fleet { return c.server.fleet }

// kindChanged is the kind of messages between replicas: the member of a topic, and a key.
const kindChanged = "changed"

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
		return errors.New("mcpkit: Fleet: there is no engine")
	}
	opts := fleet.Options{Logger: c.logger}
	for _, o := range c.fleetOptions {
		o(&opts)
	}
	opts.Seal, opts.Open = s.state.SealRecord, s.state.OpenRecord
	s.fleet = fleet.New(engine, opts)
	c.logger = s.fleet.Logger()
	s.life.waiting = slices.Insert(s.life.waiting, 0, any(s.fleet)) // before the services, which may need it
	s.fleet.On(kindChanged, func(_ string, payload []byte) {
		var changed [2]string
		_ = jsonx.Unmarshal(payload, &changed) // it is from tellReplicas
		for _, t := range s.topics {
			if t.member == changed[0] {
				s.tell(subject{t, changed[1]}, t.clients())
			}
		}
	})
	s.fleet.OnMissed(func() { s.missed() })
	return nil
}

// tellReplicas tells the other replicas, if there may be any, what has changed.
func (s *Server) tellReplicas(about subject) {
	if s.fleet != nil {
		s.fleet.Tell("", kindChanged, [2]string{about.topic.member, about.key})
	}
}
