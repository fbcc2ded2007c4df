package client

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/framing"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Defaults of options.
const (
	//limit:client time that a request may take | its call fails: `no answer within `
	DefaultTimeout = 30 * time.Second
	//limit:client time that a server may take to answer server/discover | it counts as a legacy server
	DefaultProbeTimeout = 5 * time.Second
	//limit:client time that a program may take to end after its input was closed, and again after SIGTERM | it is killed
	DefaultShutdownTimeout = 5 * time.Second
	//limit:client bytes of one message | its call fails: `bytes; raise MaxMessageBytes`
	DefaultMaxMessageBytes = 16 << 20
	//limit:client pages of one list | an error: `pages; raise MaxPages`
	DefaultMaxPages = 1000
	//limit:client bytes of all pages of one list | an error: `bytes; raise MaxListBytes`
	DefaultMaxListBytes = 64 << 20
	//limit:client rounds of questions in one call | an error: `times for input and still wants more; raise MaxRounds`
	DefaultMaxRounds = 16
)

// config is what the options of Dial add up to. It does not change after Dial.
type config struct {
	info            protocol.Implementation
	version         protocol.Version // pinned; "" for the newest
	handlers        *handlers
	extra           protocol.ClientCapabilities
	logger          *slog.Logger
	timeout         time.Duration
	probeTimeout    time.Duration
	shutdownTimeout time.Duration
	maxMessage      int
	framing         framing.Framing
	maxPages        int
	maxListBytes    int
	maxRounds       int
	noCache         bool
	logLevel        protocol.LoggingLevel
	httpClient      *http.Client
	header          http.Header
	stderr          io.Writer
	uncheckedOutput bool
}

// callConfig is what the options of one call add up to.
type callConfig struct {
	timeout    time.Duration
	progress   func(*protocol.ProgressParams)
	log        func(*protocol.LoggingMessageParams)
	logLevel   protocol.LoggingLevel
	meta       protocol.Meta
	idempotent bool
	fresh      bool

	uncheckedOutput bool
}

// A DialOption configures a [Client].
type DialOption interface{ dial(*config) error }

// A CallOption configures one call.
type CallOption interface{ call(*callConfig) }

// An Option does both: given to [Dial] it holds for every call that does not say otherwise.
type Option interface {
	DialOption
	CallOption
}

type dialOption func(*config) error

func (f dialOption) dial(c *config) error { return f(c) }

type callOption func(*callConfig)

func (f callOption) call(c *callConfig) { f(c) }

type bothOption struct {
	dialOption
	callOption
}

