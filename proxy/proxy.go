// Package proxy makes a server of a server that runs elsewhere, so that it can be mounted in one's own or be served in another
// way:
//
//	github, err := proxy.New("https://github.example.com/mcp", proxy.Dial(client.Header("Authorization", "Bearer "+token)))
//	err = srv.Mount("github", github)
//
// The tools, prompts, resources and templates of the remote server are there as it describes them, also after it changes them.
// Calls, completions and subscriptions go to it; progress, log messages and questions (elicitation, sampling, roots) come back
// to whoever called, whichever revisions of the protocol are spoken on either side. Results and errors come as the remote server
// gave them.
//
// The remote server sees this program as its client: nothing that says who called is passed on, no token and no header. What it
// needs to know of this program is given to [Dial].
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Bounds.
const (
	firstRetry  = time.Second
	lastRetry   = 30 * time.Second
	parkedFor   = 10 * time.Minute // how long a call waits for its caller to come back with an answer
	maxParked   = 1000
	maxWatched  = 1000        // resources
	unheardFor  = time.Minute // after which an update that nobody hears of ends the subscription
	refreshTime = time.Minute // for reading what the remote server has
)

// config is what the options add up to. It does not change after New.
type config struct {
	name      string
	dial      []client.DialOption
	scopes    []string
	optional  bool
	questions bool
	meta      func(context.Context) protocol.Meta // nil: none
	logger    *slog.Logger
}

// An Option configures a proxy.
type Option func(*config)

// Dial gives options of [client.Dial]: headers with this program's own credentials, an HTTP client that logs in, the time that
// calls may take. Handlers cannot be given: the callers answer.
func Dial(opts ...client.DialOption) Option {
	return func(c *config) { c.dial = append(c.dial, opts...) }
}

// Name says what the remote server is called in errors and logs. By default it is what it says itself.
func Name(name string) Option { return func(c *config) { c.name = name } }

// Scopes demands scopes of everything that the remote server has: who lacks them does not see it.
func Scopes(scopes ...string) Option { return func(c *config) { c.scopes = scopes } }

// Optional lets the program start when the remote server is not there: it has nothing then, and what it has appears when it
// comes. Without the option that is an error of the start.
func Optional() Option { return func(c *config) { c.optional = true } }

// NoQuestions lets the remote server ask callers nothing: it is told that they cannot be asked.
func NoQuestions() Option { return func(c *config) { c.questions = false } }

// Meta adds members to the _meta of each call that is passed on, in the place of those that the caller gave, such as the trace
// context of the call here, so that this server is part of the trace:
//
//	proxy.Meta(func(ctx context.Context) protocol.Meta { return otelmcp.Inject(ctx, nil) })
//
// ctx is that of the call here. Without it the remote server is told what the caller says, its trace context included.
func Meta(f func(ctx context.Context) protocol.Meta) Option { return func(c *config) { c.meta = f } }

// Logger hears what becomes of the connection. The default is slog.Default.
func Logger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }

// New returns a server that stands for the remote one at target, which is anything that [client.Dial] takes: a URL, a command
// line, a [client.Target]. The server connects when it starts ([mcpkit.Server.Start], or that of the server in which it is
// mounted), and disconnects when it is closed.
//
// A connection that breaks is made anew by the next call; where that fails there is another attempt after a second at first and
// after half a minute at last, and until then calls fail at once, with an error for the model that says so. A call whose connection breaks is repeated only if that does no
// harm: reads, and tools with hints that say so.
//
// On connections that calls share, such as the standard input and output of a process, a legacy server does not say for which of
// several calls it asks, and no server for which it logs: while several callers wait, such questions are refused and such
// messages are dropped, rather than guessed. Over HTTP each call has a stream of its own.
func New(target any, opts ...Option) (*mcpkit.Server, error) {
	c := config{questions: true, logger: slog.Default()}
	for _, o := range opts {
		o(&c)
	}
	if s, ok := target.(string); ok {
		if _, err := client.ParseTarget(s); err != nil {
			return nil, fmt.Errorf("proxy: %s", strings.TrimPrefix(err.Error(), "client: "))
		}
	}
	r := &remote{config: c, target: target, streams: overHTTP(target), watched: map[string]*watch{}, parked: map[string]*running{}, running: map[*running]struct{}{}}
	srv, err := mcpkit.New(nil, mcpkit.With(r, mcpkit.OptIn()), mcpkit.Logger(c.logger), mcpkit.Name(r.title(), "0.0.0"),
		mcpkit.ToolTimeout(0), mcpkit.Authenticated())
	if err != nil {
		return nil, err
	}
	r.server = srv
	srv.Use(r.middleware)
	return srv, nil
}

