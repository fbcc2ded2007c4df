package mcpkit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A session is the state of a legacy client between its requests.
type session struct {
	link         *transport.Session
	version      protocol.Version
	info         protocol.Implementation
	capabilities protocol.ClientCapabilities
	ready        atomic.Bool // notifications/initialized arrived
	logLevel     atomic.Int32
	principal    atomic.Pointer[oauth.Principal] // of its last request

	mu            sync.Mutex
	subscriptions []string // guarded by mu: URIs, sorted
}

// change changes the state with f, on all replicas. f may run more than once.
func (state *session) change(ctx context.Context, f func()) error {
	err := state.link.Change(ctx, f)
	if errors.Is(err, transport.ErrClosed) {
		return errors.New("the session has ended")
	}
	return err
}

// maxSubscriptions limits the resources that a session may subscribe to, and that one
// subscriptions/listen may name.
const maxSubscriptions = 1000

// defaultLogLevel is the level of log messages that sessions begin with.
var defaultLogLevel = int32(protocol.LevelInfo.Severity())

// A set may be used by several goroutines. The zero value is empty.
type set[T comparable] struct {
	mu  sync.Mutex
	all map[T]struct{}
}

func (s *set[T]) add(item T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[T]struct{}{}
	}
	s.all[item] = struct{}{}
}

func (s *set[T]) remove(item T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, item)
}

// snapshot returns the items. No lock is held while they are used.
func (s *set[T]) snapshot() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(make([]T, 0, len(s.all)), maps.Keys(s.all))
}

// initialize opens a legacy session (basic/lifecycle).
func initialize(_ context.Context, call *Call, p *protocol.InitializeParams) (Result, error) {
	s := call.server
	if p.ProtocolVersion == "" {
		return nil, invalidParams("initialize needs protocolVersion")
	}
	if call.session != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the session has begun already, with version %s", call.session.version)
	}
	version := p.ProtocolVersion
	if !version.Known() || version.Modern() {
		version = protocol.LatestLegacy
	}
	call.version = version // the response has the new version
	if ts := call.peer.Session(); ts != nil {
		state := &session{link: ts, version: version, info: p.ClientInfo, capabilities: p.Capabilities}
		state.logLevel.Store(defaultLogLevel)
		ts.SetVersion(string(version))
		ts.SetState(state)
		s.audience.sessions.add(state)
	}
	about := s.about.Load()
	return &protocol.InitializeResult{
		ProtocolVersion: version,
		Capabilities:    call.catalog.capabilities(version),
		ServerInfo:      about.info,
		Instructions:    about.instructions,
	}, nil
}

// initialized ends the handshake: the client is now notified of changes.
func initialized(_ context.Context, call *Call) (Result, error) {
	if call.session != nil {
		call.session.ready.Store(true)
	}
	return nil, nil
}

// ping returns at once.
func ping(context.Context, *Call) (Result, error) { return nil, nil }

// discover answers server/discover.
func discover(_ context.Context, call *Call) (Result, error) {
	s := call.server
	return &protocol.DiscoverResult{
		SupportedVersions: protocol.Supported,
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
