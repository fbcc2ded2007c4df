package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// noTimeout is what a duration option means by "no limit"; zero is "not said".
const noTimeout time.Duration = -1

// Defaults of options.
const (
	//limit:call time of a tool call; a `timeout` tag overrides it | a tool error: `timed out after `
	DefaultToolTimeout = 30 * time.Second
	//limit:message items of a page of a list | nothing: the page has a `nextCursor`
	DefaultPageSize = 1000
	//limit:server time that calls in flight have to finish at shutdown | their connections are closed
	DefaultShutdownTimeout = 10 * time.Second
	//limit:call bytes collected from readers and iterators | a tool error: `the result is larger than `
	DefaultMaxResultBytes = 16 << 20
	//limit:call time that a question to the user may take; the time of the call stops meanwhile | the method gets an error
	DefaultQuestionTimeout = 10 * time.Minute
	//limit:server calls of one tool that are still running after their time was over | a tool error: `earlier calls of this are still running after their time was over; try again later`
	DefaultMaxOverdue = 32
)

// config is what the options of a Server add up to. It does not change after New.
type config struct {
	info           protocol.Implementation
	instructions   string
	logger         *slog.Logger
	toolTimeout    time.Duration
	questions      time.Duration // how long a question to a legacy client may be open; 0: for ever
	maxOverdue     int           // 0: no limit
	pageSize       int
	listTTL        time.Duration
	maxResultBytes int
	exposeErrors   bool
	repair         bool
	validate       *validator.Validate
	docs           []reflectx.Descriptions
	providers      map[reflect.Type]reflectx.Injector
	unions         map[reflect.Type]*reflectx.Union
	stateKeys      [][]byte
	given          registration // of the service given to New
	services       []registration
	transports     []transport.Transport
	authenticated  bool
	stepUp         bool
	local          *oauth.Principal // who runs the server; nil: nobody is trusted for that
}

// registration is a service and how it is to be registered.
type registration struct {
	service any
	prefix  string
	optIn   bool
	around  []Middleware
}

// A ServeOption configures [Serve]. Every [Option] is one.
type ServeOption interface{ configure(*config) error }

// An Option configures a Server: [New] and [Serve] take it. Every [ServiceOption] is one, for the
// service given to New or Serve.
type Option interface {
	ServeOption
	option()
}

// A ServiceOption configures the registration of one service: [Server.Register] and [With] take it.
type ServiceOption interface {
	Option
	register(*registration)
}

// A MountOption configures [Server.Mount].
type MountOption interface {
	ServiceOption
	wrap() []Middleware
}

type serveOption func(*config) error

func (o serveOption) configure(c *config) error { return o(c) }

type option struct{ serveOption }

func (option) option() {}

func newOption(f func(*config) error) Option { return option{f} }

type serviceOption func(*registration)

func (o serviceOption) configure(c *config) error { o(&c.given); return nil }
func (o serviceOption) register(r *registration)  { o(r) }
func (serviceOption) option()                     {}

type around []Middleware

func (o around) configure(c *config) error { o.register(&c.given); return nil }
func (o around) register(r *registration)  { r.around = append(r.around, o...) }
func (o around) wrap() []Middleware        { return o }
func (around) option()                     {}

// Name overrides the server's name and version, which otherwise come from the first service's Info field,
// its type name and the main module.
func Name(name, version string) Option {
	return newOption(func(c *config) error {
		if name == "" && version == "" {
			return errors.New(`mcpkit: Name("", ""): both are empty; leave the option out to name the server by its service`)
		}
		c.info.Name, c.info.Version = name, version
		return nil
	})
}

// Instructions tells models how to use the server, instead of the services' doc comments.
func Instructions(text string) Option {
	return newOption(func(c *config) error { c.instructions = text; return nil })
}

// Logger hears what the server has to say of itself and the full text of errors that clients are not shown.
// The default is slog.Default.
func Logger(l *slog.Logger) Option {
	return newOption(func(c *config) error {
		if l == nil {
			return errors.New("mcpkit: Logger(nil): leave the option out for slog.Default, or give slog.New(slog.DiscardHandler) for none")
		}
		c.logger = l
		return nil
	})
}

