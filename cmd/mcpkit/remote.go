package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Further exit codes, of the commands that call servers.
const (
	exitConnection  = 3
	exitProtocol    = 4
	exitInterrupted = 130
)

const remoteUsage = `
SERVER is an http, https, ws or wss URL, unix: and the path of a socket, or a command line in one
argument; no shell runs it. Flags come before SERVER. Results go to standard output, as text on a
terminal and as JSON elsewhere. Progress, log messages and questions of the server go to standard
error; the server can ask only if standard input is a terminal. The exit code is 0 for success, 1 if
the tool failed, 2 for wrong usage, 3 for no connection, 4 for a protocol error or an HTTP status
instead, and 130 if the call was interrupted.`

// A remote holds the flags and arguments of a command that calls a server.
type remote struct {
	flags     *flag.FlagSet
	stdin     io.Reader
	out       *screen // standard output
	err       *screen // standard error
	opts      []client.DialOption
	timeout   time.Duration
	version   string
	asJSON    bool
	login     login
	browse    func(ctx context.Context, page string) error
	arguments string // --json of call
	target    string
	rest      []string
	headers   bool // -header was given
}

// newRemote parses the flags. If ok is false, the command ends with the code.
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
	r.flags.DurationVar(&r.timeout, "timeout", 0, "how long dialing and each request may take; 0 means no limit; default: 30s, or 5m for a command line, which may have to compile the server")
	r.flags.StringVar(&r.version, "protocol-version", "", "`version` of the protocol to use; default: the newest that both sides support")
	r.asJSON = !isTerminal(std.out)
	r.flags.Func("output", "`text` or json; default: text on a terminal, json elsewhere", func(s string) error {
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
		return nil, r.usage("use -login or -header Authorization, not both"), false
	}
	r.target, r.rest = r.flags.Arg(0), r.flags.Args()[1:]
	if len(r.rest) > 0 && r.rest[0] == "--" {
		r.rest = r.rest[1:]
	} else if late := r.lateFlag(); late != "" {
		return nil, r.usage("flags come before SERVER; write mcpkit %s %s ... %s", name, late, r.target), false
	}
	if _, err := client.ParseTarget(r.target); err != nil {
		return nil, r.usage("%s", strings.TrimPrefix(err.Error(), "client: ")), false
	}
	r.defaultTimeout()
	if r.headers && !overHTTP(r.target) {
		return nil, r.usage("-header needs a server at an http, https, ws or wss URL; %q is not one", r.target), false
	}
	if v := protocol.Version(r.version); r.version != "" {
		if !v.Known() {
			return nil, r.usage("-protocol-version %q is not a version of MCP; write one of %s", v, known()), false
		}
		r.opts = append(r.opts, client.Version(v))
	}
	return r, exitOK, true
}

// lateFlag returns a flag that stands after SERVER. Its value may be a token, so it is not shown.
func (r *remote) lateFlag() string {
	for _, w := range r.rest {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		if strings.HasPrefix(w, "-") && r.flags.Lookup(name) != nil {
			return "-" + name
		}
	}
	return ""
}

// defaultTimeout sets the timeout if no flag did.
func (r *remote) defaultTimeout() {
	given := false
	r.flags.Visit(func(f *flag.Flag) { given = given || f.Name == "timeout" })
	switch {
	case given:
	case overHTTP(r.target) || strings.HasPrefix(r.target, "unix:"):
		r.timeout = client.DefaultTimeout
	default:
		r.timeout = 5 * time.Minute
	}
}

// overHTTP reports whether requests to the target have header fields.
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

// usage reports wrong arguments.
func (r *remote) usage(format string, args ...any) int {
	r.say("%s", fmt.Sprintf(format, args...))
	return exitUsage
}

// say writes a message of the program itself to standard error.
func (r *remote) say(format string, args ...any) {
	r.err.printf("mcpkit %s: %s\n", r.flags.Name(), fmt.Sprintf(format, args...))
}

// with dials, runs f and returns the exit code. With -login, f runs again after the server
// responded with status 401, so its first request must come before anything that f may not do
// twice.
func (r *remote) with(ctx context.Context, f func(c *client.Client) error) int {
	defer r.err.clearStatus()
	open := r.login.opener(r.err, r.browse)
	r.opts = append(r.opts, client.Logger(slog.New(slog.DiscardHandler)), client.Stderr(r.err), client.Timeout(r.timeout), client.ShutdownTimeout(shutdownTimeout), client.Info("mcpkit", "1"))
	if isTerminal(r.stdin) {
		r.opts = append(r.opts, client.Handlers(&asker{in: r.stdin, screen: r.err, open: open}))
	}
	var t *oauthclient.Transport
	if r.login.wanted {
		var err error
		if t, err = r.login.transport(r.target, open); err != nil {
			r.explain(err)
			return exitOf(ctx, err)
		}
		defer t.Close()
	}
	err := r.attempt(ctx, f)
	if t != nil && wantsLogin(err) {
		if _, err := t.Token(ctx); err != nil { // outside of a request: the user may take longer than its timeout
			r.explain(err)
			return exitOf(ctx, err)
		}
		r.opts = append(r.opts, client.HTTPClient(&http.Client{Transport: t}))
		err = r.attempt(ctx, f)
	}
	if err == nil {
		return exitOK
	}
	if !is[*client.ToolError](err) || !r.asJSON {
		r.explain(err)
	}
	return exitOf(ctx, err)
}

