package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Target is a server to which [Dial] can connect.
type Target interface {
	dial(ctx context.Context, c *Client) (roundTripper, error)
}

// URL is a server at an http or https URL (Streamable HTTP, or HTTP+SSE if the server refuses that)
// or at a ws or wss URL (WebSocket with the subprotocol "mcp").
func URL(url string) Target { return urlTarget(url) }

type urlTarget string

func (u urlTarget) dial(ctx context.Context, c *Client) (roundTripper, error) {
	parsed, err := parseURL(string(u))
	if err != nil {
		return nil, err
	}
	if parsed.Scheme == "ws" || parsed.Scheme == "wss" {
		return dialWebSocket(ctx, c, parsed)
	}
	return newHTTPConn(c, parsed), nil
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("the URL of the server: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ws" && u.Scheme != "wss":
		return nil, fmt.Errorf("%q: the scheme must be http, https, ws or wss", s)
	case u.Host == "":
		return nil, fmt.Errorf("%q has no host", s)
	case u.User != nil:
		return nil, fmt.Errorf("the URL of the server contains a user or a password; pass credentials with Header or HTTPClient")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// Unix is a server that listens on a Unix socket.
func Unix(path string) Target {
	return Connect(func(ctx context.Context) (io.ReadWriteCloser, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	})
}

// Connect is a server on the connection that connect returns. Each message is a line (see
// [ContentLength] for the other framing). Dial calls connect again if the server closes the first
// connection in response to server/discover, as some legacy servers do. Close of a connection must
// make its Read and Write return.
func Connect(connect func(ctx context.Context) (io.ReadWriteCloser, error)) Target {
	return streamTarget(connect, false)
}

// Stream is a server on an open connection, which the client closes. See [Connect].
func Stream(rwc io.ReadWriteCloser) Target {
	return streamTarget(func(context.Context) (io.ReadWriteCloser, error) { return rwc, nil }, true)
}

// InMemory is a server in this process, for example a *mcpkit.Server.
func InMemory(h transport.Handler) Target { return memoryTarget{h} }

type memoryTarget struct{ handler transport.Handler }

func (m memoryTarget) dial(_ context.Context, c *Client) (roundTripper, error) {
	return newMemoryConn(c, m.handler), nil
}

// A CommandTarget is a program that serves on its standard input and output. Set its fields before
// Dial.
type CommandTarget struct {
	// Args are the program, which is searched in PATH, and its arguments.
	Args []string

	// Dir is the working directory; "" means that of this process.
	Dir string

	// Env are additional variables ("KEY=value") of the program. By default it inherits only the
	// variables that most programs need, such as PATH, HOME and LANG, and no secrets.
	Env []string

	// InheritEnv passes the whole environment of this process to the program.
	InheritEnv bool
}

// Command is a program that serves on its standard input and output. Dial starts it in its own
// process group. Close closes its input; if the program does not end within [ShutdownTimeout],
// Close sends SIGTERM, and after the same time again it kills the program and its children.
//
// Never take the command from a peer: it runs with all rights of the user.
func Command(program string, args ...string) *CommandTarget {
	return &CommandTarget{Args: append([]string{program}, args...)}
}

// Withheld returns the sorted names of the environment variables of this process that the program
// does not get: neither inherited nor in Env.
func (t *CommandTarget) Withheld() []string {
	var names []string
	for _, kv := range os.Environ() {
		key := variable(kv)
		given := slices.ContainsFunc(t.Env, func(kv string) bool { return variable(kv) == key })
		if key != "" && !given && !t.inherits(key) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (t *CommandTarget) dial(ctx context.Context, c *Client) (roundTripper, error) {
	if len(t.Args) == 0 || t.Args[0] == "" {
		return nil, fmt.Errorf("the command is empty")
	}
	return wireTarget{connect: func(_ context.Context, c *Client) (conn.Wire, error) {
		p, err := startProcess(t, c.cfg.stderr)
		if err != nil {
			return nil, err
		}
		return processWire{c.wire(p.stdout, p.stdin), p}, nil
	}}.dial(ctx, c)
}

// ParseTarget returns the target that [Dial] uses for a string. It does not connect.
func ParseTarget(s string) (Target, error) { return asTarget(s) }

// asTarget converts the argument of Dial to a Target.
func asTarget(target any) (Target, error) {
	switch t := target.(type) {
	case Target:
		return t, nil
	case transport.Handler:
		return InMemory(t), nil
	case io.ReadWriteCloser:
		return Stream(t), nil
	case string:
		if path, ok := strings.CutPrefix(t, "unix:"); ok {
			if strings.HasPrefix(path, "///") {
				path = path[2:]
			}
			if path == "" || strings.HasPrefix(path, "//") {
				return nil, fmt.Errorf("client: %q has no path of a socket; write unix:/path/of/the.sock", t)
			}
			return Unix(path), nil
		}
		if scheme, _, ok := strings.Cut(t, "://"); ok && !strings.ContainsAny(scheme, " \t'\"/\\") {
			if _, err := parseURL(t); err != nil {
				return nil, fmt.Errorf("client: %w", err)
			}
			return URL(t), nil
		}
		args, err := splitCommand(t, runtime.GOOS != "windows")
		if err != nil {
			return nil, err
		}
		return &CommandTarget{Args: args}, nil
	}
	return nil, fmt.Errorf("client: cannot dial a %T; want a URL, unix:PATH or a command line as a string, a client.Target, a transport.Handler or an io.ReadWriteCloser", target)
}

// splitCommand splits a command line at blanks. Quotes work as in a shell, and so do backslashes if
// escapes is set. There is no other shell syntax.
func splitCommand(line string, escapes bool) ([]string, error) {
	var args []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && escapes && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				args = append(args, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("client: the command line %q ends inside quotes", line)
	}
	if inWord {
		args = append(args, word.String())
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("client: the target is empty; write a URL, unix:PATH or a command line")
	}
	return args, nil
}
