// Package dev runs the program of a package behind a server that stays: when a file changes, it
// builds the program again and replaces it, and clients keep their connections.
package dev

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Options configures a [Server].
type Options struct {
	// Dir is where the go command and the program run.
	Dir string

	// Package is what to build, as for go build in Dir.
	Package string

	// Args are the arguments of the program.
	Args []string

	// Watch are more files and folders whose changes restart the program.
	Watch []string

	// URL is that of a server that runs already, in place of a program to build. Dial are options of
	// the connection to it.
	URL  string
	Dial []client.DialOption

	// Drain is how long calls may take to finish on the previous program. Zero means 30 seconds.
	Drain time.Duration

	// Wait is how long a request waits for a program that is being built. Zero means 30 seconds.
	Wait time.Duration

	// Stderr receives the standard error of the program. Write is called by several goroutines.
	Stderr io.Writer

	// Report is called for each event.
	Report func(Event)
}

// An Event is something that happened to the program.
type Event struct {
	Kind Kind

	// Fault has the errors of the compiler, or what the program said before it ended.
	Fault string

	// Took is how long the build took, and the start for Ready.
	Took time.Duration
}

// Kind is the kind of an [Event].
type Kind int

const (
	Building Kind = iota // a file has changed, or dev begins
	Built
	NotBuilt // the program does not compile
	Ready    // the program serves
	NotReady // the program does not start
)

// startTimeout is how long a program may take to respond to its first request.
const startTimeout = 2 * time.Minute

// A Server builds and runs a program again and again. It is a handler for any number of transports.
// Make one with [New].
type Server struct {
	transport.SessionStorer // srv

	// Trace is called with what happens in the calls of the program. It may be set before Run.
	Trace func(mcpkit.TraceEvent)

	opts  Options
	srv   *mcpkit.Server
	proxy proxy.Switch
	state state
	temp  string // the folder of the binaries
	built int    // how many binaries were built
}

// New returns a server of the program. It builds nothing before Run.
func New(opts Options) (*Server, error) {
	if opts.Wait == 0 {
		opts.Wait = 30 * time.Second
	}
	s := &Server{Trace: func(mcpkit.TraceEvent) {}, opts: opts, proxy: proxy.Switch{Drain: opts.Drain}}
	s.state.begin()
	var err error
	s.srv, err = proxy.New(&s.proxy, proxy.Name(cmp.Or(opts.URL, opts.name())), proxy.OneUser(), proxy.Meta(refOf),
		proxy.Logger(slog.New(slog.NewTextHandler(opts.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))),
		proxy.Dial(client.Timeout(0), client.Tasks(), client.ShutdownTimeout(2*time.Second), client.Logger(slog.New(slog.DiscardHandler))))
	if err != nil {
		return nil, err
	}
	s.SessionStorer = s.srv
	s.srv.Use(s.refuse)
	return s, nil
}

// refOf gives a call of the program the reference that it has here.
func refOf(ctx context.Context) protocol.Meta {
	return protocol.Meta{mcpkit.MetaRef: jsonx.AppendString(nil, mcpkit.CallFrom(ctx).Ref())}
}

// MCP returns the server to which the requests go.
func (s *Server) MCP() *mcpkit.Server { return s.srv }

// Run builds and runs the program, and again after each change, until ctx ends. Then it ends the
// program. The error means that the files cannot be watched.
func (s *Server) Run(ctx context.Context) (err error) {
	if err := s.srv.Start(ctx); err != nil {
		return err
	}
	defer s.srv.Close()
	if s.opts.URL != "" {
		if err := s.proxy.Connect(ctx, s.opts.URL, s.opts.Dial...); err != nil {
			return err
		}
		s.state.settle("")
		<-ctx.Done()
		return nil
	}
	if s.temp, err = os.MkdirTemp("", "mcpkit-dev-*"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.temp) }()
	w, err := newWatcher(s.opts)
	if err != nil {
		return err
	}
	defer w.close()
	src := list(ctx, s.opts)
	w.watch(src, time.Time{})
	for {
		began := time.Now()
		event, again := s.round(ctx, src, w.changed)
		if ctx.Err() != nil {
			return nil
		}
		if again {
			w.calm(ctx)
			continue
		}
		w.countTests(event.Kind == NotBuilt)
		s.state.settle(event.Fault)
		s.opts.Report(event)
		src = list(ctx, s.opts)
		w.watch(src, began)
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
			s.state.begin()
			w.calm(ctx)
		}
	}
}

