// Package stdio serves MCP over standard input and output, with one JSON message per line
// (specification, basic/transports/stdio).
//
// The same framing works on every byte stream, so [NewIO] also serves pipes and the connections of a
// [net.Listener]. Package internal/conn describes order, cancellation, limits and shutdown.
//
//	err := stdio.New(nil).Serve(ctx, handler)
package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
)

// defaultMaxMessageBytes is the default of [Options.MaxMessageBytes]. Those of the others are in package conn.
const defaultMaxMessageBytes = 4 << 20

// Options configures a transport. The zero value and nil are ready to use.
type Options struct {
	// MaxMessageBytes limits the length of a message. A longer message is skipped and answered with
	// an error. Zero means 4 MiB.
	MaxMessageBytes int

	// MaxInFlight limits the unanswered requests. The server refuses more. Zero means 1,024.
	MaxInFlight int

	// MaxInFlightBytes limits the bytes of unanswered requests and waiting notifications together.
	// The server refuses more requests. A single message may be larger. Zero means 16 MiB.
	MaxInFlightBytes int64

	// MaxUnsentBytes limits the bytes of responses that wait for a client that does not read. Above
	// 1 MiB the transport stops reading from the client, so only calls in flight can reach this
	// limit: a response beyond it is replaced with an error. A single response may be larger. Zero
	// means 24 MiB.
	MaxUnsentBytes int64

	// DrainTimeout is how long calls may continue after the end of the input or of ctx. Zero means
	// 5 seconds.
	DrainTimeout time.Duration

	// WriteTimeout is how long the peer may read nothing while data waits before the connection is
	// closed. Zero means 30 s, but no limit on standard output, since a client may be stopped in a
	// debugger. A negative value means no limit.
	WriteTimeout time.Duration

	// Framing separates messages. Zero means [Lines], as MCP requires.
	Framing Framing

	// Logger receives warnings and errors meant for the operator. It must not write to standard
	// output. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) conn() *conn.Options {
	return &conn.Options{
		MaxInFlight:      o.MaxInFlight,
		MaxInFlightBytes: o.MaxInFlightBytes,
		MaxUnsentBytes:   o.MaxUnsentBytes,
		DrainTimeout:     o.DrainTimeout,
		WriteTimeout:     o.WriteTimeout,
		Logger:           o.Logger,
	}
}

func (o *Options) wire(r io.Reader, w io.Writer, borrowed bool) conn.Wire {
	most := o.MaxMessageBytes
	if most <= 0 {
		most = defaultMaxMessageBytes
	}
	return conn.NewStream(r, w, conn.StreamOptions{
		Framing: conn.Framing(o.Framing), MaxMessageBytes: most, Borrowed: borrowed,
		TooLarge: "request is larger than %d bytes; raise stdio.Options.MaxMessageBytes",
	})
}

// Framing is the way messages are separated in a byte stream.
type Framing int

const (
	// Lines puts one message on each line, as in MCP.
	Lines = Framing(conn.Lines)

	// ContentLength puts header fields before each message, as in the Language Server Protocol
	// (base protocol, header part): "Content-Length: 17", perhaps other fields, an empty line, and
	// 17 bytes.
	ContentLength = Framing(conn.ContentLength)

	// AnyFraming accepts both. The first byte from the peer selects the framing for both
	// directions. Until then, messages are written as lines.
	AnyFraming = Framing(conn.AnyFraming)
)

// New returns the transport on the standard input and output of this process.
//
// While Serve runs, only MCP messages reach standard output. On Unix, Serve moves the streams to
// descriptors that child processes do not inherit. Until it returns, descriptor 1 is standard
// error, so everything that the program, its loggers, its C libraries or its children print goes
// there, and descriptor 0 is empty. On Windows, Serve only sets the variable os.Stdout to
// os.Stderr: a logger created with os.Stdout before Serve, or a write to the console handle, still
// ends up between the messages. On every system, so does a file that the program itself opened for
// standard output, such as /dev/stdout opened before Serve.
//
// When the client disconnects, Serve returns without an error, and SIGPIPE does not end the
// process. A process has only one standard input: a second Serve at the same time returns an error.
//
// If ctx ends while standard input is a terminal or a blocking pipe, the goroutine that reads it
// stays behind until there is input or the process ends.
func New(opts *Options) transport.Transport {
	o := options(opts)
	if o.WriteTimeout == 0 {
		o.WriteTimeout = -1
	}
	return std{o}
}

