// Package stdio is the stdio binding of MCP: one JSON message a line, in on standard input, out on standard
// output (specification, basic/transports/stdio).
//
// The framing serves every byte stream, so that [NewIO] also runs on sockets and pipes. What happens
// between lines (order, cancellation, limits, the end) is described at internal/duplex.
//
//	err := stdio.New(nil).Serve(ctx, handler)
package stdio

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/internal/framing"
	"github.com/mcpkit/mcpkit-go/transport"
)

// What Options means where it is zero.
const (
	//limit:message bytes of a message | -32600: `message is larger than `
	DefaultMaxMessageBytes  = 4 << 20
	DefaultMaxInFlight      = duplex.DefaultMaxInFlight
	DefaultMaxInFlightBytes = duplex.DefaultMaxInFlightBytes
	DefaultMaxUnsentBytes   = duplex.DefaultMaxUnsentBytes
	DefaultDrainTimeout     = duplex.DefaultDrainTimeout
	DefaultWriteTimeout     = duplex.DefaultWriteTimeout // not on standard output, where there is no limit
)

// Options configures a transport. The zero value serves, and so does nil.
type Options struct {
	// MaxMessageBytes is how long a line may be. A longer one is skipped and answered with an error. Zero means [DefaultMaxMessageBytes].
	MaxMessageBytes int

	// MaxInFlight is how many requests may be unanswered at once; one more is refused. Zero means [DefaultMaxInFlight].
	MaxInFlight int

	// MaxInFlightBytes is how many bytes the unanswered requests may have together, notifications that wait included; one
	// request more is refused. A single one may be larger. Zero means [DefaultMaxInFlightBytes].
	MaxInFlightBytes int64

	// MaxUnsentBytes is how many bytes of responses may wait for a client that does not read. Above 1 MiB the transport reads
	// nothing more from the client. This limit is for the calls in flight by then: a response over it is replaced with an error.
	// A single one may be larger. Zero means [DefaultMaxUnsentBytes].
	MaxUnsentBytes int64

	// DrainTimeout is how long calls may go on after the end of the input or of ctx. Zero means [DefaultDrainTimeout].
	DrainTimeout time.Duration

	// WriteTimeout is how long the peer may read nothing of what is being written to it before the connection is closed.
	// Zero means 30 s, and on standard output for ever: a client that stands still in a debugger still is one. Less than
	// zero means for ever everywhere.
	WriteTimeout time.Duration

	// Framing says how messages are told apart. Zero means by lines, which is what the specification has.
	Framing Framing

	// Logger hears what the transport has to say. It must not write to standard output. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) duplex() *duplex.Options {
	return &duplex.Options{
		MaxInFlight:      o.MaxInFlight,
		MaxInFlightBytes: o.MaxInFlightBytes,
		MaxUnsentBytes:   o.MaxUnsentBytes,
		DrainTimeout:     o.DrainTimeout,
		WriteTimeout:     o.WriteTimeout,
		Logger:           o.Logger,
	}
}

func (o *Options) wire(r io.Reader, w io.Writer, borrowed bool) duplex.Wire {
	most := o.MaxMessageBytes
	if most <= 0 {
		most = DefaultMaxMessageBytes
	}
	return framing.New(r, w, framing.Options{
		Framing: framing.Framing(o.Framing), MaxMessageBytes: most, Raise: "Options.MaxMessageBytes", Borrowed: borrowed,
	})
}

// Framing is how messages are told apart in a stream of bytes.
type Framing int

const (
	// Lines means one message a line, as MCP has it.
	Lines = Framing(framing.Lines)

	// ContentLength means header fields before each message, as in the Language Server Protocol (base protocol, header
	// part): "Content-Length: 17", perhaps others, an empty line, and that many bytes.
	ContentLength = Framing(framing.ContentLength)

	// AnyFraming takes either: what the peer begins with decides, for both directions. Until then lines are written.
	AnyFraming = Framing(framing.Any)
)

// New returns the transport on this process's standard input and output.
//
// While Serve runs, nothing but the protocol reaches standard output. On Unix, Serve moves the streams to descriptors
// that child processes do not inherit. Until it returns, descriptor 1 is standard error, so whatever the program, its
// loggers, its C libraries or its children print goes there, and descriptor 0 is empty. On Windows, Serve only sets the
// variable os.Stdout to os.Stderr: a logger that was made with os.Stdout before Serve, or a write to the console handle
// itself, still ends up between the messages. So does, on every system, a file that the program opened for standard
// output itself, such as /dev/stdout opened before Serve.
//
// A client that goes away ends Serve without an error, and
// not the process with SIGPIPE. A process has one standard input: a second Serve at the same time is an error.
//
// When ctx ends while standard input is a terminal or a blocking pipe, the goroutine that reads it is
// left behind, since nothing can end it but input or the process.
func New(opts *Options) transport.Transport {
	o := options(opts)
	if o.WriteTimeout == 0 {
		o.WriteTimeout = -1
	}
	return std{o}
}

// NewIO returns the transport that reads messages from r and writes messages to w, one Write a time. Serve takes
// them over: when it returns, it has closed those that are io.Closers. It can be called once. For a connection, both are the
// connection; package socket serves listeners.
func NewIO(r io.Reader, w io.Writer, opts *Options) transport.Transport {
	o := options(opts)
	return &stream{wire: o.wire(r, w, false), opts: o}
}

func options(opts *Options) Options {
	if opts == nil {
		return Options{}
	}
	return *opts
}

type stream struct {
	wire duplex.Wire
	opts Options
}

// Serve carries messages until the input or ctx ends. The error is nil when the peer went away.
func (s *stream) Serve(ctx context.Context, h transport.Handler) error {
	if err := duplex.Serve(ctx, s.wire, h, s.opts.duplex()); err != nil {
		return fmt.Errorf("transport/stdio: %w", err)
	}
	return nil
}

type std struct{ opts Options }

// taken is held while standard input and output are served.
var taken sync.Mutex

// Serve carries messages until standard input or ctx ends. The error is nil when the client went away.
func (s std) Serve(ctx context.Context, h transport.Handler) error {
	if !taken.TryLock() {
		return fmt.Errorf("transport/stdio: standard input is being served already; use NewIO for other streams")
	}
	defer taken.Unlock()

	// Without a receiver the runtime ends the process at the first write to a closed standard output.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	in, out, restore := guard()
	defer restore()

	if err := duplex.Serve(ctx, s.opts.wire(in, out, true), h, s.opts.duplex()); err != nil {
		return fmt.Errorf("transport/stdio: %w", err)
	}
	return nil
}
