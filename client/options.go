package client

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Default values of the options.
const (
	defaultTimeout         = 30 * time.Second
	defaultProbeTimeout    = 5 * time.Second
	defaultShutdownTimeout = 5 * time.Second
	defaultMaxMessageBytes = 16 << 20
	defaultMaxRounds       = 16
)

// config is the configuration of a client. It does not change after Dial.
type config struct {
	info            protocol.Implementation
	version         protocol.Version // pinned; "" for the newest
	handlers        *handlers
	extra           protocol.ClientCapabilities
	extensions      map[string]*extension
	onResult        map[string]ResultFunc // by result type; nil: none
	logger          *slog.Logger
	timeout         time.Duration
	probeTimeout    time.Duration
	shutdownTimeout time.Duration
	maxMessage      int
	framing         conn.Framing
	maxRounds       int
	taskTimeout     time.Duration
	noCache         bool
	logLevel        protocol.LoggingLevel
	httpClient      *http.Client
	header          http.Header
	stderr          io.Writer
	checkPatterns   bool
	uncheckedOutput bool
}

// callConfig is the configuration of one call.
type callConfig struct {
	timeout     time.Duration
	taskTimeout time.Duration
	progress    func(*protocol.ProgressParams)
	log         func(*protocol.LoggingMessageParams)
	notify      func(method string, params json.RawMessage)
	logLevel    protocol.LoggingLevel
	meta        protocol.Meta
	idempotent  bool
	fresh       bool
	name        string        // value of the header Mcp-Name; "" for that of the method
	onResult    *resultOption // replaces those of Dial for one result type

	uncheckedOutput bool
}

// A DialOption configures a [Client].
type DialOption interface{ dial(*config) error }

// A CallOption configures one call.
type CallOption interface{ call(*callConfig) }

// An Option is both: as an option of [Dial], it is the default for all calls.
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
		timeout: defaultTimeout, probeTimeout: defaultProbeTimeout, shutdownTimeout: defaultShutdownTimeout,
		maxMessage: defaultMaxMessageBytes, maxRounds: defaultMaxRounds,
		taskTimeout: defaultTaskTimeout,
		handlers:    &handlers{}, header: http.Header{}, stderr: os.Stderr,
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

// programInfo returns the name and version of this program.
func programInfo() protocol.Implementation {
	info := protocol.Implementation{Name: filepath.Base(os.Args[0]), Version: "0.0.0"}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		info.Version = b.Main.Version
	}
	return info
}

// Info sets the name and version that the client reports. The default is the name of the program
// and the version of its main module.
func Info(name, version string) DialOption {
	return dialOption(func(c *config) error {
		c.info.Name, c.info.Version = name, version
		return nil
	})
}

// Version sets the only protocol version that the client accepts: Dial fails if the server does not
// speak it. By default the client uses the newest version that both speak.
func Version(v protocol.Version) DialOption {
	return dialOption(func(c *config) error {
		if !v.Known() {
			return fmt.Errorf("client: Version(%q): unknown version; known are %q", v, protocol.Supported)
		}
		c.version = v
		return nil
	})
}

// Capabilities declares what the client can do beyond what [Handlers] say: extensions, experimental
// capabilities, and details such as sampling with tools. A declaration of roots, sampling or
// elicitation needs the method that handles it.
func Capabilities(extra protocol.ClientCapabilities) DialOption {
	return dialOption(func(c *config) error { c.extra = extra; return nil })
}

// Logger receives the warnings of the client, for example about tools that it leaves out or
// messages that it cannot read. The default is slog.Default.
func Logger(l *slog.Logger) DialOption {
	return dialOption(func(c *config) error { c.logger = l; return nil })
}

// Timeout is how long a request may take; less than or equal to 0 means no limit. Progress restarts
// it, but a request ends after ten times the Timeout at the latest. The time in which the server
// waits for a response of this client does not count. As an option of Dial, Timeout is the default
// of all calls. Without it, the default is 30 seconds.
func Timeout(d time.Duration) Option {
	return bothOption{
		func(c *config) error { c.timeout = d; return nil },
		func(c *callConfig) { c.timeout = d },
	}
}

