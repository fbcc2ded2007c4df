package mcpkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// The defaults of the options.
const (
	defaultToolTimeout     = 30 * time.Second
	defaultPageSize        = 1000
	defaultMaxResultBytes  = 16 << 20
	defaultQuestionTimeout = 10 * time.Minute
	defaultMaxRunning      = 64
)

// config holds the options of a Server. It does not change after New.
type config struct {
	info         protocol.Implementation
	instructions string
	logger       *slog.Logger
	exposeErrors bool
	offersAll    bool
	experimental map[string]protocol.Object
	fixed        bool
	versions     []protocol.Version // newest first
	lenient      []Leniency
	validate     *validator.Validate
	rawSchemas   func(schema json.RawMessage) (reflectx.RawSchema, error) // nil if schemas cannot be written by hand
	providers    map[reflect.Type]reflectx.Injector
	stateKeys    [][]byte
	openEngine   func() (fleet.Engine, error) // nil outside of a fleet
	fleetOptions []fleet.Option
	services     []registration // the first one is that of New, until the options are read
	extensions   []Extension
	items        []Item
	started      []any                 // of Lifecycle
	tags         annotation.Extensions // of the extensions
	transports   []transport.Transport

	authenticated bool
	stepUp        bool
	local         *oauth.Principal // of TrustLocal; nil: none
	visible       []*predicate     // of Visible, for all that the server has
	describe      []func(*Def)

	toolTimeout    time.Duration // 0: no limit
	questions      time.Duration // how long a question to a legacy client may be open
	maxRunning     int           // 0: no limit
	maxResultBytes int
	pageSize       int
	listTTL        time.Duration
}

// serves reports whether the server serves the version.
func (c *config) serves(v protocol.Version) bool { return slices.Contains(c.versions, v) }

// oldest returns the oldest version that the server serves.
func (c *config) oldest() protocol.Version { return c.versions[len(c.versions)-1] }

// A registration is a service and its options.
type registration struct {
	service any
	prefix  string
	optIn   bool
	about   protocol.Implementation // the tags of the Info field, once it is registered
	guards
}

// The guards are what [Around] and [Visible] put around the entries of a service or of a mounted
// server. They are a MountOption themselves.
type guards struct {
	around  []Middleware
	visible []*predicate
}

func (g *guards) add(other guards) {
	g.around = append(g.around, other.around...)
	g.visible = append(g.visible, other.visible...)
}

// configure is for the service given to New, and for Visible for the whole server.
func (g guards) configure(c *config) error {
	c.services[0].add(guards{around: g.around})
	c.visible = append(c.visible, g.visible...)
	return nil
}
func (g guards) register(r *registration) { r.add(g) }
func (g guards) mount(m *mount)           { m.add(g) }

// An Option configures a Server: [New] and [Serve] take it. Every [ServiceOption] is one, for the
// service given to New or Serve.
type Option interface{ configure(*config) error }

// A ServiceOption configures the registration of one service: [Server.Register] and [With] take it.
type ServiceOption interface {
	Option
	register(*registration)
}

// A MountOption configures [Server.Mount].
type MountOption interface {
	ServiceOption
	mount(*mount)
}

type option func(*config) error

func (o option) configure(c *config) error { return o(c) }

type serviceOption func(*registration)

func (o serviceOption) configure(c *config) error { o(&c.services[0]); return nil }
func (o serviceOption) register(r *registration)  { o(r) }

// atLeast is an option with a number that must not be less than least.
func atLeast[T int | time.Duration](name string, n, least T, fault string, set func(*config)) Option {
	return option(func(c *config) error {
		if n < least {
			return fmt.Errorf("mcpkit: %s(%v): %s", name, n, fault)
		}
		set(c)
		return nil
	})
}

// Name sets the server's name and version. The default, also for "", is the name of the first
// service's Info field or type, and the version of the Info field or the main module.
func Name(name, version string) Option {
	return option(func(c *config) error { c.info.Name, c.info.Version = name, version; return nil })
}

// Instructions tells models how to use the server. The default is the doc comments of the services.
func Instructions(text string) Option {
	return option(func(c *config) error { c.instructions = text; return nil })
}