// shutdownTimeout is how long a server process may take to exit after its input ends, and again
// after a signal.
const shutdownTimeout = time.Second

// hostPort matches a target that was probably meant as a URL.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]+(/\S*)?$`)

// attempt dials and runs f.
func (r *remote) attempt(ctx context.Context, f func(c *client.Client) error) error {
	dialing, cancel := ctx, context.CancelFunc(func() {})
	if r.timeout > 0 {
		dialing, cancel = context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("no response within %s; raise -timeout if the server is slow to start", r.timeout))
	}
	c, err := client.Dial(dialing, r.target, r.opts...)
	cancel()
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// wantsLogin reports whether the server requires authentication.
func wantsLogin(err error) bool {
	status, ok := errors.AsType[*client.StatusError](err)
	return ok && status.Code == http.StatusUnauthorized
}

// explain reports the error and what the user can do about it.
func (r *remote) explain(err error) {
	r.say("%s", r.err.paint(red, clean(err.Error())))
	if advice := r.advice(err); advice != "" {
		r.say("%s", advice)
	}
}

func (r *remote) advice(err error) string {
	status, isStatus := errors.AsType[*client.StatusError](err)
	rpc, isRPC := errors.AsType[*jsonrpc.Error](err)
	switch {
	case isRPC && rpc.Code == protocol.CodeMissingClientCapability && !isTerminal(r.stdin):
		return "questions need a terminal as standard input"
	case hostPort.MatchString(r.target):
		return "for a server over HTTP write http://" + clean(r.target)
	case strings.Contains(err.Error(), "AuthorizationCode.Known"): // an option for programmers
		return "the authorization server does not let programs register themselves; write -client-id and -issuer of a registration that you have"
	case errors.Is(err, exec.ErrNotFound):
		return "write the path of the server's program, or the URL of a server over HTTP"
	case strings.Contains(err.Error(), "the server ended"):
		return "the program ended before it responded; run it by itself to see whether it serves MCP on standard input and output"
	case is[x509.UnknownAuthorityError](err):
		return "to trust the authority that signed the certificate, set the environment variable SSL_CERT_FILE to a PEM file with the authority's certificate (on macOS and Windows, add it to the certificates of the system)"
	case !isStatus:
		return ""
	case status.Code == http.StatusNotFound, status.Code == http.StatusMethodNotAllowed:
		return wrongPath(r.target)
	case status.Code != http.StatusUnauthorized:
		return ""
	case r.login.wanted:
		return "the server refuses the token of -login; run mcpkit logout " + clean(r.target) + " and log in again"
	case r.login.fixed:
		return "the server refuses the Authorization header that you gave; check the token and its expiry"
	case status.Header.Get("WWW-Authenticate") == "":
		return "the server requires authentication and does not say which; with a token write -header 'Authorization: Bearer TOKEN', or try -login"
	}
	return "the server requires authentication; write -login to log in with the browser, or -header 'Authorization: Bearer TOKEN' with a token"
}

// wrongPath says what to write if the URL leads to no MCP endpoint.
func wrongPath(target string) string {
	const usual = "/mcp"
	u, err := url.Parse(target)
	switch {
	case err != nil: // not after a response
		return ""
	case u.Path == "" || u.Path == "/":
		return "the URL may lack the path of the MCP endpoint; write for example " + clean(u.JoinPath(usual).String())
	case u.Path == usual:
		return "the server has no MCP endpoint at the path /mcp, which is the usual one"
	}
	return "the server has no MCP endpoint at the path " + clean(u.Path) + "; the usual path is " + usual
}

// exitOf returns the exit code for the error of a request.
func exitOf(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		return exitInterrupted
	}
	switch {
	case is[*client.ToolError](err):
		return exitFault
	case is[*jsonrpc.Error](err), is[*client.StatusError](err), is[*client.InvalidResponseError](err), is[*client.OutputError](err):
		return exitProtocol
	}
	return exitConnection
}

// is reports whether err wraps an error of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// callOptions show progress and log messages while a call runs.
func (r *remote) callOptions() []client.CallOption {
	return []client.CallOption{
		client.LogLevel(protocol.LevelInfo),
		client.OnProgress(func(p *protocol.ProgressParams) {
			line := fmt.Sprint(p.Progress)
			if p.Total != nil {
				line += fmt.Sprintf("/%v", *p.Total)
			}
			r.err.setStatus(r.err.paint(faint, "progress: "+line+" "+cleanLine(p.Message)))
		}),
		client.OnLog(func(p *protocol.LoggingMessageParams) {
			r.err.printf("%s: %s\n", clean(string(p.Level)), clean(string(p.Data)))
		}),
	}
}

// write writes a result as JSON, or calls human for text.
func (r *remote) write(v any, human func()) error {
	r.err.clearStatus()
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