// NewIO returns a transport that reads messages from r and writes messages to w, one Write at a
// time. Serve can be called once. When it returns, it has closed those of r and w that are
// io.Closers.
//
// For a [net.Conn], pass it as both. It is closed if it does not begin like a message, since web
// pages can make a browser send a request to any port. Unless it is a Unix socket, whose mode says
// who may connect, its callers are unauthenticated, even with mcpkit.TrustLocal: Serve with a
// context that has a principal (oauth.NewContext) says who they are.
func NewIO(r io.Reader, w io.Writer, opts *Options) transport.Transport {
	o := options(opts)
	s := &stream{opts: o}
	if conn, ok := r.(net.Conn); ok {
		network := conn.LocalAddr().Network()
		s.foreign = network != "unix" && network != "pipe"
		r = &guarded{Conn: conn, framing: o.Framing}
	}
	s.wire = o.wire(r, w, false)
	return s
}

// A guarded connection fails unless the first byte can begin a message. The lines of the body of an
// HTTP request would be read as messages.
type guarded struct {
	net.Conn
	framing Framing
	begun   bool
}

// Read implements [io.Reader].
func (g *guarded) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	for _, c := range p[:n] {
		switch {
		case g.begun, c == '{', c == '[', (c == 'C' || c == 'c') && g.framing != Lines: // Content-Length
			g.begun = true
			return n, err
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return 0, errors.New("the first bytes from the peer are not a JSON-RPC message")
		}
	}
	return n, err
}

func options(opts *Options) Options {
	if opts == nil {
		return Options{}
	}
	return *opts
}

type stream struct {
	wire    conn.Wire
	opts    Options
	foreign bool // the peer may be another user
}

// Serve implements [transport.Transport]. It returns nil when the peer disconnects.
func (s *stream) Serve(ctx context.Context, h transport.Handler) error {
	if s.foreign && !oauth.AuthenticationDecided(ctx) {
		ctx = oauth.NewContext(ctx, nil)
	}
	if err := conn.New(s.wire, h, s.opts.conn()).Serve(ctx); err != nil {
		return fmt.Errorf("transport/stdio: %w", err)
	}
	return nil
}

type std struct{ opts Options }

// taken is locked while Serve uses standard input and output.
var taken sync.Mutex

// Serve implements [transport.Transport]. It returns nil when the client disconnects.
func (s std) Serve(ctx context.Context, h transport.Handler) error {
	if !taken.TryLock() {
		return fmt.Errorf("transport/stdio: another Serve already reads standard input; use NewIO for other streams")
	}
	defer taken.Unlock()

	// Otherwise the runtime ends the process at the first write to a closed standard output.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	greet(os.Stdin, os.Stderr)
	in, out, restore := guard()
	defer restore()

	if err := conn.New(s.opts.wire(in, out, true), h, s.opts.conn()).Serve(ctx); err != nil {
		return fmt.Errorf("transport/stdio: %w", err)
	}
	return nil
}

// greet tells a person at a terminal who talks to a server on standard input.
func greet(in *os.File, w io.Writer) {
	info, err := in.Stat()
	null, _ := os.Stat(os.DevNull)
	if err == nil && info.Mode()&os.ModeCharDevice != 0 && !os.SameFile(info, null) {
		_, _ = io.WriteString(w, "This is an MCP server, and waits for a client on standard input. Clients start it themselves; "+
			"mcpkit dev shows it in the browser, and mcpkit call calls it.\n")
	}
}