func newConfig(opts []DialOption) (*config, error) {
	c := &config{
		timeout: DefaultTimeout, probeTimeout: DefaultProbeTimeout, shutdownTimeout: DefaultShutdownTimeout,
		maxMessage: DefaultMaxMessageBytes, maxPages: DefaultMaxPages, maxListBytes: DefaultMaxListBytes, maxRounds: DefaultMaxRounds,
		handlers: &handlers{}, header: http.Header{}, stderr: os.Stderr,
	}
	for _, o := range opts {
		if err := o.dial(c); err != nil {
			return nil, err
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	if c.info.Name == "" {
		c.info = programInfo()
	}
	return c, nil
}

// programInfo names the program that this client is part of.
func programInfo() protocol.Implementation {
	info := protocol.Implementation{Name: filepath.Base(os.Args[0]), Version: "0.0.0"}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		info.Version = b.Main.Version
	}
	return info
}

// Info says what the client calls itself. The default is the name of the program and the version of
// its main module.
func Info(name, version string) DialOption {
	return dialOption(func(c *config) error {
		c.info.Name, c.info.Version = name, version
		return nil
	})
}

// Version pins the version: a server that does not speak it is an error. The default is the newest
// that both speak.
func Version(v protocol.Version) DialOption {
	return dialOption(func(c *config) error {
		if !v.Known() {
			return fmt.Errorf("client: Version(%q): unknown revision; known are %q", v, protocol.Supported)
		}
		c.version = v
		return nil
	})
}

// Capabilities declares what the client can do beyond what [Handlers] say: extensions, experimental
// capabilities, and details such as sampling with tools. What is declared of roots, sampling and
// elicitation needs the method that answers it.
func Capabilities(extra protocol.ClientCapabilities) DialOption {
	return dialOption(func(c *config) error { c.extra = extra; return nil })
}

// Logger hears what the client has to say: of tools that it left out, of messages that make no
// sense. The default is slog.Default.
func Logger(l *slog.Logger) DialOption {
	return dialOption(func(c *config) error { c.logger = l; return nil })
}

// Timeout is how long a request may take; less than or equal to 0 means no limit. Progress
// restarts it, up to ten times. The time in which the server waits for an answer of this client does
// not count. As an option of Dial, Timeout is the default of all calls. Without it, the default is
// [DefaultTimeout].
func Timeout(d time.Duration) Option {
	return bothOption{
		func(c *config) error { c.timeout = d; return nil },
		func(c *callConfig) { c.timeout = d },
	}
}

// ProbeTimeout is how long a server may take to answer whether it is a modern one. Some legacy
// servers never answer; they are initialized when it is over. The default is [DefaultProbeTimeout].
func ProbeTimeout(d time.Duration) DialOption {
	return dialOption(func(c *config) error { c.probeTimeout = d; return nil })
}

// ShutdownTimeout is how long a child process has to end after its input was closed, and again
// after it was told to terminate, before it is killed. It also bounds the end of an HTTP session.
// The default is [DefaultShutdownTimeout].
func ShutdownTimeout(d time.Duration) DialOption {
	return dialOption(func(c *config) error { c.shutdownTimeout = d; return nil })
}

// MaxMessageBytes bounds one message of the server. The default is [DefaultMaxMessageBytes].
func MaxMessageBytes(n int) DialOption {
	return dialOption(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("client: MaxMessageBytes(%d): a message has at least 1 byte", n)
		}
		c.maxMessage = n
		return nil
	})
}

// ContentLength has messages framed by header fields, as in the Language Server Protocol, instead
// of by lines: for commands, sockets and streams of servers that want that. MCP has lines.
func ContentLength() DialOption {
	return dialOption(func(c *config) error { c.framing = framing.ContentLength; return nil })
}

// MaxPages bounds the pages of one list. The default is [DefaultMaxPages].
func MaxPages(n int) DialOption {
	return dialOption(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("client: MaxPages(%d): a list has at least 1 page", n)
		}
		c.maxPages = n
		return nil
	})
}

// MaxListBytes bounds the pages of one list together, in bytes. The default is
// [DefaultMaxListBytes].
func MaxListBytes(n int) DialOption {
	return dialOption(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("client: MaxListBytes(%d): a list has at least 1 byte", n)
		}
		c.maxListBytes = n
		return nil
	})
}

// MaxRounds bounds how often a server may answer one call by asking for input. The default is
// [DefaultMaxRounds].
func MaxRounds(n int) DialOption {
	return dialOption(func(c *config) error {
		if n < 0 {
			return fmt.Errorf("client: MaxRounds(%d): 0 rounds is the least", n)
		}
		c.maxRounds = n
		return nil
	})
}

// NoCache asks the server each time. Without it lists and resources of modern servers are kept for
// as long as they allow.
func NoCache() DialOption {
	return dialOption(func(c *config) error { c.noCache = true; return nil })
}

// LogLevel asks the server for log messages of this level and above: of all calls when given to
// Dial, of one call on modern versions. They go to the Log method of [Handlers], or to [OnLog].
// Logging is deprecated since 2026-07-28.
func LogLevel(level protocol.LoggingLevel) Option {
	return bothOption{
		func(c *config) error {
			if !level.Valid() {
				return fmt.Errorf("client: LogLevel(%q): no such level", level)
			}
			c.logLevel = level
			return nil
		},
		func(c *callConfig) { c.logLevel = level },
	}
}

