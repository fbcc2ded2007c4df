package duplex

import "time"

// The default limits of one peer. Together they keep the cost of a peer below
// 64 MiB of live heap, whatever it sends and however little it reads: requests, responses, and as
// much again for what encoding and growing buffers need for a moment.
const (
	// DefaultMaxInFlight limits the unanswered requests. The next one is refused: "busy: 1024
	// requests are in flight" (-32603).
	//
	//limit:peer requests that are not yet answered | -32603: `requests are in flight`
	DefaultMaxInFlight = 1024

	// DefaultMaxInFlightBytes limits the bytes of unanswered requests and unhandled notifications
	// together. The next request is refused: "busy: requests of N bytes are in flight"
	// (-32603). The next notification is dropped, and the server logs this.
	//
	//limit:peer bytes of requests in flight and of notifications that wait | -32603: `busy: `; a notification is dropped, and the server logs this
	DefaultMaxInFlightBytes = 16 << 20

	// DefaultMaxUnsentBytes is how many bytes of responses may wait for a peer that does not read.
	// Reading stops long before, at [StopReadingAt]; this is for the calls that are in flight by
	// then. A response beyond it is replaced with an error: "busy: responses of N bytes wait to be
	// read" (-32603).
	//
	//limit:peer bytes of responses that wait to be read | the response is replaced by -32603: `wait to be read`
	DefaultMaxUnsentBytes = 24 << 20

	// StopReadingAt is how many bytes of responses may wait before nothing more is read from the
	// peer, and how many bytes of other messages may wait before their senders have to wait.
	//
	//limit:peer bytes of unread responses at which the server stops reading from the peer | the server reads again once the peer has read
	StopReadingAt = 1 << 20

	// MaxSubscriptions is how many subscriptions/listen may be open. The next one is refused:
	// "busy: 128 subscriptions are open; ..." (-32603).
	//
	//limit:peer subscriptions/listen that are open | -32603: `subscriptions are open; end one, or ask for more in one`
	MaxSubscriptions = 128

	// MaxNotifications is how many notifications may wait for being handled. The next one is
	// dropped, and the server logs this.
	//
	//limit:peer notifications that wait to be handled | the notification is dropped, and the server logs this
	MaxNotifications = 1024

	// DefaultDrainTimeout is how long calls may continue after the end of the input.
	//
	//limit:peer time that calls have after the end of the input | their contexts are cancelled
	DefaultDrainTimeout = 5 * time.Second

	// DefaultWriteTimeout is how long a peer may read nothing before it is disconnected.
	//
	//limit:peer time in which the peer reads nothing while data waits; no limit on standard output | the connection is closed
	DefaultWriteTimeout = 30 * time.Second
)