// ToolTimeout is how long a tool call may take unless its timeout tag says otherwise; 0 means no limit. When the time is over the
// method's context ends and the caller gets a tool error that says so, whether the method returns or not. Iterators and readers that
// the method returned are part of its time; the time in which a question to the client is open is not (see [QuestionTimeout]).
//
// A method that does not return is overdue: it goes on with its ended context, and the values that [Provide] gave it stay until it
// returns. It is logged once, and counted by [Server.Overdue]; see [MaxOverdue].
// The default is [DefaultToolTimeout].
func ToolTimeout(d time.Duration) Option {
	return newOption(func(c *config) error {
		if d < 0 {
			return fmt.Errorf("mcpkit: ToolTimeout(%s): the time is negative; 0 means no limit", d)
		}
		if d == 0 {
			d = noTimeout
		}
		c.toolTimeout = d
		return nil
	})
}

// MaxOverdue is how many methods of one tool may be overdue (see [ToolTimeout]) before further calls of the tool are refused with an
// [*OverdueError]: each holds memory and a goroutine. The same holds for each prompt and resource. 0 means no limit. The default is
// [DefaultMaxOverdue].
func MaxOverdue(n int) Option {
	return newOption(func(c *config) error {
		if n < 0 {
			return fmt.Errorf("mcpkit: MaxOverdue(%d): the number is negative; 0 means no limit", n)
		}
		c.maxOverdue = n
		return nil
	})
}

// QuestionTimeout is how long a question to a legacy client, such as [Elicit], may be open: a person may have to answer. When it is over
// the question fails with an error that is context.DeadlineExceeded. The time limit of the call does not count that time. 0 means
// no limit. The default is [DefaultQuestionTimeout].
func QuestionTimeout(d time.Duration) Option {
	return newOption(func(c *config) error {
		if d < 0 {
			return fmt.Errorf("mcpkit: QuestionTimeout(%s): the time is negative; 0 means no limit", d)
		}
		c.questions = d
		return nil
	})
}

// PageSize is how many items a page of a list holds. The default is [DefaultPageSize].
func PageSize(n int) Option {
	return newOption(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("mcpkit: PageSize(%d): a page holds at least 1 item", n)
		}
		c.pageSize = n
		return nil
	})
}

// ListTTL is how long clients of 2026-07-28 may keep lists without asking again; the default, 0, is not at all.
func ListTTL(d time.Duration) Option {
	return newOption(func(c *config) error {
		if d < 0 {
			return fmt.Errorf("mcpkit: ListTTL(%s): the time is negative; 0 means that lists are not kept", d)
		}
		c.listTTL = d
		return nil
	})
}

// MaxResultBytes bounds what is collected from an io.Reader or an iterator that a method returns.
// The default is [DefaultMaxResultBytes].
func MaxResultBytes(n int) Option {
	return newOption(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("mcpkit: MaxResultBytes(%d): a result needs at least 1 byte", n)
		}
		c.maxResultBytes = n
		return nil
	})
}

// ExposeErrors shows clients the text of every error. Without it they see only errors meant for them (see [Errorf]) and,
// for the others, a reference to the log.
func ExposeErrors() Option {
	return newOption(func(c *config) error { c.exposeErrors = true; return nil })
}

// Repair accepts arguments that are wrong in an unambiguous way, as models send them: "5" for 5, and JSON text for
// an object or an array. Without it the published schema and the server agree exactly. [Call.Repairs] counts
// them, and the Logging middleware writes them down.
func Repair() Option {
	return newOption(func(c *config) error { c.repair = true; return nil })
}

// Validator gives the validator that enforces the validate tags, with the caller's own rules registered on it.
func Validator(v *validator.Validate) Option {
	return newOption(func(c *config) error { c.validate = v; return nil })
}