// Logger receives warnings and errors meant for the operator, and the full text of errors that
// clients do not see. The default, also for nil, is slog.Default.
func Logger(l *slog.Logger) Option {
	return option(func(c *config) error { c.logger = cmp.Or(l, slog.Default()); return nil })
}

// ToolTimeout limits the time of a tool call; the timeout tag of a tool overrides it. When the time
// is up, the method's context ends and the caller gets a tool error, even if the method does not
// return. The limit includes reading the iterators and readers that the method returned. It does
// not include the time in which a question to the client is open (see [QuestionTimeout]).
//
// A method that does not return in time is overdue: it continues with its ended context, and keeps
// the values of [Provide] until it returns. The server logs it once and counts it in
// [Server.Overdue]; see [MaxRunning]. 0 means no limit. The default is 30 seconds.
func ToolTimeout(d time.Duration) Option {
	return atLeast("ToolTimeout", d, 0, "the time is negative; 0 means no limit", func(c *config) { c.toolTimeout = d })
}

// MaxRunning limits how many calls of one tool, prompt or resource may run at the same time, for all
// callers together: one caller can take all places, unless a proxy in front limits callers. A call
// runs until its method has returned, even if it is overdue (see [ToolTimeout]), and its result is
// encoded. Calls with an open question and runs of tasks do not count. Further calls get a
// [*BusyError]. 0 means no limit. The default is 64.
func MaxRunning(n int) Option {
	return atLeast("MaxRunning", n, 0, "the number is negative; 0 means no limit", func(c *config) { c.maxRunning = n })
}

// QuestionTimeout limits how long a question to a legacy client, such as [Elicit], may be open.
// When the time is up, the question returns an error, whose text the caller sees. 0 means no limit.
// The default is 10 minutes.
func QuestionTimeout(d time.Duration) Option {
	return atLeast("QuestionTimeout", d, 0, "the time is negative; 0 means no limit", func(c *config) { c.questions = cmp.Or(d, math.MaxInt64) })
}

// PageSize sets how many items, at least 1, a page of a list holds. The default is
// 1,000.
func PageSize(n int) Option {
	return atLeast("PageSize", n, 1, "a page holds at least 1 item", func(c *config) { c.pageSize = n })
}

// ListTTL sets how long clients of 2026-07-28 may cache lists. The default, 0, means that they may
// not.
func ListTTL(d time.Duration) Option {
	return atLeast("ListTTL", d, 0, "the time is negative; 0 means that lists are not kept", func(c *config) { c.listTTL = d })
}

// MaxResultBytes limits what is collected from an io.Reader or an iterator that a method returns,
// in bytes; n is at least 1. The default is 16 MiB. The reader of a resource is collected only where
// complete messages are sent (stdio, WebSocket, HTTP+SSE; over Streamable HTTP in batches, and for
// clients that have left); there the limit is for the JSON of the result.
func MaxResultBytes(n int) Option {
	return atLeast("MaxResultBytes", n, 1, "a result needs at least 1 byte", func(c *config) { c.maxResultBytes = n })
}

// OfferAll declares and offers tools, prompts, resources, completions and log messages also while
// the server has none of them. Use it for a server that gets them later: clients ask only for what
// was declared when they connected. By default, the server offers what it has.
func OfferAll() Option {
	return option(func(c *config) error { c.offersAll = true; return nil })
}

// Experimental declares experimental capabilities by their names, such as "com.example/undo". The value
// {} is one without settings.
func Experimental(capabilities map[string]protocol.Object) Option {
	return option(func(c *config) error { c.experimental = capabilities; return nil })
}

// Fixed declares that what the server offers does not change while it serves. Clients are not notified
// of changed lists or updated resources, and cannot subscribe to them.
func Fixed() Option {
	return option(func(c *config) error { c.fixed = true; return nil })
}

// Versions restricts the protocol versions that the server serves. The default is all five.
func Versions(vs ...protocol.Version) Option {
	return option(func(c *config) error {
		if len(vs) == 0 || slices.ContainsFunc(vs, func(v protocol.Version) bool { return !v.Known() }) {
			return fmt.Errorf("mcpkit: Versions(%q): write at least one of %q, and no others", vs, protocol.Supported)
		}
		c.versions = slices.DeleteFunc(slices.Clone(protocol.Supported), func(v protocol.Version) bool {
			return !slices.Contains(vs, v)
		})
		return nil
	})
}