// HTTPClient makes the HTTP requests; its Transport is the place for proxies and certificates. A
// Timeout in it would end streams too. Redirects to another origin are refused whatever it says.
// The default is a client with connections of its own, set up as [http.DefaultTransport] is.
func HTTPClient(h *http.Client) DialOption {
	return dialOption(func(c *config) error { c.httpClient = h; return nil })
}

// Header adds a field to all HTTP requests to the server, and to no other host.
func Header(name, value string) DialOption {
	return dialOption(func(c *config) error { c.header.Add(name, value); return nil })
}

// Stderr is where a child process writes its standard error. The default is os.Stderr; nil discards
// it. One goroutine for each child writes to w, at any time until Close returns: what the program
// itself reads or writes there meanwhile, and what clients share, must be safe for concurrent use.
func Stderr(w io.Writer) DialOption {
	return dialOption(func(c *config) error { c.stderr = w; return nil })
}

// Handlers answers the server and hears what it tells, by the methods that h has. A method that is
// not there is a capability that is not declared.
//
//	Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error)                // ask the user by a form
//	ElicitURL(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error)             // send the user to a URL
//	Sample(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error)  // run a model
//	Roots(context.Context) ([]protocol.Root, error)
//	Log(context.Context, *protocol.LoggingMessageParams)
//	Progress(context.Context, *protocol.ProgressParams)
//	ToolsChanged(context.Context)
//	PromptsChanged(context.Context)
//	ResourcesChanged(context.Context)
//	ResourceUpdated(context.Context, string)            // of a URI that was subscribed to
//	ElicitationComplete(context.Context, string)        // by its ID; 2025-11-25 alone
//
// They may be called concurrently. Whether the server asks by a request, as legacy ones do, or by a
// result that requires input, or that the user has to go to a URL first by an error, makes no
// difference to them. What the user left out of an accepted form is filled in from the defaults of
// its schema. ElicitURL must show the whole URL and ask before it opens it, and must not open it
// through a shell. Changes are told one after the other, each once however often it happened
// meanwhile. An error of a method that answers fails the call; [ErrRejected] is the one for a
// person who refuses.
func Handlers(h any) DialOption {
	return dialOption(func(c *config) (err error) {
		c.handlers, err = newHandlers(h)
		return err
	})
}

// OnProgress hears how far the call has come: in order, one report at a time, and all that came
// before the answer before the call returns, none after it. It may call the server. Where it is
// slow, the call waits for it, and of what does not wait any more than 1024 reports are dropped.
func OnProgress(f func(*protocol.ProgressParams)) CallOption {
	return callOption(func(c *callConfig) { c.progress = f })
}

// OnLog hears the log messages of the call; see [LogLevel]. On connections that calls share (stdio,
// memory) messages do not say which call they belong to: then all calls in flight that have this
// option hear them.
func OnLog(f func(*protocol.LoggingMessageParams)) CallOption {
	return callOption(func(c *callConfig) { c.log = f })
}

// Meta adds a member to the _meta of the request; values that do not encode are left out. Keys of
// the protocol itself cannot be set, but for those of trace contexts.
func Meta(key string, value any) CallOption {
	return callOption(func(c *callConfig) {
		if c.meta == nil {
			c.meta = protocol.Meta{}
		}
		_ = c.meta.Set(key, value)
	})
}

// Idempotent says that the call may be sent a second time when its stream broke and nobody knows
// whether the server handled it. Without it this is done for calls that only read, and for tools
// whose hints say so.
func Idempotent() CallOption {
	return callOption(func(c *callConfig) { c.idempotent = true })
}

// UncheckedOutput takes the structured content of results as it is. Without it content that is not
// what the tool's output schema says is an [*OutputError]. Given to Dial it is for all calls.
func UncheckedOutput() Option {
	return bothOption{
		func(c *config) error { c.uncheckedOutput = true; return nil },
		func(c *callConfig) { c.uncheckedOutput = true },
	}
}

// Fresh asks the server even if the answer is in the cache.
func Fresh() CallOption {
	return callOption(func(c *callConfig) { c.fresh = true })
}
