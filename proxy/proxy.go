// Package proxy turns a remote server into a *mcpkit.Server, to mount it in another server or to
// serve it over another transport:
//
//	github, err := proxy.New("https://github.example.com/mcp", proxy.Dial(client.Header("Authorization", "Bearer "+token)))
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
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Limits.
const (
	firstRetry  = time.Second
	lastRetry   = 30 * time.Second
	parkedFor   = 10 * time.Minute // how long a call waits for the answer of its caller
	maxParked   = 1000
	maxWatched  = 1000            // resources
	unheardFor  = time.Minute     // after which a watch without a subscriber ends
	refreshTime = time.Minute     // for reading the lists of the remote server
	connectTime = 5 * time.Minute // for a connection; the remote server may have to be compiled
)

// config has the options. It does not change after New.
type config struct {
	name     string
	dial     []client.DialOption
	scopes   []string
	optional bool
	oneUser  bool
	meta     func(context.Context) protocol.Meta // nil: none
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

// Meta adds members to the _meta of each forwarded call, and replaces those of the caller. Use it
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
// After a disconnect, the next call connects again. If that fails, further attempts follow after 1
// to 30 s, and until then calls fail at once with an error for the model. The proxy repeats a call
// whose connection broke only if it is safe: reads, and tools with the hint readonly or idempotent.
//
// On a connection that calls share, such as the standard input and output of a process, or HTTP+SSE,
// a legacy server does not say to which call a question belongs, and no server to which call a log
// message belongs. While several calls run, the proxy therefore rejects such questions and drops
// such messages. Over Streamable HTTP each call has its own stream.
func New(target any, opts ...Option) (*mcpkit.Server, error) {
	c := config{logger: slog.Default()}
	for _, o := range opts {
		o(&c)
	}
	if s, ok := target.(string); ok {
		if _, err := client.ParseTarget(s); err != nil {
			return nil, fmt.Errorf("proxy: %s", strings.TrimPrefix(err.Error(), "client: "))
		}
	}
	r := &remote{config: c, target: target, to: destination{target: target}, watched: map[string]*watch{}, parked: map[string]*running{}, running: map[*running]struct{}{}}
	options := []mcpkit.Option{mcpkit.With(r, mcpkit.OptIn()), mcpkit.Logger(c.logger), mcpkit.Name(r.title(), "0.0.0"),
		mcpkit.ToolTimeout(0), mcpkit.Authenticated()}
	if _, ok := target.(*Switch); ok {
		options = append(options, mcpkit.OfferAll())
	}
	srv, err := mcpkit.New(nil, options...)
	if err != nil {
		return nil, err
	}
	r.server = srv
	if s, ok := target.(*Switch); ok && !s.remote.CompareAndSwap(nil, r) {
		return nil, errors.New("proxy: the Switch belongs to another proxy; each needs its own")
	}
	return srv, nil
}

// MustNew is like [New], but panics with the error.
func MustNew(target any, opts ...Option) *mcpkit.Server {
	srv, err := New(target, opts...)
	if err != nil {
		panic(err)
	}
	return srv
}

// title returns the name of the remote server.
func (r *remote) title() string {
	if r.config.name != "" {
		return r.config.name
	}
	if said := r.said.Load(); said != nil {
		return *said
	}
	return "remote"
}

// A destination is a remote server to connect to.
type destination struct {
	target any
	opts   []client.DialOption
}

// Start connects and reads the lists.
func (r *remote) Start(ctx context.Context) error {
	r.base, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if _, ok := r.target.(*Switch); ok {
		return nil // Switch.Connect connects
	}
	_, err := r.connect(ctx)
	switch {
	case err == nil:
		return nil
	case r.config.optional:
		r.config.logger.WarnContext(ctx, "proxy: the remote server cannot be reached; its tools appear when it is connected", "server", r.title(), "error", err)
		// Ends when it is connected, or with Close.
		r.spawn(r.keepTrying)
		return nil
	}
	r.cancel()
	return fmt.Errorf("proxy: %s: %w", r.title(), err)
}

// Close disconnects and ends the calls that wait for answers of their callers.
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

// keepTrying tries to connect until it succeeds.
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
	ctx    context.Context // ends with the connection
	end    context.CancelFunc

	retired bool           // another link has taken its place; guarded by remote.mu
	calls   sync.WaitGroup // none is added once it is retired

	lists *client.Subscription // to list changes; nil if the remote server has none
}

