package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// What the commands that speak to servers return besides.
const (
	exitConnection  = 3
	exitProtocol    = 4
	exitInterrupted = 130
)

const remoteUsage = `
SERVER is an http, https, ws or wss URL, unix: and the path of a socket, or a command line in one argument; no shell sees it. Results go
to standard output, as text on a terminal and as JSON elsewhere. Progress, log messages and questions of the server go to standard error; it may ask when standard
input is a terminal. The program returns 0 when all went well, 1 for an error of the tool, 2 for wrong usage, 3 when there is no
connection, 4 for an error of the protocol or an HTTP status that answers in its place, and 130 when it was interrupted: the call is cancelled first.`

// A remote is what a command that speaks to a server was told.
type remote struct {
	flags     *flag.FlagSet
	stdin     io.Reader
	out       *screen // standard output
	err       *screen // standard error
	opts      []client.DialOption
	timeout   time.Duration
	revision  string
	asJSON    bool
	login     login
	browse    func(ctx context.Context, page string) error
	arguments string // --json of call
	target    string
	rest      []string
	headers   bool // there are some to be sent
}

// newRemote parses the flags. When the answer is false, the command is over, with the code.
func newRemote(name, usage string, args []string, std streams) (r *remote, code int, ok bool) {
	r = &remote{flags: flag.NewFlagSet(name, flag.ContinueOnError), stdin: std.in, out: newScreen(std.out), err: newScreen(std.err), browse: std.browse}
	r.flags.Func("header", "`name: value` to send with each HTTP request; may be repeated", func(s string) error {
		field, value, found := strings.Cut(s, ":")
		if !found || strings.TrimSpace(field) == "" {
			return errors.New(`write "name: value"`)
		}
		r.login.fixed = r.login.fixed || strings.EqualFold(strings.TrimSpace(field), "Authorization")
		r.headers = true
		r.opts = append(r.opts, client.Header(strings.TrimSpace(field), strings.TrimSpace(value)))
		return nil
	})
	r.flags.DurationVar(&r.timeout, "timeout", client.DefaultTimeout, "how long dialing, and each request, may take; 0 for ever")
	r.flags.StringVar(&r.revision, "revision", "", "`revision` of the protocol to speak; the newest that both know when none is given")
	r.asJSON = !isTerminal(std.out)
	r.flags.Func("output", "`text` or json; text on a terminal and json elsewhere when none is given", func(s string) error {
		if s != "text" && s != "json" {
			return errors.New("write text or json")
		}
		r.asJSON = s == "json"
		return nil
	})
	r.login.flags(r.flags)
	if name == "call" {
		r.flags.StringVar(&r.arguments, "json", "", "the arguments as a JSON `object`, instead of name=text and name:=json")
	}
	if code, ok := parse(r.flags, usage+remoteUsage, args, r.err); !ok {
		return nil, code, false
	}
	if r.flags.NArg() == 0 {
		r.flags.Usage()
		return nil, exitUsage, false
	}
	if r.login.wanted && r.login.fixed {
		return nil, r.usage("-login and -header Authorization exclude each other"), false
	}
	r.target, r.rest = r.flags.Arg(0), r.flags.Args()[1:]
	if len(r.rest) > 0 && r.rest[0] == "--" {
		r.rest = r.rest[1:]
	}
	if _, err := client.ParseTarget(r.target); err != nil {
		return nil, r.usage("%s", strings.TrimPrefix(err.Error(), "client: ")), false
	}
	if r.headers && !overHTTP(r.target) {
		return nil, r.usage("-header is for servers at a URL; %q is none", r.target), false
	}
	if v := protocol.Version(r.revision); r.revision != "" && !v.Known() {
		return nil, r.usage("-revision %s: unknown revision; known are %s", v, known()), false
	}
	if r.revision != "" {
		r.opts = append(r.opts, client.Version(protocol.Version(r.revision)))
	}
	return r, exitOK, true
}

// overHTTP reports whether a target is reached by requests that have header fields.
func overHTTP(target string) bool {
	scheme, _, ok := strings.Cut(target, "://")
	return ok && slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(scheme))
}

func known() string {
	var all []string
	for _, v := range protocol.Supported {
		all = append(all, string(v))
	}
	return strings.Join(all, ", ")
}

// usage says what is wrong with the arguments.
func (r *remote) usage(format string, args ...any) int {
	r.say("%s", fmt.Sprintf(format, args...))
	return exitUsage
}

// say writes a message of the program itself.
func (r *remote) say(format string, args ...any) {
	r.err.printf("mcpkit %s: %s\n", r.flags.Name(), fmt.Sprintf(format, args...))
}