// Docs gives the source of the services' package, so that doc comments are found in programs that run without it:
//
//	//go:embed *.go
//	var source embed.FS
//
//	mcpkit.New(&Notes{}, mcpkit.Docs(source, "example.com/notes"))
func Docs(source fs.FS, pkgPath string) Option {
	return newOption(func(c *config) error {
		if source == nil {
			return errors.New("mcpkit: Docs: there is no source; embed the package's files with //go:embed *.go")
		}
		c.docs = append(c.docs, reflectx.EmbeddedDescriptions(source, pkgPath))
		return nil
	})
}

// Provide gives methods that have a parameter of type T its value, made anew for each call. The clean-ups run when
// the call is over. T never shows in a schema. An error from f ends the call like an error of the method.
func Provide[T any](f func(ctx context.Context) (T, error), cleanup ...func(T)) Option {
	return newOption(func(c *config) error {
		t := reflect.TypeFor[T]()
		if f == nil {
			return fmt.Errorf("mcpkit: Provide[%s]: there is no function to call", t)
		}
		if _, ok := c.providers[t]; ok {
			return fmt.Errorf("mcpkit: Provide[%s] is given twice", t)
		}
		c.providers[t] = func(ctx context.Context) (reflect.Value, func(), error) {
			v, err := f(ctx)
			if err != nil {
				return reflect.Value{}, nil, err
			}
			return reflect.ValueOf(&v).Elem(), func() {
				for _, clean := range cleanup {
					clean(v)
				}
			}, nil
		}
		return nil
	})
}

// StateKeys seals what travels through clients between the rounds of a call that asks questions (2026-07-28): new state
// is sealed with current, and state sealed with one of previous is still accepted. Every replica of a server needs the
// same keys. Each is at least 32 random bytes. Without this option a random key per process is used.
//
// State is bound to the name of the server (see [Name] and [Info]), and answers in it to the name of the server that asked,
// where that is a mounted one. So servers that share keys need different names, and replicas need the same; their versions
// may differ.
func StateKeys(current []byte, previous ...[]byte) Option {
	return newOption(func(c *config) error {
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

// Over gives [Serve] its transports; the default is stdio. Several transports serve at once. Over(t) is short for New
// followed by [Server.Serve] with t.
func Over(transports ...transport.Transport) ServeOption {
	return serveOption(func(c *config) error {
		c.transports = append(c.transports, transports...)
		return checkTransports("Over", transports)
	})
}

// With registers one more service. The options are those that [Server.Register] takes.
func With(service any, opts ...ServiceOption) Option {
	return newOption(func(c *config) error {
		c.services = append(c.services, newRegistration(service, opts))
		return nil
	})
}

// Prefix stands, with an underscore, before the name of every tool and prompt of a service.
func Prefix(p string) ServiceOption {
	return serviceOption(func(r *registration) { r.prefix = p })
}

// OptIn registers only the methods that the service's annotation block mentions.
func OptIn() ServiceOption {
	return serviceOption(func(r *registration) { r.optIn = true })
}

// Around puts middleware around the tools, prompts and resources of one service, inside of what [Server.Use] puts around
// every method and outside of the limits that tags set. The first is the outermost.
func Around(mw ...Middleware) MountOption { return around(mw) }

func newRegistration(service any, opts []ServiceOption) registration {
	r := registration{service: service}
	for _, o := range opts {
		o.register(&r)
	}
	return r
}

func newConfig[O ServeOption](service any, opts []O) (*config, error) {
	c := &config{
		logger:         slog.Default(),
		toolTimeout:    DefaultToolTimeout,
		questions:      DefaultQuestionTimeout,
		maxOverdue:     DefaultMaxOverdue,
		pageSize:       DefaultPageSize,
		maxResultBytes: DefaultMaxResultBytes,
		providers:      map[reflect.Type]reflectx.Injector{},
		given:          registration{service: service},
	}
	for i, o := range opts {
		if any(o) == nil {
			return nil, fmt.Errorf("mcpkit: option %d is nil", i+1)
		}
		if err := o.configure(c); err != nil {
			return nil, err
		}
	}
	if service != nil {
		c.services = append([]registration{c.given}, c.services...)
	}
	return c, nil
}
