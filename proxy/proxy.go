// Package proxy turns a remote server into a *mcpkit.Server, to mount it in another server or to
// serve it over another transport:
//
//	github, err := proxy.New("https://github.example.com/mcp",
//		proxy.Dial(client.Header("Authorization", "Bearer "+token)))
//	err = srv.Mount("github", github)
//
// The proxy has the tools, prompts, resources and templates of the remote server, and follows their
// changes. It forwards calls, completions and subscriptions, and returns progress, log messages and
// questions (elicitation, sampling, roots) to the caller, whatever protocol versions the two sides
// speak. It does not change results and errors.
//
// Callers of the proxy get results, not tasks. With [Dial] of [client.Tasks], the proxy follows the
// tasks of the remote server. Without it, and on servers with the tasks of 2025-11-25, tools that run
// only as tasks are left out, or fail with an error that says so.
//
// The remote server sees this program as its client. The proxy forwards nothing about the caller:
// no token and no header. Pass the credentials of this program to [Dial].
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Limits.
const (
	retry        = 5 * time.Second  // between attempts to reach the remote server
	parkedFor    = 10 * time.Minute // how long a call waits for the answer of its caller
	maxParked    = 1000
	maxLate      = 64              // messages for a parked call
	maxLateBytes = 16 << 10        // of each
	maxWatched   = 1000            // resources
	unheardFor   = time.Minute     // after which a watch without a subscriber ends
	refreshTime  = time.Minute     // for reading the lists of the remote server
	connectTime  = 5 * time.Minute // for a connection; the remote server may have to be compiled
	drainTime    = 30 * time.Second
)

// config has the options. It does not change after New.
type config struct {
	name     string
	dial     []client.DialOption
	scopes   []string
	optional bool
	oneUser  bool
	meta     func(context.Context) protocol.Meta
	logger   *slog.Logger
}

// An Option configures a proxy.
type Option func(*config)

// Dial adds options of [client.Dial], such as headers with the credentials of this program, an HTTP
// client that logs in, or the timeout of calls. [client.Handlers] is not allowed, since callers
// answer the questions.
func Dial(opts ...client.DialOption) Option {
	return func(c *config) { c.dial = append(c.dial, opts...) }
}

// Name sets the name of the remote server in errors and logs. The default is the name that it
// reports.
func Name(name string) Option { return func(c *config) { c.name = name } }

// Scopes requires scopes for everything that the remote server has. Callers without them do not see
// it.
func Scopes(scopes ...string) Option { return func(c *config) { c.scopes = scopes } }

// Optional lets the program start without the remote server. The proxy is empty until it can
// connect. By default, a failed connection is an error of [mcpkit.Server.Start].
func Optional() Option { return func(c *config) { c.optional = true } }

// OneUser says that all callers act for the same user, as while developing. Log messages that may
// belong to several calls go to all of them, and such a question to one of them. By default they
// are dropped and rejected, so that no caller sees data of another; see [New].
func OneUser() Option { return func(c *config) { c.oneUser = true } }

// Meta adds members to the _meta of each forwarded call and completion, and replaces those of the caller. Use it
// for the trace context, so that this server is part of the trace:
//
//	proxy.Meta(func(ctx context.Context) protocol.Meta { return otelmcp.Inject(ctx, nil) })
//
// ctx is the context of the call. Without Meta, the proxy forwards the _meta of the caller, with
// its trace context.
func Meta(f func(ctx context.Context) protocol.Meta) Option { return func(c *config) { c.meta = f } }

// Logger receives messages about the connection. The default is slog.Default.
func Logger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }

// New returns a proxy for the remote server at target, which is a URL, a command line or a
// [client.Target]; see [client.Dial]. The proxy connects when it starts, or when the server starts
// in which it is mounted, and disconnects when it closes.
//
// After a disconnect, the next call connects again. If that fails, calls fail at once with an error
// for the model, until there is another attempt 5 s later. The proxy repeats a call whose connection
// broke only if it is safe: reads, and tools with the hint readonly or idempotent.
//
// On a connection that calls share, such as the standard input and output of a process, or HTTP+SSE,
// no server says to which call a log message belongs, and a legacy server does not say to which call
// a question belongs. The proxy therefore drops such messages, and rejects such questions while
// several calls run, or once a call has ended without a response: it may still run. Over Streamable
// HTTP each call has its own stream; log messages outside these streams are dropped.
func New(target any, opts ...Option) (*mcpkit.Server, error) {
	c := config{logger: slog.Default(), meta: func(context.Context) protocol.Meta { return nil }}
	for _, o := range opts {
		o(&c)
	}
	if s, ok := target.(string); ok {
		if _, err := client.ParseTarget(s); err != nil {
			return nil, fmt.Errorf("proxy: %s", strings.TrimPrefix(err.Error(), "client: "))
		}
	}
	c.dial = append([]client.DialOption{client.Logger(c.logger)}, c.dial...)
	r := &remote{config: c, target: target, drain: drainTime}
	r.watched, r.parked = map[string]time.Time{}, map[string]*running{}
	options := []mcpkit.Option{mcpkit.With(r, mcpkit.OptIn()), mcpkit.Logger(c.logger), mcpkit.Name(r.title(), "0.0.0"),
		mcpkit.ToolTimeout(0), mcpkit.Authenticated()}
	if s, ok := target.(*Switch); ok {
		if !s.remote.CompareAndSwap(nil, r) {
			return nil, errors.New("proxy: the Switch belongs to another proxy; each needs its own")
		}
		r.target = nil // Connect sets it
		if s.Drain > 0 {
			r.drain = s.Drain
		}
		options = append(options, mcpkit.OfferAll())
	}
	srv, err := mcpkit.New(nil, options...)
	r.server, r.items = srv, srv.NewItemSet()
	return srv, err
}

// MustNew is like [New], but panics with the error.
func MustNew(target any, opts ...Option) *mcpkit.Server {
	srv, err := New(target, opts...)
	if err != nil {
		panic(err)
	}
	return srv
}
