package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// lifecycle starts services before the first call and closes them after the last.
type lifecycle struct {
	// turn is held while services start or close, one after another. Their methods run meanwhile,
	// so they must not lock it; mu is never held while one of them runs.
	turn sync.Mutex
	warn sync.Once // of names, when the server first starts

	mu       sync.Mutex
	services []any         // guarded by mu: in order of registration
	started  int           // guarded by mu: how many of services were started
	failed   error         // guarded by mu
	attempt  chan struct{} // guarded by mu: the start that requests wait for, closed at its end; nil: none
	ready    atomic.Bool   // every service was started; set under mu
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

// next returns the service to start. ok is false if all are started, which makes the server ready, or
// if one failed, with its error.
func (l *lifecycle) next() (service any, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil && l.started < len(l.services) {
		return l.services[l.started], true, nil
	}
	l.ready.Store(l.failed == nil)
	return nil, false, l.failed
}

// failure returns the error of the service that failed to start, or nil.
func (l *lifecycle) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
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

// startWait is how long a request waits for the services to start.
const startWait = 30 * time.Second

// awaitStart starts what has not been started. It returns early if ctx ends or startWait is over; the
// services continue to start for the next call.
func (s *Server) awaitStart(ctx context.Context) error {
	l := &s.life
	if l.ready.Load() {
		return nil
	}
	over := time.After(startWait)
	for !l.ready.Load() {
		select {
		case <-s.attempt(ctx):
			if err := l.failure(); err != nil {
				return err
			}
		case <-ctx.Done():
			s.config.logger.DebugContext(ctx, "mcpkit: a caller left while the services started")
			return ctx.Err()
		case <-over:
			return fmt.Errorf("the services are still starting after %s", startWait)
		}
	}
	return nil
}

// attempt starts the services for all requests that wait.
func (s *Server) attempt(ctx context.Context) <-chan struct{} {
	l := &s.life
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attempt == nil {
		done := make(chan struct{})
		l.attempt = done
		// Ends when all services have started, or one has failed.
		go func() {
			defer close(done)
			if err := s.Start(context.WithoutCancel(ctx)); err != nil {
				s.config.logger.ErrorContext(ctx, "mcpkit: a service did not start", "error", err)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.attempt = nil
		}()
	}
	return l.attempt
}

// warnAtStart logs which tools have names that some clients refuse.
func (s *Server) warnAtStart() {
	var refused []string
	for _, t := range s.catalog.Load().lists[toolEntry].sorted {
		if !naming.Portable(t.key) {
			refused = append(refused, t.key)
		}
	}
	if refused != nil {
		s.config.logger.Warn("mcpkit: some clients refuse tools with these names; "+naming.Advice, "tools", refused)
	}
}

// warnOfMissing logs how many definitions have no description, which is mostly what was built
// without its source.
func (s *Server) warnOfMissing() {
	entries := s.catalog.Load().entries()
	missing, total := 0, len(entries)
	for _, e := range entries {
		text, _ := e.definition.latest() // registration has encoded it
		if !e.hidden && jsonx.Member(text, "description") == nil {
			missing++
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

// Serve makes a [Server] of a service and serves it until the client disconnects or the program is
// told to stop. It is short for [New] and [Server.Serve]. Without [Over] it serves on standard
// input and output.
func Serve(service any, opts ...Option) error {
	s, err := New(service, opts...)
	if err != nil {
		return err
	}
	return s.Serve(context.Background())
}

// Serve starts the services, serves them over the transports (without any, over those of [Over], or
// else stdio), and closes them.
//
// It returns when ctx ends, on SIGINT or SIGTERM, or when a transport has no more clients. Then the
// server takes no new calls, and calls in flight have a limited time to finish. The error is nil
// unless a service does not start or close, or a transport fails. A second signal ends the program
// at once.
func (s *Server) Serve(ctx context.Context, transports ...transport.Transport) error {
	if err := checkTransports("Serve", transports); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The next signal ends the program: nobody who sends two wants to wait.
	context.AfterFunc(ctx, stop)

	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	s.warnOfMissing()
	if len(transports) == 0 {
		transports = s.config.transports
	}
	if len(transports) == 0 {
		transports = []transport.Transport{stdio.New(nil)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(transports))
	for _, t := range transports {
		// Ends when the transport does, which cancel causes.
		go func() { results <- t.Serve(ctx, s) }()
	}
	var errs []error
	for range transports {
		errs = append(errs, <-results)
		cancel() // when one ends, the others end, too
	}
	return errors.Join(append(errs, s.Close())...)
}

func checkTransports(where string, transports []transport.Transport) error {
	for i, t := range transports {
		if v := reflect.ValueOf(t); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("mcpkit: %s: transport %d is nil; give for example stdio.New(nil)", where, i+1)
		}
	}
	return nil
}