// ProbeTimeout limits how long Dial waits for the response to server/discover. Some legacy servers
// never respond; when the time is over, Dial sends initialize. The default is 5 seconds.
func ProbeTimeout(d time.Duration) DialOption {
	return dialOption(func(c *config) error { c.probeTimeout = d; return nil })
}

// ShutdownTimeout is how long a child process has to end after its input was closed, and again
// after it was told to terminate, before it is killed. It also bounds the end of an HTTP session.
// The default is 5 seconds.
func ShutdownTimeout(d time.Duration) DialOption {
	return dialOption(func(c *config) error { c.shutdownTimeout = d; return nil })
}

// MaxMessageBytes limits the size of one message of the server. The default is 16 MiB.
func MaxMessageBytes(n int) DialOption {
	return atLeast("MaxMessageBytes", n, 1, func(c *config) { c.maxMessage = n })
}

// atLeast is the option name(n), for which least is the minimum.
func atLeast(name string, n, least int, set func(*config)) DialOption {
	return dialOption(func(c *config) error {
		if n < least {
			return fmt.Errorf("client: %s(%d): the minimum is %d", name, n, least)
		}
		set(c)
		return nil
	})
}

// ContentLength frames messages with header fields, as the Language Server Protocol does, for
// commands, sockets and streams of servers that require it. By default each message is a line, as
// MCP specifies.
func ContentLength() DialOption {
	return dialOption(func(c *config) error { c.framing = conn.ContentLength; return nil })
}

// MaxRounds limits how often a server may ask for input in one call. The default is 16.
func MaxRounds(n int) DialOption {
	return atLeast("MaxRounds", n, 0, func(c *config) { c.maxRounds = n })
}

// NoCache turns the cache off. By default the client keeps lists and resources of modern servers
// for as long as the server allows; see [HTTPClient] for results that are private.
func NoCache() DialOption {
	return dialOption(func(c *config) error { c.noCache = true; return nil })
}

// LogLevel requests log messages of this level and above. As an option of a call, it works only on
// modern versions. The messages go to the Log method of [Handlers] and to [OnLog]. Logging is
// deprecated since 2026-07-28.
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

// HTTPClient sets the client that sends the HTTP requests. Its Transport configures proxies and
// certificates. Its Timeout also ends streams, so leave it zero. Redirects to another origin are
// always refused. By default the client has its own connections, configured like
// [http.DefaultTransport].
//
// A Transport that is not an [*http.Transport], and a Jar, may change the credentials of requests.
// Results that are private to their user are then cached only if the Transport has the method
// AuthorizationContext() uint64, whose result changes whenever the credentials may be those of
// another user, as that of package oauthclient has.
func HTTPClient(h *http.Client) DialOption {
	return dialOption(func(c *config) error { c.httpClient = h; return nil })
}

// authorization returns a number that changes with the credentials that the HTTP client puts on
// requests. It returns false if it is unknown when they change.
func (c *config) authorization() (uint64, bool) {
	if c.httpClient == nil {
		return 0, true
	}
	switch t := c.httpClient.Transport.(type) {
	case nil, *http.Transport:
		return 0, c.httpClient.Jar == nil
	case interface{ AuthorizationContext() uint64 }:
		return t.AuthorizationContext(), c.httpClient.Jar == nil
	}
	return 0, false
}

// Header adds a field to all HTTP requests to the server. It is never sent to another host.
func Header(name, value string) DialOption {
	return dialOption(func(c *config) error { c.header.Add(name, value); return nil })
}

// Stderr sets where the standard error of a child process goes. The default is os.Stderr; nil
// discards it. One goroutine for each child writes to w until Close returns, so a w that is shared,
// or read meanwhile, must be safe for concurrent use.
func Stderr(w io.Writer) DialOption {
	return dialOption(func(c *config) error { c.stderr = w; return nil })
}

