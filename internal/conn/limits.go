package conn

import "time"

// The default limits of one peer. Together they keep the cost of a peer below
// 64 MiB of live heap, whatever it sends and however little it reads: requests, responses, and as
// much again for what encoding and growing buffers need for a moment.
const (
	// DefaultMaxInFlight limits the unanswered requests. The next one is refused: "busy: 1024
	// requests are in flight" (-32603).
	DefaultMaxInFlight = 1024

	// DefaultMaxInFlightBytes limits the bytes of unanswered requests and unhandled notifications
	// together. The next request is refused: "busy: requests of N bytes are in flight"
	// (-32603). The next notification is dropped, and the server logs this.
	DefaultMaxInFlightBytes = 16 << 20

	// DefaultMaxUnsentBytes is how many bytes of responses may wait for a peer that does not read.
	// Reading stops long before, at [StopReadingAt]; this is for the calls that are in flight by
	// then. A response beyond it is replaced with an error: "busy: responses of N bytes wait to be
	// read" (-32603).
	DefaultMaxUnsentBytes = 24 << 20

	// DefaultMaxHeld is how large a streamed result may be whose handler sets no limit. A larger one
	// is replaced with an error.
	DefaultMaxHeld = 16 << 20

	// StopReadingAt is how many bytes of responses may wait before nothing more is read from the
	// peer, and how many bytes of other messages may wait before their senders have to wait.
	StopReadingAt = 1 << 20

	// MaxSubscriptions is how many subscriptions/listen may be open. The next one is refused:
	// "busy: 128 subscriptions are open; ..." (-32603).
	MaxSubscriptions = 128

	// MaxNotifications is how many notifications may wait for being handled. The next one is
	// dropped, and the server logs this.
	MaxNotifications = 1024

	// DefaultDrainTimeout is how long calls may continue after the end of the input.
	DefaultDrainTimeout = 5 * time.Second

	// DefaultWriteTimeout is how long a peer may read nothing before it is disconnected.
	DefaultWriteTimeout = 30 * time.Second
)