// round builds the program and starts it in place of the previous one. again says that a file has
// changed before the program was built.
func (s *Server) round(ctx context.Context, src *source, changed <-chan struct{}) (event Event, again bool) {
	s.opts.Report(Event{Kind: Building})
	began := time.Now()
	building, cancel := context.WithCancel(ctx)
	var program, fault string
	done := make(chan struct{})
	// Ends with the build, which cancel ends.
	go func() {
		defer close(done)
		program, fault = s.build(building, src)
	}()
	select {
	case <-done:
		cancel()
	case <-changed:
		cancel()
		<-done
		return event, true
	}
	took := time.Since(began)
	if fault != "" {
		return Event{Kind: NotBuilt, Fault: fault, Took: took}, false
	}
	s.opts.Report(Event{Kind: Built, Took: took})
	began = time.Now()
	fault = s.start(ctx, program)
	s.sweep(program, fault == "")
	if fault != "" {
		return Event{Kind: NotReady, Fault: fault, Took: time.Since(began)}, false
	}
	return Event{Kind: Ready, Took: time.Since(began)}, false
}

// start starts the program in place of the previous one. It returns why it does not serve, or "".
func (s *Server) start(ctx context.Context, program string) (fault string) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the program did not respond within %s; let it serve first, and do slow work in a goroutine", startTimeout))
	defer cancel()
	word := rand.Text()
	said := &words{to: s.opts.Stderr, trace: s.Trace, begin: []byte(word)}
	target := client.Command(program, s.opts.Args...)
	target.Dir, target.InheritEnv, target.Env = s.opts.Dir, true, []string{mcpkit.EnvDev + "=" + word}
	err := s.proxy.Connect(ctx, target, client.Stderr(said))
	if err == nil {
		return ""
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return strings.TrimSpace("the program does not start: " + reason(err) + "\n" + said.text())
}

// reason returns the last part of an error of Connect: how the program ended, without what it said.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "; its last words: ")
	if _, after, found := strings.Cut(text, "the server ended"); found {
		return "it ended" + after
	}
	return text
}

// sweep removes the binaries that are not needed: the program, or if it runs, all others. A binary
// that still runs cannot be removed on Windows; a later call removes it.
func (s *Server) sweep(program string, runs bool) {
	if !runs {
		_ = os.Remove(program)
		return
	}
	all, _ := filepath.Glob(filepath.Join(s.temp, "*", s.opts.binary()))
	for _, path := range all {
		if path != program {
			_ = os.Remove(path)
		}
	}
}

// name returns the name of the program.
func (o *Options) name() string {
	name := o.Package
	if strings.HasPrefix(name, ".") {
		name = filepath.Join(o.Dir, name)
	}
	return filepath.Base(name)
}

// binary returns the name of the file of the program.
func (o *Options) binary() string {
	if runtime.GOOS == "windows" {
		return o.name() + ".exe"
	}
	return o.name()
}

// next returns the path of the next binary, in a folder of its own.
func (s *Server) next() (string, error) {
	s.built++
	dir := filepath.Join(s.temp, strconv.Itoa(s.built))
	return filepath.Join(dir, s.opts.binary()), os.Mkdir(dir, 0o700)
}

// A state says whether the program is being built, and why it does not work.
type state struct {
	mu      sync.Mutex
	settled chan struct{} // closed when the program was built; guarded by mu
	fault   string        // guarded by mu
	once    bool          // it was settled before; guarded by mu
}

// begin makes the requests that follow wait. It is called first, and after settle.
func (s *state) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = make(chan struct{})
}

// settle ends the wait. fault says why the program does not work; "" if it does.
func (s *state) settle(fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.once = fault, true
	close(s.settled)
}

// now returns the state.
func (s *state) now() (settled <-chan struct{}, fault string, once bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled, s.fault, s.once
}

// errBuilding is the error of calls that waited too long for the first program.
var errBuilding = mcpkit.Errorf("the program is still being built; try again later")