// ExposeErrors shows the text of all errors to clients. By default they see only errors meant for
// them (see [Errorf]), and for the others a reference to the log. Panics are logged in either case.
func ExposeErrors() Option {
	return option(func(c *config) error { c.exposeErrors = true; return nil })
}

// A Leniency is one kind of mistakes in arguments that [Lenient] accepts.
type Leniency = reflectx.Leniency

// The kinds of mistakes.
const (
	LenientUnknown = reflectx.LenientUnknown // names that the schema does not allow are ignored
	LenientNull    = reflectx.LenientNull    // null, where it is not allowed and nothing is required, is absent
	LenientScalars = reflectx.LenientScalars // a number or a bool may be in a string: "5" for 5
	LenientLists   = reflectx.LenientLists   // one value may stand for a list
	LenientJSON    = reflectx.LenientJSON    // an object or an array may be JSON in a string
)

// Lenient accepts mistakes in arguments that models make and that have only one meaning. By default
// the server accepts what the published schema accepts, and null for what is not required if the
// schema is that of a type. [Call.Repairs] counts the repaired values, and the Logging middleware logs
// them. In a schema written by hand, what has alternatives or a reference is not repaired.
func Lenient(kinds ...Leniency) Option {
	return option(func(c *config) error {
		if slices.ContainsFunc(kinds, func(k Leniency) bool { return !slices.Contains(reflectx.Leniencies, k) }) {
			return fmt.Errorf("mcpkit: Lenient(%q): write some of %q", kinds, reflectx.Leniencies)
		}
		c.lenient = kinds
		return nil
	})
}

// A Nullable is a field of arguments that tells an absent member, null and a value apart.
type Nullable[T any] = reflectx.Nullable[T]

// Validator sets the validator that enforces the validate tags. It may have rules of its own.
// Validator registers the rule enum on it, which is that of the schema.
func Validator(v *validator.Validate) Option {
	return option(func(c *config) error { c.validate = v; return reflectx.RegisterRules(v) })
}

// RawSchemas lets the server have JSON Schemas that are written by hand: those of
// [Builder.Input] and [Builder.Output]. compile is rawschema.Compile, of
// package rawschema of this module. Programs that do not use it start faster.
func RawSchemas(compile func(schema json.RawMessage) (reflectx.RawSchema, error)) Option {
	return option(func(c *config) error { c.rawSchemas = compile; return nil })
}

// RegisterDescriptions registers the doc comments of a package for programs that run without its
// source. Only files written by "mcpkit gen" call it. See [reflectx.RegisterDescriptions] for the
// keys.
func RegisterDescriptions(pkgPath string, descriptions map[string]string) {
	reflectx.RegisterDescriptions(pkgPath, descriptions)
}

// Docs gives the source of a package, for programs that run without it. Unlike a generated file it
// needs no command, but the program contains the source:
//
//	//go:embed *.go
//	var source embed.FS
//
//	mcpkit.New(&Notes{}, mcpkit.Docs(source, "main"))
//
// pkgPath is the import path of the package, or "main" for the program's own. source has its files at
// the root. The descriptions are for all servers of the program.
func Docs(source fs.FS, pkgPath string) Option {
	return option(func(*config) error { reflectx.RegisterSource(pkgPath, source); return nil })
}

// Provide gives a value to methods with a parameter of type T. f makes it for each call, and the
// clean-ups run when the call is over. T is not part of any schema. An error of f ends the call
// like an error of the method.
func Provide[T any](f func(ctx context.Context) (T, error), cleanup ...func(T)) Option {
	return option(func(c *config) error {
		t := reflect.TypeFor[T]()
		if _, ok := c.providers[t]; ok {
			return fmt.Errorf("mcpkit: Provide[%s] is given twice", t)
		}
		if ofCall[t] != nil || isHeader(t) || t == reflect.TypeFor[context.Context]() {
			return fmt.Errorf("mcpkit: Provide[%s]: methods get it from the call; provide a type of your own", t)
		}
		c.providers[t] = func(ctx context.Context) (reflect.Value, error) {
			v, err := f(ctx)
			if err != nil {
				return reflect.Value{}, err
			}
			CallFrom(ctx).OnEnd(func() {
				for _, clean := range cleanup {
					clean(v)
				}
			})
			return reflect.ValueOf(&v).Elem(), nil
		}
		return nil
	})
}

