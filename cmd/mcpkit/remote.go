package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Further exit codes, of the commands that call servers.
const (
	exitConnection  = 3
	exitProtocol    = 4
	exitInterrupted = 130
)

const serverHelp = `
SERVER is an http, https, ws or wss URL, unix: and the path of a socket, or a
command line in one argument; no shell runs it. Results go to standard output.
Progress, log messages and questions of the server go to standard error.

The exit code is 0 for success, 1 if the tool failed, 2 for wrong usage, 3 for
no connection, 4 for a protocol error or an HTTP status instead, and 130 if the
call was interrupted.`

// A remote holds the flags and arguments of a command that calls a server.
type remote struct {
	name        string // of the command
	stdin       io.Reader
	out         *screen // standard output
	err         *screen // standard error
	opts        []client.DialOption
	timeout     time.Duration // negative: no flag set it
	version     string
	asJSON      bool
	env         []string // KEY=value or KEY
	inherit     bool     // the server gets the whole environment
	login       login
	browse      func(ctx context.Context, page string) error
	answers     answers
	later       bool     // another command answers the questions
	saver       *saver   // nil if the command has no contents to save
	unsaved     error    // why some contents are not saved
	before      int      // how many arguments stand before the target
	words       []string // those arguments
	target      string
	server      client.Target         // of the target
	command     *client.CommandTarget // the server, if it is a command line
	rest        []string              // the arguments after the target
	headerLines []string              // of --header
}

// remoteCommand completes a command that calls a server. The words after the name in cmd.Use are
// the arguments, of which SERVER is the first. More adds flags.
func remoteCommand(std streams, cmd *cobra.Command, run func(ctx context.Context, r *remote) error, more ...func(*remote, *cobra.Command)) *cobra.Command {
	r := &remote{name: cmd.Name(), stdin: std.in, out: newScreen(std.out), err: newScreen(std.err), browse: std.browse}
	cmd.GroupID = groupServer
	cmd.Long += "\n" + serverHelp
	for _, add := range more {
		add(r, cmd)
	}
	r.flags(cmd.Flags())
	cmd.Args = cobra.MinimumNArgs(r.before + 1)
	if strings.HasSuffix(cmd.Use, "SERVER") {
		cmd.Args = cobra.ExactArgs(r.before + 1)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.words = args[:r.before]
		if err := r.finish(args[r.before:]); err != nil {
			return r.usage("%s", strings.TrimPrefix(err.Error(), "client: "))
		}
		if r.login.logout {
			return failed(cmd, r.login.forget(cmd.Context(), r.target))
		}
		return run(cmd.Context(), r)
	}
	return cmd
}

// flags adds the flags that all commands for servers have.
func (r *remote) flags(flags *pflag.FlagSet) {
	flags.Func("header", "`name: value` to send with each HTTP request; may be repeated", func(s string) error {
		field, value, found := strings.Cut(s, ":")
		if !found || strings.TrimSpace(field) == "" {
			return errors.New(`write "name: value"`)
		}
		r.login.fixed = r.login.fixed || strings.EqualFold(strings.TrimSpace(field), "Authorization")
		r.headerLines = append(r.headerLines, s)
		r.opts = append(r.opts, client.Header(strings.TrimSpace(field), strings.TrimSpace(value)))
		return nil
	})
	flags.Func("env", "an environment variable for a command line, as `NAME=value`, or NAME to pass on its value; may be repeated. By default the server gets only variables such as PATH, HOME and LANG", func(s string) error {
		key, _, given := strings.Cut(s, "=")
		if key == "" {
			return errors.New("write NAME=value, or NAME")
		}
		value, set := os.LookupEnv(key)
		switch {
		case !given && !set:
			return fmt.Errorf("%s is not set; write %s=value", key, key)
		case !given:
			s = key + "=" + value
		}
		r.env = append(r.env, s)
		return nil
	})
	flags.BoolVar(&r.inherit, "inherit-env", false, "pass the whole environment to a command line, secrets included")
	r.timeout = -1
	flags.Func("timeout", "how long dialing and each request may take, as a `duration`; 0 means no limit; default: 30s, or 5m for a command line, which may have to compile the server", func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return errors.New("write for example 90s or 2m")
		}
		r.timeout = d
		return nil
	})
	flags.StringVar(&r.version, "protocol-version", "", "`version` of the protocol to use; default: the newest that both sides support")
	outputFlag(flags, &r.asJSON)
	r.login.flags(flags)
}

