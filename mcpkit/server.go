// Package mcpkit turns plain Go structs into MCP (Model Context Protocol) servers.
//
// Exported methods become tools, resources and prompts. Struct tags set their behaviour, and doc
// comments describe them:
//
//	// Notes keeps short notes and finds them again.
//	type Notes struct {
//		_ mcpkit.Info `name:"notes" version:"1.2.0"`
//		_ struct {
//			Search mcpkit.Tool     `hints:"readonly,idempotent"`
//			Note   mcpkit.Resource `uri:"note://{id}" mime:"text/markdown"`
//		}
//	}
//
//	func main() {
//		if err := mcpkit.Serve(&Notes{}); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// The package has these parts:
//
//   - Describe a service with tags: [Info], [Tool], [Resource], [Prompt], [Skip]; [Provide]
//     for parameters.
//   - Serve it: [Serve], or [New] and [Server.Serve], or any transport with a [Server] as its
//     handler. [Option] lists the options.
//   - Add to a server: [Server.Register], [Server.Mount], [NewTool], [NewPrompt] and [NewResource]
//     with [Server.Add], [Upstream] for definitions of another server, and [Handle] for methods of
//     your own.
//   - In a method: [Call] for progress, logs and the caller; [Elicit], [Confirm], [Choose], [Sample],
//     [Roots], [Ask] and [Once] for questions to the user; [Image], [Blob], [Link] and so on for
//     results.
//   - Errors: [Errorf] for texts that callers may see, [ErrNotFound], [CodedError],
//     [DetailedError], [RetryableError].
//   - Middleware: [Server.Use], [Around], [Handler], [Result].
//   - Extensions of the protocol: [Extension] with [Extend], [NewMethod] and [NewTopic].
//   - Authorization: scopes in tags, with [Authenticated], [TrustLocal] or [StepUp].
//   - What each caller sees, and what it says: [Visible], [Describe], [ItemSet] and package
//     ext/catalog.
//
// A Server supports all five protocol versions at once and determines the version of each request.
// docs/design/architecture.md follows a request through the code.
package mcpkit

import (
	"cmp"
	"context"
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
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/rounds"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A Server answers MCP requests of all protocol versions with the tools, prompts and resources that
// are registered on it. It is a [transport.Handler]; any number of transports may serve it at once.
//
// A Server is safe for concurrent use: it may be changed while it serves, and subscribed clients
// are notified of each change. Make one with [New].
type Server struct {
	config *config
	about  atomic.Pointer[introduction]

	registering sync.Mutex              // serialises changes of the catalog
	own         *catalog                // what is registered on this server; guarded by registering
	catalog     atomic.Pointer[catalog] // of own and what is mounted; stored with registering held

	chain   chain
	life    lifecycle
	topics  [resourceTopic + 1]*Topic // of the protocol
	overdue atomic.Int64
	state   *rounds.Sealer
	fleet   *fleet.Fleet // nil outside of a fleet
	warned  struct{ ofRates, ofKey sync.Once }
}

// An introduction is what a server says about itself. It never changes.
type introduction struct {
	info         protocol.Implementation
	instructions string
	meta         protocol.Meta // info as the _meta of every modern result
}

// Introduce sets what the server says about itself to clients that connect from now on.
func (s *Server) Introduce(info protocol.Implementation, instructions string) {
	encoded, _ := jsonx.Marshal(info) // strings and icons: always encodable
	s.about.Store(&introduction{info, instructions, protocol.Meta{protocol.MetaServerInfo: encoded}})
}

// New makes a Server of a service, which is a pointer to an annotated struct. The service is nil if
// everything comes from options or is registered later. The error has all faults of all services:
// where each is, what is wrong, and what to write instead. New starts nothing.
func New(service any, opts ...Option) (*Server, error) {
	c, err := newConfig(service, opts)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, life: lifecycle{turn: make(chan struct{}, 1)}, topics: newTopics()}
	s.own = &catalog{methods: coreMethods, config: c}
	s.catalog.Store(s.merge())
	if err := errors.Join(s.registerAll(c.services), s.Add(c.items...)); err != nil {
		return nil, err
	}
	var faults []error
	for i := range c.extensions {
		e := &c.extensions[i]
		faults = append(faults, prefixed(fmt.Sprintf("mcpkit: extension %q: ", e.ID), s.extend(e)))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	intercepted := Handler(s.dispatch)
	for _, e := range slices.Backward(c.extensions) {
		if e.Intercept != nil {
			intercepted = e.Intercept(intercepted)
		}
	}
	s.chain.set(func(ctx context.Context, call *Call) (Result, error) {
		if call.row.method == protocol.MethodToolsCall && call.refusal == nil {
			return intercepted(ctx, call)
		}
		return s.dispatch(ctx, call)
	})
	s.life.last = c.started
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
	var info protocol.Implementation
	var texts []string
	for i, r := range s.config.services {
		t := reflect.TypeOf(r.service).Elem()
		if i == 0 {
			info = r.about
			info.Name = cmp.Or(info.Name, reflectx.SnakeCase(t.Name()))
		}
		if doc := descriptions.Text(t, ""); doc != "" {
			texts = append(texts, doc)
		}
	}
	info.Name = cmp.Or(s.config.info.Name, info.Name, "mcpkit")
	info.Version = cmp.Or(s.config.info.Version, info.Version, mainVersion())
	instructions := s.config.instructions
	if instructions == "" {
		instructions = strings.Join(texts, "\n\n")
	}
	s.Introduce(info, instructions)
}

// mainVersion returns the version of the program's main module, or "0.0.0" if it was not built from
// a release.
func mainVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.0.0"
}
