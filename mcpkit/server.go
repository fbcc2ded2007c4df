package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/toolname"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/family"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/rounds"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Server answers MCP requests of all protocol versions with the tools, prompts and resources that
// are registered on it. It is a [transport.Handler]; any number of transports may serve it at once.
//
// A Server is safe for concurrent use: it may be changed while it serves, and subscribed clients
// are notified of each change. Make one with [New].
type Server struct {
	config       *config
	descriptions reflectx.Descriptions
	injectable   []string               // see injectable
	generated    *generatedDescriptions // part of descriptions
	state        *rounds.Sealer
	fleet        *fleet.Fleet // nil outside of a fleet
	warnOfRates  sync.Once    // that the tag rate counts in this replica only
	warnedOfKey  atomic.Bool

	about atomic.Pointer[introduction]

	mu            sync.Mutex   // serialises changes of the chain
	use           []Middleware // guarded by mu
	intercepts    []Middleware // of extensions; never changed after New
	extended      extendedKeys // tags of extensions; never changed after New
	chain         atomic.Pointer[Handler]
	observers     atomic.Pointer[[]*Observer] // nil: none
	hasMiddleware atomic.Bool
	catalog       atomic.Pointer[catalog] // changed under the family's lock

	family    *family.Family
	mounts    list[*mount]   // mounted in this server
	followers list[follower] // servers that this one is mounted in

	life    lifecycle
	overdue atomic.Int64

	sessions     set[*session]
	listens      set[*listener]
	changedLists listChanges
}

var _ transport.SessionHandler = (*Server)(nil)

// An introduction is what a server says about itself. It never changes.
type introduction struct {
	info         protocol.Implementation
	instructions string
	encoded      json.RawMessage // info as JSON: every modern result carries it
}

// introduceAs sets what the server says about itself.
func (s *Server) introduceAs(info protocol.Implementation, instructions string) {
	encoded, _ := jsonx.Marshal(info) // strings and icons: always encodable
	s.about.Store(&introduction{info, instructions, encoded})
}

// New makes a Server of a service, which is a pointer to an annotated struct. The service is nil if
// everything comes from options or is registered later. The error has all faults of all services:
// where each is, what is wrong, and what to write instead. New starts nothing.
func New(service any, opts ...Option) (*Server, error) {
	c, err := newConfig(service, opts)
	if err != nil {
		return nil, err
	}
	return newServer(c)
}

func newServer(c *config) (_ *Server, err error) {
	source := reflectx.SourceDescriptions()
	generated := newGeneratedDescriptions(source)
	descriptions := reflectx.FirstDescriptions(slices.Concat([]reflectx.Descriptions{generated}, c.docs, []reflectx.Descriptions{source})...)
	s := &Server{config: c, descriptions: descriptions, generated: generated, injectable: injectable(c.providers), family: family.New()}
	s.catalog.Store(&catalog{methods: coreMethods, offersAll: c.offersAll})
	if s.extended, err = c.toolTags(); err != nil {
		return nil, err
	}
	if err := s.registerAll(c.services); err != nil {
		return nil, err
	}
	if err := s.extendAll(c.extensions); err != nil {
		return nil, err
	}
	s.Use() // nothing yet, around what extensions intercept
	s.introduce()
	s.state = rounds.NewSealer(c.stateKeys, s.about.Load().info.Name)
	if err := s.joinFleet(); err != nil {
		return nil, err
	}
	return s, nil
}

// MustNew is New that panics with the error.
func MustNew(service any, opts ...Option) *Server {
	s, err := New(service, opts...)
	if err != nil {
		panic(err)
	}
	return s
}

// introduce determines the name of the server and its instructions: from options, then from the
// first service's Info field, then from its type.
func (s *Server) introduce() {
	info := s.config.info
	var texts []string
	for i, r := range s.config.services {
		t := reflect.TypeOf(r.service)
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if i == 0 {
			fillInfo(&info, serviceInfo(t), t)
		}
		if doc := s.descriptions.Text(t, ""); doc != "" {
			texts = append(texts, doc)
		}
	}
	if info.Name == "" {
		info.Name = "mcpkit"
	}
	if info.Version == "" {
		info.Version = mainVersion()
	}
	instructions := s.config.instructions
	if instructions == "" {
		instructions = strings.Join(texts, "\n\n")
	}
	s.introduceAs(info, instructions)
}

func fillInfo(info *protocol.Implementation, a *annotation, t reflect.Type) {
	set := func(field *string, values ...string) {
		for _, v := range values {
			if *field == "" {
				*field = v
			}
		}
	}
	set(&info.Name, a.name, reflectx.SnakeCase(t.Name()))
	set(&info.Title, a.title)
	set(&info.Version, a.version)
	set(&info.Description, a.desc)
	set(&info.WebsiteURL, a.website)
	if info.Icons == nil {
		info.Icons = a.icons
	}
}

// mainVersion returns the version of the program's main module, or "0.0.0" if it was not built from
// a release.
func mainVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.0.0"
}

// lifecycle starts services before the first call and closes them after the last.
type lifecycle struct {
	// turn is held while services start or close, one after another. Their methods run meanwhile,
	// so they must not lock it; mu is never held while one of them runs.
	turn sync.Mutex
	warn sync.Once // of stale descriptions, when the server first starts

	mu       sync.Mutex
	services []any       // guarded by mu: in order of registration
	started  int         // guarded by mu: how many of services were started
	failed   error       // guarded by mu
	expected []Selector  // guarded by mu: the selectors of UseFor
	ready    atomic.Bool // every service was started; set under mu
}