// with dials, runs f, and returns the code of the program. F must have done nothing when the server answers its first request by 401: with
// -login it then runs again.
func (r *remote) with(ctx context.Context, f func(c *client.Client) error) int {
	defer r.err.done()
	open := r.login.opener(r.err, r.browse)
	r.opts = append(r.opts, client.Logger(slog.New(slog.DiscardHandler)), client.Stderr(r.err), client.Timeout(r.timeout), client.ShutdownTimeout(shutdownTimeout), client.Info("mcpkit", "1"))
	if isTerminal(r.stdin) {
		r.opts = append(r.opts, client.Handlers(&asker{in: r.stdin, screen: r.err, open: open}))
	}
	var t *oauthclient.Transport
	if r.login.wanted {
		var err error
		if t, err = r.login.transport(r.target, open); err != nil {
			return r.failed(ctx, err)
		}
		defer t.Close()
	}
	dialed, err := r.attempt(ctx, f)
	if t != nil && wantsLogin(err) {
		if _, err := t.Token(ctx); err != nil { // which may take as long as the user does, and so has no place in a request
			return r.failed(ctx, err)
		}
		r.opts = append(r.opts, client.HTTPClient(&http.Client{Transport: t}))
		dialed, err = r.attempt(ctx, f)
	}
	switch {
	case err == nil:
		return exitOK
	case !dialed:
		return r.failed(ctx, err)
	}
	if _, ok := errors.AsType[*client.ToolError](err); !ok || !r.asJSON {
		r.explain(err)
	}
	return exitOf(ctx, err)
}

// shutdownTimeout is how long a program has to end of itself, and again after it was told to.
const shutdownTimeout = time.Second

// hostPort is what somebody writes who means a URL.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]+(/\S*)?$`)

// attempt dials and runs f.
func (r *remote) attempt(ctx context.Context, f func(c *client.Client) error) (dialed bool, err error) {
	dialing, cancel := ctx, context.CancelFunc(func() {})
	if r.timeout > 0 {
		dialing, cancel = context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("no server answered within %s; see -timeout", r.timeout))
	}
	c, err := client.Dial(dialing, r.target, r.opts...)
	cancel()
	if err != nil {
		return false, err
	}
	defer c.Close()
	return true, f(c)
}

// wantsLogin reports whether a server wants to know who asks.
func wantsLogin(err error) bool {
	status, ok := errors.AsType[*client.StatusError](err)
	return ok && status.Code == http.StatusUnauthorized
}

// failed says why nothing could be asked of the server.
func (r *remote) failed(ctx context.Context, err error) int {
	r.explain(err)
	return exitOf(ctx, err)
}

func (r *remote) explain(err error) {
	r.say("%s", r.err.paint(red, clean(err.Error())))
	switch {
	case hostPort.MatchString(r.target):
		r.say("for a server over HTTP write http://%s", clean(r.target))
	case strings.Contains(err.Error(), "AuthorizationCode.Known"): // which is for programmers
		r.say("-client-id and -issuer say who this program is there")
	case !wantsLogin(err):
	case r.login.wanted:
		r.say("the server does not take what -login got; mcpkit logout %s, and log in again", clean(r.target))
	default:
		r.say("the server wants to know who you are; -login asks it how, and logs you in")
	}
}

// exitOf is the code that an error of a request means.
func exitOf(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if _, ok := errors.AsType[*client.ToolError](err); ok {
		return exitFault
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return exitProtocol
	}
	if _, ok := errors.AsType[*client.StatusError](err); ok {
		return exitProtocol
	}
	if _, ok := errors.AsType[*client.InvalidResponseError](err); ok {
		return exitProtocol
	}
	if _, ok := errors.AsType[*client.OutputError](err); ok {
		return exitProtocol
	}
	return exitConnection
}

// callOptions show progress and messages while a call runs.
func (r *remote) callOptions() []client.CallOption {
	return []client.CallOption{
		client.LogLevel(protocol.LevelInfo),
		client.OnProgress(func(p *protocol.ProgressParams) {
			line := fmt.Sprint(p.Progress)
			if p.Total != nil {
				line += fmt.Sprintf("/%v", *p.Total)
			}
			r.err.pass(r.err.paint(faint, "progress: "+line+" "+cleanLine(p.Message)))
		}),
		client.OnLog(func(p *protocol.LoggingMessageParams) {
			r.err.printf("%s: %s\n", clean(string(p.Level)), clean(string(p.Data)))
		}),
	}
}

// write writes a result as JSON, or by human where that is not asked for.
func (r *remote) write(v any, human func()) error {
	r.err.done()
	if !r.asJSON {
		human()
		return nil
	}
	out := json.NewEncoder(r.out)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

func (r *remote) writeContents(blocks ...protocol.Content) {
	for _, b := range blocks {
		if text, ok := b.(*protocol.TextContent); ok {
			r.out.printf("%s\n", clean(text.Text))
		} else {
			r.out.printf("[%s]\n", clean(protocol.ContentType(b)))
		}
	}
}