// overHTTP reports whether target is a URL of HTTP, as a string or made by [client.URL].
func overHTTP(target any) bool {
	v := reflect.ValueOf(target)
	return v.Kind() == reflect.String && (strings.HasPrefix(v.String(), "http://") || strings.HasPrefix(v.String(), "https://"))
}

// MustNew is New that panics with the error.
func MustNew(target any, opts ...Option) *mcpkit.Server {
	srv, err := New(target, opts...)
	if err != nil {
		panic(err)
	}
	return srv
}

// title is what the remote server is called.
func (r *remote) title() string {
	if r.config.name != "" {
		return r.config.name
	}
	if said := r.said.Load(); said != nil {
		return *said
	}
	return "remote"
}

// Start connects, and reads what there is.
func (r *remote) Start(ctx context.Context) error {
	r.base, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	_, err := r.connect(ctx)
	switch {
	case err == nil:
		return nil
	case r.config.optional:
		r.config.logger.WarnContext(ctx, "proxy: a remote server is not there; its tools appear when it is", "server", r.title(), "error", err)
		// Ends when it is connected, or with Close.
		r.spawn(r.keepTrying)
		return nil
	}
	r.cancel()
	return fmt.Errorf("proxy: %s: %w", r.title(), err)
}

// Close disconnects. Calls that wait for their callers are given up.
func (r *remote) Close() error {
	if r.cancel == nil {
		return nil
	}
	r.mu.Lock()
	r.closed = true
	l := r.link.Load()
	r.mu.Unlock()
	r.cancel()
	var err error
	if l != nil {
		err = l.client.Close()
	}
	r.tasks.Wait()
	return err
}

// keepTrying connects as soon as that is possible.
func (r *remote) keepTrying() {
	for wait := firstRetry; pause(r.base, wait); wait = min(2*wait, lastRetry) {
		if _, err := r.connect(r.base); err == nil {
			return
		}
	}
}

// A link is one connection.
type link struct {
	client *client.Client
	ctx    context.Context // of what runs over it; ends when it is of no more use
	end    context.CancelFunc
	lists  *client.Subscription // of changes of the lists; nil where the remote server tells of none
}

// errClosed says that the proxy was closed.
var errClosed = errors.New("the proxy is closed")

// connect returns the connection, a new one if there is none. One caller at a time connects.
func (r *remote) connect(ctx context.Context) (*link, error) {
	if l := r.link.Load(); l != nil {
		return l, nil
	}
	r.connecting.Lock()
	defer r.connecting.Unlock()
	if l := r.link.Load(); l != nil {
		return l, nil
	}
	if wait := time.Until(r.retryAt); wait > 0 {
		return nil, fmt.Errorf("%w (tried again in %s)", r.lastErr, wait.Round(time.Second))
	}
	l, err := r.dial(ctx)
	if err != nil {
		r.backoff = min(max(2*r.backoff, firstRetry), lastRetry)
		r.retryAt, r.lastErr = time.Now().Add(r.backoff), err
		return nil, err
	}
	r.backoff, r.retryAt = 0, time.Time{}
	return l, nil
}