// Start calls Start(context.Context) error on each service that has this method and has not been
// started, in order of registration. [Serve] and the first request call Start; a program may call
// it to see errors early. After an error the Server answers no calls.
//
// While it starts, a service may register services, mount servers and use middleware. What it
// registers is started after it. It must not call Start or Close of its own server.
func (s *Server) Start(ctx context.Context) error {
	l := &s.life
	l.turn.Lock()
	defer l.turn.Unlock()
	for {
		service, ok, err := l.next()
		if !ok {
			if err == nil {
				err = s.settle()
			}
			if err == nil && !l.ready.Load() {
				continue // something was registered meanwhile
			}
			if err == nil {
				l.warn.Do(s.warnAtStart)
			}
			return err
		}
		if starter, ok := service.(interface{ Start(context.Context) error }); ok {
			if err = starter.Start(ctx); err != nil {
				err = fmt.Errorf("mcpkit: %T does not start: %w", service, err)
			}
		}
		l.done(err)
	}
}

// next returns the service to start. ok is false if all are started, or if one failed, with its
// error.
func (l *lifecycle) next() (service any, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil && l.started < len(l.services) {
		return l.services[l.started], true, nil
	}
	return nil, false, l.failed
}

// settle makes the checks that need all services, and makes the server ready. After an error it may
// be called again: what is missing may be registered before the next request.
func (s *Server) settle() error {
	l := &s.life
	l.mu.Lock()
	expected := slices.Clip(l.expected)
	l.mu.Unlock()
	err := s.checkSelectors(expected)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.started == len(l.services) && len(l.expected) == len(expected) {
		l.ready.Store(true)
	}
	return err
}

// expect notes a selector, whose names are checked before the next request is answered.
func (l *lifecycle) expect(sel Selector) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = append(l.expected, sel)
	l.ready.Store(false)
}

// done notes whether the service of next was started.
func (l *lifecycle) done(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed = err; err == nil {
		l.started++
	}
}

// addFirst registers what other services need.
func (l *lifecycle) addFirst(service any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.services = slices.Insert(l.services, 0, service)
	l.ready.Store(false)
}

// add registers a service to be started.
func (l *lifecycle) add(service any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.services = append(l.services, service)
	l.ready.Store(false)
}

// takeAll returns the services that were started, in order, and forgets all services.
func (l *lifecycle) takeAll() []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	started := l.services[:l.started]
	l.services, l.started = nil, 0
	return started
}

// awaitStart starts what has not been started. It returns early if ctx ends; the services continue
// to start for the next call.
func (s *Server) awaitStart(ctx context.Context) error {
	started := make(chan error, 1)
	// Ends when all services have started, or one has failed.
	go func() { started <- s.Start(context.WithoutCancel(ctx)) }()
	select {
	case err := <-started:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// warnAtStart logs which packages have generated descriptions that differ from their source, and
// which tools have names that some clients refuse.
func (s *Server) warnAtStart() {
	var refused []string
	for _, t := range s.catalog.Load().tools.all() {
		if !toolname.Portable(t.key) {
			refused = append(refused, t.key)
		}
	}
	if refused != nil {
		s.config.logger.Warn("mcpkit: some clients refuse tools with these names; "+toolname.Advice, "tools", refused)
	}
	if stale := s.generated.stalePackages(); len(stale) > 0 {
		s.config.logger.Warn("mcpkit: generated descriptions are stale; run go generate, or mcpkit gen", "packages", stale)
	}
}

// warnOfMissing logs how many definitions have no description, which is mostly what was built
// without its source.
func (s *Server) warnOfMissing() {
	c := s.catalog.Load()
	missing, total := 0, 0
	count := func(description string) {
		total++
		if description == "" {
			missing++
		}
	}
	for _, t := range c.tools.all() {
		count(t.def.Description)
	}
	for _, p := range c.prompts.all() {
		count(p.def.Description)
	}
	for _, r := range slices.Concat(c.resources.all(), c.templates.all()) {
		if !r.hidden { // clients do not see its description
			count(r.def.Description + r.templateDef.Description)
		}
	}
	if total == 0 {
		s.config.logger.Warn("mcpkit: the server has no tools, prompts or resources yet; they are exported methods of a service, or of an embedded struct with the tag mcpkit:\"include\"")
	}
	if missing > 0 {
		s.config.logger.Warn("mcpkit: some tools, prompts and resources have no description; write doc comments and run mcpkit gen, or use desc tags",
			"missing", missing, "of", total)
	}
}

// Close calls Close() error on each service that has it and was started, the last first, closes the
// engine of [Fleet], and joins the errors. Stop all transports before.
func (s *Server) Close() error {
	s.life.turn.Lock()
	defer s.life.turn.Unlock()
	var errs []error
	for _, service := range slices.Backward(s.life.takeAll()) {
		if closer, ok := service.(interface{ Close() error }); ok {
			if err := closer.Close(); err != nil {
				errs = append(errs, fmt.Errorf("mcpkit: close %T: %w", closer, err))
			}
		}
	}
	if s.fleet != nil { // New has opened the engine, even if nothing was started
		errs = append(errs, s.fleet.Close())
	}
	return errors.Join(errs...)
}