// Handlers sets the value whose methods respond to the server's questions and receive its
// notifications. A capability is declared only if h has its method.
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
//	Notification(context.Context, string, json.RawMessage) // every other one, by its method, in the order received
//
// The methods may be called concurrently. They serve legacy and modern servers alike. Fields that
// the user leaves out of an accepted form get the defaults of its schema. ElicitURL must show the
// whole URL and ask the user before it opens it, and must not open it through a shell. The methods
// for changes are called one at a time; changes that repeat meanwhile are reported once.
// Notification is called on the goroutine that receives messages, so it must return soon. An error
// of Elicit, ElicitURL, Sample or Roots fails the call; return [ErrRejected] if the user refuses. A
// panic is logged, and counts as an error.
func Handlers(h any) DialOption {
	return dialOption(func(c *config) (err error) {
		c.handlers, err = newHandlers(h)
		return err
	})
}

// OnProgress sets the function that receives the progress of the call: in order, one report at a
// time, and never after the call has returned. It may call the server. The call waits until f has
// received the reports that came before the response. At most 1024 reports wait for f; the rest is
// dropped.
func OnProgress(f func(*protocol.ProgressParams)) CallOption {
	return callOption(func(c *callConfig) { c.progress = f })
}

// OnLog sets the function that receives the log messages of the call; see [LogLevel]. On
// connections that calls share (see [Client.Shared]), messages do not say which call they belong to,
// so every call in flight with this option receives them. Over Streamable HTTP, a message that is not
// on the stream of a call goes to the Log method of [Handlers]; if there is none, to the only call in
// flight, and if there are several, to none.
func OnLog(f func(*protocol.LoggingMessageParams)) CallOption {
	return callOption(func(c *callConfig) { c.log = f })
}

// OnNotification sets the function that receives the notifications of a [Client.Request] to a method
// of an extension: those whose subscription ID, in their _meta, is the ID of the request. It is called
// for one after the other, and not after the request. Once 1024 of them or 4 MiB wait for it, it
// receives only these, and then the request fails.
func OnNotification(f func(method string, params json.RawMessage)) CallOption {
	return callOption(func(c *callConfig) { c.notify = f })
}

// Meta adds a member to the _meta of the request. A value that cannot be encoded is left out. Of
// the protocol's own keys, only those of trace contexts can be set.
func Meta(key string, value any) CallOption {
	return callOption(func(c *callConfig) {
		if c.meta == nil {
			c.meta = protocol.Meta{}
		}
		_ = c.meta.Set(key, value)
	})
}

// Name sets the header Mcp-Name of a [Client.Request]: the method of an extension may demand that it
// mirrors a member of the params. The client sets it for the methods of the protocol.
func Name(value string) CallOption {
	return callOption(func(c *callConfig) { c.name = value })
}

// Idempotent allows the client to send the call again when its connection breaks, a proxy cannot
// reach the server, or the process that ran it has ended, and it is unknown whether the server
// handled it. By default the client retries only calls that read, and tools with
// the hint idempotent or readonly.
func Idempotent() CallOption {
	return callOption(func(c *callConfig) { c.idempotent = true })
}

// CheckPatterns also checks the patterns in output schemas. By default they are ignored, since they
// are regular expressions of the server, which may cost any amount of memory and time: use
// CheckPatterns only for servers that the program trusts.
func CheckPatterns() DialOption {
	return dialOption(func(c *config) error { c.checkPatterns = true; return nil })
}

// UncheckedOutput turns off the check of structured content against the tool's output schema. By
// default content that violates the schema is an [*OutputError]. As an option of Dial, it applies
// to all calls.
func UncheckedOutput() Option {
	return bothOption{
		func(c *config) error { c.uncheckedOutput = true; return nil },
		func(c *callConfig) { c.uncheckedOutput = true },
	}
}

// Fresh sends the request to the server even if the result is in the cache.
func Fresh() CallOption {
	return callOption(func(c *callConfig) { c.fresh = true })
}