// StateKeys sets the keys that seal what clients keep between the rounds of a call that asks
// questions (2026-07-28). New state is sealed with current; state sealed with a previous key is
// still accepted. Each key has at least 32 random bytes, and all replicas of a server need the same
// keys. The default is a random key for each process.
//
// State is bound to the name of the server (see [Name] and [Info]), and each answer to the name of
// the mounted server that asked. So replicas need the same name, and other servers that share the
// keys need other names. Versions may differ.
func StateKeys(current []byte, previous ...[]byte) Option {
	return option(func(c *config) error {
		keys := append([][]byte{current}, previous...)
		for i, key := range keys {
			if len(key) < 32 {
				return fmt.Errorf("mcpkit: StateKeys: key %d has %d bytes; at least 32 random bytes are needed", i+1, len(key))
			}
		}
		c.stateKeys = keys
		return nil
	})
}

// Over gives the transports that [Serve], or [Server.Serve] without transports, serves over; the
// default is stdio. Several transports serve at once.
func Over(transports ...transport.Transport) Option {
	return option(func(c *config) error {
		c.transports = append(c.transports, transports...)
		return nil
	})
}

// With registers one more service. See [Server.Register].
func With(service any, opts ...ServiceOption) Option {
	return option(func(c *config) error {
		c.services = append(c.services, newRegistration(service, opts))
		return nil
	})
}

// Options is several options as one.
func Options(all ...Option) Option {
	return option(func(c *config) error {
		for _, o := range all {
			if err := o.configure(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// Lifecycle starts a value with the server, after all services and mounted servers, and closes it before
// them: see [Server.Start].
func Lifecycle(service any) Option {
	return option(func(c *config) error { c.started = append(c.started, service); return nil })
}

// Items registers items: see [Server.Add].
func Items(items ...Item) Option {
	return option(func(c *config) error { c.items = append(c.items, items...); return nil })
}

// Prefix puts a prefix and an underscore before the name of each tool and prompt of a service.
func Prefix(p string) ServiceOption {
	return serviceOption(func(r *registration) { r.prefix = p })
}

// OptIn registers only the methods that the service's annotation block lists.
func OptIn() ServiceOption {
	return serviceOption(func(r *registration) { r.optIn = true })
}

// Around puts middleware around the tools, prompts and resources of one service, their completions and
// subscriptions: inside of the middleware of [Server.Use], and outside of the limits of tags. The first
// is the outermost. It tells what it is for by [Call.Method]. Around panics if a middleware is nil.
func Around(mw ...Middleware) MountOption {
	refuseNil("Around", mw)
	return guards{around: mw}
}

func newRegistration(service any, opts []ServiceOption) registration {
	r := registration{service: service}
	for _, o := range opts {
		o.register(&r)
	}
	return r
}

func newConfig(service any, opts []Option) (*config, error) {
	c := &config{
		logger: slog.Default(), providers: map[reflect.Type]reflectx.Injector{}, services: []registration{{service: service}},
		toolTimeout: defaultToolTimeout, questions: defaultQuestionTimeout, maxRunning: defaultMaxRunning,
		maxResultBytes: defaultMaxResultBytes, pageSize: defaultPageSize, versions: protocol.Supported,
	}
	if err := Options(opts...).configure(c); err != nil {
		return nil, err
	}
	if given := c.services[0]; service == nil {
		if given.prefix != "" || given.optIn || given.around != nil {
			return nil, errors.New("mcpkit: Prefix, OptIn and Around are for the service that New and Serve get, " +
				"which is nil; pass them to With or Register")
		}
		c.services = c.services[1:]
	}
	return c, c.readTags()
}
