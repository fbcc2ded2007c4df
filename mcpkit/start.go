package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// lifecycle starts services before the first call and closes them after the last.
type lifecycle struct {
	ready atomic.Bool // every service was started; set under mu

	// turn holds a value while services start or close, one after another. Their methods run meanwhile,
	// so they must not wait for it.
	turn    chan struct{}
	started []any // guarded by turn: in order
	failed  error // guarded by turn

	mu      sync.Mutex // never held while a method of a service runs
	waiting []any      // guarded by mu: to be started, in order of registration
	last    []any      // guarded by mu: to be started after those
}

// add registers a service to be started.
func (l *lifecycle) add(service any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, service)
	l.ready.Store(false)
}

// next returns the service to start. ok is false if all are started, which makes the server ready.
func (l *lifecycle) next() (service any, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.waiting, l.last = l.last, nil
	}
	if len(l.waiting) == 0 {
		l.ready.Store(true)
		return nil, false
	}
	service, l.waiting = l.waiting[0], l.waiting[1:]
	return service, true
}

// Start calls Start(context.Context) error on each service that has this method and has not been
// started, in order of registration. [Serve] and the first request call Start; a program may call
// it to see errors early. After an error the Server answers no calls.
//
// While it starts, a service may register services, mount servers and use middleware. What it
// registers is started after it. It must not call its own server, nor Start or Close of it.
func (s *Server) Start(ctx context.Context) error { return s.start(context.WithoutCancel(ctx), ctx) }

// start is Start with ctx for the services. It waits for its turn until waits ends.
func (s *Server) start(waits, ctx context.Context) error {
	l := &s.life
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-waits.Done():
		return context.Cause(waits)
	}
	for l.failed == nil {
		service, ok := l.next()
		if !ok {
			return nil
		}
		if err := startOne(ctx, service); err != nil {
			l.failed = fmt.Errorf("mcpkit: %T does not start: %w", service, err)
			break
		}
		l.started = append(l.started, service)
	}
	return l.failed
}

func startOne(ctx context.Context, service any) (err error) {
	defer recoverAs(&err)
	if starter, ok := service.(interface{ Start(context.Context) error }); ok {
		err = starter.Start(ctx)
	}
	return err
}

// startWait is how long a request waits for the services to start.
const startWait = 30 * time.Second

// awaitStart starts what has not been started. It returns early if ctx ends or startWait is over; the
// services continue to start for the next call.
func (s *Server) awaitStart(ctx context.Context) error {
	if s.life.ready.Load() {
		return nil
	}
	waits, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("the services are still starting after %s", startWait))
	defer cancel()
	over := make(chan error, 1)
	// Ends when all services have started, one has failed, or its turn has not come in time.
	go func() {
		err := s.start(waits, context.Background()) // services keep it for work that is not of this caller
		if err != nil && waits.Err() == nil {
			s.config.logger.ErrorContext(ctx, "mcpkit: a service did not start", "error", err)
		}
		over <- err
	}()
	select {
	case err := <-over:
		return err
	case <-waits.Done():
		return context.Cause(waits)
	}
}

// warnOfMissing logs how many definitions have no description, which is mostly what was built
// without its source.
func (s *Server) warnOfMissing() {
	entries := s.catalog.Load().entries()
	missing, total := 0, len(entries)
	for _, e := range entries {
		text, _ := e.definition.latest() // registration has encoded it
		if !e.Hidden && jsonx.Member(text, "description") == nil {
			missing++
		}
		for _, key := range []string{"anyOf", "oneOf", "allOf", "not"} {
			if jsonx.Member(jsonx.Member(text, "inputSchema"), key) != nil {
				s.config.logger.Warn("mcpkit: clients refuse the whole list for an input schema with "+key+" at its root; move it to a property", "tool", e.key)
			}
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
	l := &s.life
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	started := l.started
	l.started = nil
	var errs []error
	for _, service := range slices.Backward(started) {
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
	return errors.Join(transport.ServeAll(ctx, s, transports...), s.Close())
}