// errClosed is returned after Close.
var errClosed = errors.New("the proxy is closed")

// An attempt to connect, whose callers wait for it.
type attempt struct {
	done chan struct{} // closed when link and err are set
	link *link
	err  error
}

// connect returns the connection, or makes one. The attempt does not end with the caller that happens to
// be the first, since the next ones need the connection as well.
func (r *remote) connect(ctx context.Context) (*link, error) {
	if l := r.link.Load(); l != nil {
		return l, nil
	}
	a, err := r.begun()
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.link, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begun returns the attempt to connect that is being made, or begins one.
func (r *remote) begun() (*attempt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.attempt != nil {
		return r.attempt, nil
	}
	a := &attempt{done: make(chan struct{})}
	r.attempt = a
	// Ends after connectTime at the latest, or with Close.
	r.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(r.base, connectTime)
		defer cancel()
		defer func() {
			if v := recover(); v != nil { // of a function that the program gave to client.Connect, for example
				r.config.logger.ErrorContext(ctx, "proxy: connecting panicked", "server", r.title(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
				a.err = errors.New("proxy: connecting panicked")
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.attempt = nil
			close(a.done)
		}()
		a.link, a.err = r.connectNow(ctx)
	})
	return a, nil
}

// connectNow returns the connection, or makes one, unless the last attempt has just failed.
func (r *remote) connectNow(ctx context.Context) (*link, error) {
	r.connecting.Lock()
	defer r.connecting.Unlock()
	if l := r.link.Load(); l != nil {
		return l, nil
	}
	if wait := time.Until(r.retryAt); wait > 0 {
		return nil, fmt.Errorf("%w (tried again in %s)", r.lastErr, wait.Round(time.Second))
	}
	if _, ok := r.to.target.(*Switch); ok {
		return nil, errNoServer
	}
	l, err := r.dial(ctx, r.to)
	if err != nil {
		r.backoff = min(max(2*r.backoff, firstRetry), lastRetry)
		r.retryAt, r.lastErr = time.Now().Add(r.backoff), err
		return nil, err
	}
	r.backoff, r.retryAt = 0, time.Time{}
	return l, nil
}

// dial makes a connection, in place of the one that there may be. The caller holds connecting.
func (r *remote) dial(ctx context.Context, to destination) (*link, error) {
	l := &link{}
	l.ctx, l.end = context.WithCancel(r.base)
	opts := slices.Concat([]client.DialOption{client.Logger(r.config.logger)}, r.config.dial, to.opts, []client.DialOption{
		client.Handlers(&asker{r, l}), client.Capabilities(protocol.ClientCapabilities{Sampling: &protocol.SamplingCapability{Tools: protocol.Object{}}}),
	})
	c, err := client.Dial(ctx, to.target, opts...)
	if err != nil {
		l.end()
		return nil, err
	}
	l.client = c
	if name := c.Server().Name; name != "" {
		r.said.Store(&name)
	}
	if !c.Version().Modern() && c.Capabilities().Logging != nil {
		// Sessions have one log level. The proxy filters messages for each call.
		if err := c.SetLogLevel(ctx, protocol.LevelDebug); err != nil {
			r.config.logger.DebugContext(ctx, "proxy: the log level was not set", "server", r.title(), "error", err)
		}
	}
	if err := l.listen(ctx); err != nil {
		r.config.logger.WarnContext(ctx, "proxy: no list-changed notifications from the remote server", "server", r.title(), "error", err)
	}
	if err := r.take(ctx, l); err != nil {
		l.end()
		_ = c.Close()
		return nil, err
	}
	return l, nil
}

// take reads the lists of a new connection, and makes it the current one. Clients are notified of
// the lists after that, so that their next calls reach the new server.
func (r *remote) take(ctx context.Context, l *link) error {
	all, err := r.read(ctx, l)
	if err != nil {
		return err
	}
	r.publishing.Lock()
	defer r.publishing.Unlock()
	old := r.link.Load()
	if !r.adopt(l) {
		return errClosed
	}
	if err := r.publish(l, all); err != nil {
		r.link.CompareAndSwap(l, old)
		return err
	}
	// Ends with the connection, or with Close.
	r.spawn(func() { r.follow(l) })
	if old != nil {
		r.retire(old)
	}
	return nil
}

// adopt makes l the current connection, unless the proxy is closed.
func (r *remote) adopt(l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.link.Store(l)
	return true
}

// giveUp drops a broken connection.
func (r *remote) giveUp(l *link, why error) {
	if r.link.CompareAndSwap(l, nil) {
		r.config.logger.Warn("proxy: the connection is lost; the next call makes another", "server", r.title(), "error", why)
		l.end()
		// Ends when the calls in flight have ended; a child process is killed after a time.
		if !r.spawn(func() { _ = l.client.Close() }) {
			_ = l.client.Close()
		}
	}
}

// spawn runs f in a goroutine that Close waits for. It does nothing after Close.
func (r *remote) spawn(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.tasks.Go(f)
	return true
}

// listen subscribes to list changes, before the lists are read, so that none is missed.
func (l *link) listen(ctx context.Context) (err error) {
	caps := l.client.Capabilities()
	filter := caps.ListChanges()
	if filter.ToolsListChanged || filter.PromptsListChanged || filter.ResourcesListChanged {
		if l.lists, err = l.client.Listen(ctx, filter); err != nil {
			l.lists = nil
		}
	}
	return err
}

// follow reads the lists again after each change.
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
			r.config.logger.Error("proxy: the changed lists of the remote server were not adopted", "server", r.title(), "error", err)
		}
	}
}