// dial makes a connection. It holds connecting.
func (r *remote) dial(ctx context.Context) (*link, error) {
	l := &link{}
	l.ctx, l.end = context.WithCancel(r.base)
	opts := append([]client.DialOption{client.Logger(r.config.logger)}, r.config.dial...)
	if r.config.questions {
		opts = append(opts, client.Handlers(&asker{r, l}), client.Capabilities(protocol.ClientCapabilities{
			Sampling: &protocol.SamplingCapability{Tools: protocol.Object{}},
		}))
	}
	c, err := client.Dial(ctx, r.target, opts...)
	if err != nil {
		l.end()
		return nil, err
	}
	l.client = c
	if name := c.Server().Name; name != "" {
		r.said.Store(&name)
	}
	if !c.Version().Modern() && c.Capabilities().Logging != nil {
		// What each caller wants of it is settled here, for every call.
		if err := c.SetLogLevel(ctx, protocol.LevelDebug); err != nil {
			r.config.logger.DebugContext(ctx, "proxy: the log level was not set", "server", r.title(), "error", err)
		}
	}
	if err := l.listen(ctx); err != nil {
		r.config.logger.WarnContext(ctx, "proxy: changes of the remote server are not heard of", "server", r.title(), "error", err)
	}
	if err := r.refresh(ctx, l); err != nil {
		l.end()
		_ = c.Close()
		return nil, err
	}
	if !r.adopt(l) {
		l.end()
		_ = c.Close()
		return nil, errClosed
	}
	return l, nil
}

// adopt makes l the connection, unless the proxy was closed.
func (r *remote) adopt(l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.link.Store(l)
	// Ends when the connection is given up, or with Close.
	r.tasks.Go(func() { r.follow(l) })
	for uri, w := range r.watched {
		r.tasks.Go(func() { r.watch(l, uri, w, nil) })
	}
	return true
}

// giveUp drops a connection that is of no more use.
func (r *remote) giveUp(l *link, why error) {
	if r.link.CompareAndSwap(l, nil) {
		r.config.logger.Warn("proxy: the connection is lost; the next call makes another", "server", r.title(), "error", why)
		l.end()
		// Ends when what is in flight was told; a child process is killed after a while.
		if !r.spawn(func() { _ = l.client.Close() }) {
			_ = l.client.Close()
		}
	}
}

// spawn runs f, and has Close wait for it. After Close it does not.
func (r *remote) spawn(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.tasks.Go(f)
	return true
}

// listen subscribes to changes of the lists. It comes before they are read, so that none is missed.
func (l *link) listen(ctx context.Context) (err error) {
	caps := l.client.Capabilities()
	filter := protocol.SubscriptionFilter{
		ToolsListChanged:     caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: caps.Resources != nil && caps.Resources.ListChanged,
	}
	if filter.ToolsListChanged || filter.PromptsListChanged || filter.ResourcesListChanged {
		if l.lists, err = l.client.Listen(ctx, filter); err != nil {
			l.lists = nil
		}
	}
	return err
}

// follow reads the lists again when they change.
func (r *remote) follow(l *link) {
	if l.lists == nil {
		return
	}
	for {
		_, err := l.lists.Next(l.ctx)
		if err != nil && !r.listenAgain(l, err) {
			return
		}
		if err := r.refresh(l.ctx, l); err != nil && l.ctx.Err() == nil {
			r.config.logger.Error("proxy: what the remote server has now was not taken over", "server", r.title(), "error", err)
		}
	}
}

// listenAgain goes on after the subscription of the lists ended. Where calls share the connection that is its end, too; over HTTP
// there is another try now and then.
func (r *remote) listenAgain(l *link, why error) bool {
	_ = l.lists.Close()
	if l.ctx.Err() != nil {
		return false
	}
	r.config.logger.Warn("proxy: changes of the remote server are not heard of at the moment", "server", r.title(), "error", why)
	if !r.streams {
		if l.lost(why) {
			r.giveUp(l, why)
		}
		return false
	}
	for pause(l.ctx, lastRetry) {
		if err := l.listen(l.ctx); err == nil && l.lists != nil {
			return true
		}
	}
	return false
}

// pause lets d pass; false when ctx ends before that.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refresh takes over what the remote server has.
func (r *remote) refresh(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	r.mu.Lock()
	before := r.definitions
	r.mu.Unlock()
	d, err := definitions(ctx, l.client, before, func(method string, err error) {
		r.config.logger.WarnContext(ctx, "proxy: a list of the remote server cannot be read", "server", r.title(), "method", method, "error", err)
	})
	if err != nil {
		return err
	}
	d.Site = "proxy of " + r.title()
	d.Scopes = r.config.scopes
	skipped, err := r.server.SetDefinitions(d, r.answer)
	if err == nil {
		r.mu.Lock()
		r.definitions = d
		r.mu.Unlock()
	}
	for _, fault := range skipped {
		r.config.logger.WarnContext(ctx, "proxy: something of the remote server is left out", "reason", fault)
	}
	return err
}
