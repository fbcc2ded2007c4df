package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/internal/framing"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/message"
)

// A Target is a server that can be dialed.
type Target interface {
	dial(ctx context.Context, c *Client) (conn, error)
}

// URL is a server at an http or https URL (Streamable HTTP, or HTTP+SSE where the server does not
// speak that) or at a ws or wss URL (WebSocket, with the subprotocol "mcp").
func URL(url string) Target { return urlTarget(url) }

type urlTarget string

func (u urlTarget) dial(ctx context.Context, c *Client) (conn, error) {
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

// Connect is a server at the other end of what connect returns: a connection of any kind that
// carries one message a line (see [ContentLength] for the other framing). It is called again when
// the server ended the first one over server/discover, as some servers that do not know that do.
// Closing a connection must make its Read and Write return.
func Connect(connect func(ctx context.Context) (io.ReadWriteCloser, error)) Target {
	return streamTarget(connect, false)
}

// Stream is a server at the other end of a connection that is open already. The client closes it.
// See [Connect].
func Stream(rwc io.ReadWriteCloser) Target {
	return streamTarget(func(context.Context) (io.ReadWriteCloser, error) { return rwc, nil }, true)
}

// Messages is a server at the other end of what carries whole messages; see [Connect] for when
// connect is called.
func Messages(connect func(ctx context.Context) (message.Conn, error)) Target {
	return wireTarget{connect: func(ctx context.Context, c *Client) (duplex.Wire, error) {
		conn, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		return framing.Messages(conn, framing.Options{MaxMessageBytes: c.cfg.maxMessage, Raise: "MaxMessageBytes"}), nil
	}}
}

// InMemory is a server in this process, for example a *mcpkit.Server.
func InMemory(h transport.Handler) Target { return memoryTarget{h} }

type memoryTarget struct{ handler transport.Handler }

func (m memoryTarget) dial(_ context.Context, c *Client) (conn, error) {
	return newMemoryConn(c, m.handler), nil
}

// A CommandTarget is a program that serves on its standard input and output. Its fields may be set
// before it is dialed.
type CommandTarget struct {
	// Args are the program and its arguments; the program is looked for in PATH.
	Args []string

	// Dir is the directory to run in; "" is that of this process.
	Dir string

	// Env are variables ("KEY=value") that the program gets besides those that programs need to run
	// at all: PATH, HOME, LANG and the like. Secrets in the environment of this process are not
	// handed on, unless InheritEnv.
	Env []string

	// InheritEnv hands on the whole environment of this process.
	InheritEnv bool
}

// Command is a program that serves on its standard input and output. Dial starts it, in a process
// group of its own. It is ended by closing its input; if that and then SIGTERM do not end it within
// [ShutdownTimeout] each, it and its children are killed.
//
// Never take the command from a peer: whoever chooses it can do whatever the user can.
func Command(program string, args ...string) *CommandTarget {
	return &CommandTarget{Args: append([]string{program}, args...)}
}

func (t *CommandTarget) dial(ctx context.Context, c *Client) (conn, error) {
	if len(t.Args) == 0 || t.Args[0] == "" {
		return nil, fmt.Errorf("the command is empty")
	}
	return wireTarget{connect: func(_ context.Context, c *Client) (duplex.Wire, error) {
		p, err := startProcess(t, c.cfg.stderr)
		if err != nil {
			return nil, err
		}
		return processWire{c.wire(p.stdout, p.stdin), p}, nil
	}}.dial(ctx, c)
}

// ParseTarget makes the target that [Dial] makes of a string, without connecting to it. The error
// says what is wrong with the string.
func ParseTarget(s string) (Target, error) { return asTarget(s) }

// asTarget makes the target of what Dial takes.
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
				return nil, fmt.Errorf("client: %q does not name a socket; write unix:/path/of/the.sock", t)
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

// splitCommand splits a command line at blanks. Quotes, and a backslash where escapes says so, work
// as in a shell; nothing else does.
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
		return nil, fmt.Errorf("client: the command line %q ends inside a quotation", line)
	}
	if inWord {
		args = append(args, word.String())
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("client: the command line is empty")
	}
	return args, nil
}