// listenAgain continues after the subscription to list changes has ended. On a shared connection,
// that is the end of the connection; over HTTP, it subscribes again.
func (r *remote) listenAgain(l *link, why error) bool {
	_ = l.lists.Close()
	if l.ctx.Err() != nil {
		return false
	}
	r.config.logger.Warn("proxy: no list-changed notifications from the remote server at the moment", "server", r.title(), "error", why)
	if l.client.Shared() {
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

// pause waits for d. It returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// refresh adopts the changed lists of the remote server.
func (r *remote) refresh(ctx context.Context, l *link) error {
	all, err := r.read(ctx, l)
	if err != nil {
		return err
	}
	r.publishing.Lock()
	defer r.publishing.Unlock()
	if r.link.Load() != l {
		return nil
	}
	return r.publish(l, all)
}

// warn logs a message about the remote server.
func (r *remote) warn(message string, args ...any) {
	r.config.logger.Warn(message, append([]any{"server", r.title()}, args...)...)
}

// read reads the lists of the remote server.
func (r *remote) read(ctx context.Context, l *link) (lists, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	return readLists(ctx, l.client, r.warn)
}

// publish makes the lists those of the proxy. The caller holds publishing.
func (r *remote) publish(l *link, all lists) error {
	from := &mcpkit.Upstream{Site: "proxy of " + r.title(), Scopes: r.config.scopes, Call: r.answer, Subscribe: r.subscribe}
	if c := l.client; c.Capabilities().Completions != nil || c.Version() < protocol.V20250326 {
		from.Complete = r.complete
	}
	if err := r.server.Replace(all.items(from, r.warn)...); err != nil {
		return err
	}
	if info := l.client.Server(); info.Name != "" {
		r.server.Introduce(info, l.client.Instructions())
	}
	return nil
}