// finish checks the flags, and takes the target and what follows it from the arguments.
func (r *remote) finish(args []string) (err error) {
	if r.login.wanted && r.login.fixed {
		return errors.New("use --login or --header Authorization, not both")
	}
	r.target, r.rest = args[0], args[1:]
	if r.server, err = client.ParseTarget(r.target); err != nil {
		return err
	}
	r.command, _ = r.server.(*client.CommandTarget)
	switch {
	case r.timeout >= 0:
	case r.command != nil:
		r.timeout = 5 * time.Minute
	default:
		r.timeout = 30 * time.Second
	}
	switch v := protocol.Version(r.version); {
	case r.headerLines != nil && !overHTTP(r.target):
		return fmt.Errorf("--header needs a server at an http, https, ws or wss URL; %q is not one", r.target)
	case r.command == nil && (r.inherit || r.env != nil):
		return fmt.Errorf("--env and --inherit-env need a command line as the server; %q is not one", r.target)
	case r.version != "" && !v.Known():
		return fmt.Errorf("--protocol-version %q is not a version of MCP; write one of %s", v, protocol.Supported)
	case r.version != "":
		r.opts = append(r.opts, client.Version(v))
	}
	if r.command != nil {
		r.command.Env, r.command.InheritEnv = slices.Concat(goVariables(r.command.Args[0]), r.env), r.inherit
		if isGo(r.command.Args[0]) {
			r.opts = append(r.opts, client.ProbeTimeout(r.timeout)) // the server may have to be compiled before it answers
		}
	}
	return nil
}

// overHTTP reports whether requests to the target have header fields.
func overHTTP(target string) bool {
	scheme, _, ok := strings.Cut(target, "://")
	return ok && slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(scheme))
}

// usage reports wrong arguments.
func (r *remote) usage(format string, args ...any) error {
	r.say("%s", fmt.Sprintf(format, args...))
	return exit(exitUsage)
}

// say writes a message of the program itself to standard error.
func (r *remote) say(format string, args ...any) {
	r.err.printf("mcpkit %s: %s\n", r.name, fmt.Sprintf(format, args...))
}

// with dials, runs f, reports its error and returns that of the exit code. With --login, f runs
// again after the server responded with status 401, so its first request must come before anything
// that f may not do twice.
func (r *remote) with(ctx context.Context, f func(c *client.Client) error) error {
	defer r.err.clearStatus()
	open := r.login.opener(r.err, r.browse)
	r.opts = append(r.opts, client.Logger(slog.New(slog.DiscardHandler)), client.Stderr(r.err), client.Timeout(r.timeout), client.ShutdownTimeout(shutdownTimeout), client.Info("mcpkit", "1"))
	if h := r.handlers(open); h != nil {
		r.opts = append(r.opts, client.Handlers(h))
	}
	if n := r.withheld(); n > 0 && r.err.live && r.env == nil {
		r.err.printf("%s\n", r.err.paint(faint, fmt.Sprintf("(%d variables of your environment are withheld from the server; --env NAME passes one on, --inherit-env all)", n)))
	}
	err := r.attempts(ctx, open, f)
	if err != nil && (!is[*client.ToolError](err) || !r.asJSON) {
		r.explain(err)
	}
	for _, unused := range r.answers.unused() {
		r.say("%s", unused)
	}
	if err != nil {
		return exitOf(ctx, err)
	}
	return nil
}

// withheld returns how many variables of the environment a server process does not get.
func (r *remote) withheld() int {
	if r.command == nil {
		return 0
	}
	return len(r.command.Withheld())
}

// attempts dials and runs f, and once more after a login if the server requires one.
func (r *remote) attempts(ctx context.Context, open func(ctx context.Context, page string) error, f func(c *client.Client) error) error {
	if !r.login.wanted {
		return r.attempt(ctx, f)
	}
	t, err := r.login.transport(r.target, open)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := r.attempt(ctx, f); !wantsLogin(err) {
		return err
	}
	if _, err := t.Token(ctx); err != nil { // outside of a request: the user may take longer than its timeout
		return err
	}
	r.opts = append(r.opts, client.HTTPClient(&http.Client{Transport: t}))
	return r.attempt(ctx, f)
}

// shutdownTimeout is how long a server process may take to exit after its input ends, and again
// after a signal.
const shutdownTimeout = time.Second

// attempt dials and runs f.
func (r *remote) attempt(ctx context.Context, f func(c *client.Client) error) error {
	dialing, cancel := ctx, context.CancelFunc(func() {})
	if r.timeout > 0 {
		dialing, cancel = context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("no response within %s; raise --timeout if the server is slow to start", r.timeout))
	}
	c, err := client.Dial(dialing, r.server, r.opts...)
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

// lastWords matches the part of an error that repeats the standard error of the server.
var lastWords = regexp.MustCompile(`; its last words: "(?:[^"\\\\]|\\\\.)*"`)

// explain reports the error and what the user can do about it.
func (r *remote) explain(err error) {
	text := lastWords.ReplaceAllString(err.Error(), "") // they are on the screen already
	r.say("%s", r.err.paint(red, clean(text)))
	if advice := r.advice(err); advice != "" {
		r.say("%s", advice)
	}
}

func (r *remote) advice(err error) string {
	status, isStatus := errors.AsType[*client.StatusError](err)
	rpc, isRPC := errors.AsType[*jsonrpc.Error](err)
	switch {
	case isRPC && rpc.Code == protocol.CodeMissingClientCapability && !strings.Contains(string(rpc.Data), "elicitation"):
		return "the tool asks for what chat clients have, such as a model, and this program has not"
	case isRPC && rpc.Code == protocol.CodeMissingClientCapability && (r.answers.yes || r.answers.given != nil):
		return "the server asks to show a page, for which standard input must be a terminal"
	case isRPC && rpc.Code == protocol.CodeMissingClientCapability:
		return "questions need a terminal as standard input, or the answers: write --answer name=value for each field; --yes alone answers only a question of yes or no"
	case isRPC && strings.Contains(rpc.Message, "unknown") && !strings.Contains(rpc.Message, "did you mean"):
		return fmt.Sprintf("mcpkit list %s shows what the server has", r.target)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at this address; start the server, or correct the address"
	case strings.Contains(err.Error(), "AuthorizationCode.Known"): // an option for programmers
		return "the authorization server does not let programs register themselves; write --client-id and --issuer of a registration that you have"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "write the path of the server's program, or the URL of a server over HTTP, such as http://localhost:8080/mcp"
	case strings.Contains(err.Error(), "the server ended"):
		advice := "the program ended before it responded; run it by itself to see whether it serves MCP on standard input and output"
		if n := r.withheld(); n > 0 {
			advice += fmt.Sprintf(", and mind that it does not get %d variables of your environment (--env NAME passes one on, --inherit-env all)", n)
		}
		return advice
	case is[x509.UnknownAuthorityError](err):
		return "to trust the authority that signed the certificate, set the environment variable SSL_CERT_FILE to a PEM file with the authority's certificate (on macOS and Windows, add it to the certificates of the system)"
	case !isStatus:
		return ""
	case status.Code == http.StatusNotFound, status.Code == http.StatusMethodNotAllowed:
		return "the server has no MCP endpoint at this URL; the usual path is /mcp"
	case status.Code != http.StatusUnauthorized:
		return ""
	case r.login.wanted:
		return "the server refuses the token of --login; run the command with --logout, and log in again"
	case r.login.fixed:
		return "the server refuses the Authorization header that you gave; check the token and its expiry"
	case status.Header.Get("WWW-Authenticate") == "":
		return "the server requires authentication and does not say of what kind; with a token write --header 'Authorization: Bearer TOKEN', or try --login"
	}
	return "the server requires authentication; write --login to log in with the browser, or --header 'Authorization: Bearer TOKEN' with a token"
}

// exitOf returns the exit code for the error of a request.
func exitOf(ctx context.Context, err error) exit {
	if ctx.Err() != nil {
		return exitInterrupted
	}
	switch {
	case is[*client.ToolError](err), errors.Is(err, client.ErrTaskCancelled):
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

// progress returns the status line for a notification of progress.
func (r *remote) progress(p *protocol.ProgressParams) string {
	line := fmt.Sprint(p.Progress)
	if p.Total != nil {
		line += fmt.Sprintf("/%v", *p.Total)
	}
	return r.err.paint(faint, r.err.cut("progress: "+line+" "+cleanLine(p.Message)))
}

// callOptions show progress and log messages while a call runs.
func (r *remote) callOptions() []client.CallOption {
	return []client.CallOption{
		client.LogLevel(protocol.LevelInfo),
		client.OnProgress(func(p *protocol.ProgressParams) { r.err.setStatus(r.progress(p)) }),
		client.OnLog(func(p *protocol.LoggingMessageParams) {
			r.err.printf("%s: %s\n", clean(string(p.Level)), clean(string(p.Data)))
		}),
	}
}
