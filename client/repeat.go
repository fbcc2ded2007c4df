package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Limits of sending a request again.
const (
	maxRepeats    = 3               // times that a request is sent again because no server responded
	maxRetryAfter = 5 * time.Second // time in a Retry-After that the client waits for
)

// broken reports whether a request that failed with err may succeed if it is sent again, because
// its server or a proxy was not available. Unsent reports whether no server received it, so that
// sending it again does no harm.
func broken(err error) (again, unsent bool) {
	if errors.Is(err, errLost) {
		return true, false
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		switch status.Code {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return status.retryAfter() <= maxRetryAfter, false
		}
		return false, false
	}
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return conn.IsLost(rpc), false
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		_, unknownHost := errors.AsType[*net.DNSError](err)
		return !unknownHost && !dial.Timeout(), true
	}
	return false, false
}

// retryAfter returns the time of the header field Retry-After; 0 if it is not a number of seconds.
func (e *StatusError) retryAfter() time.Duration {
	seconds, err := strconv.ParseUint(e.Header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// pauseBefore waits before a request that failed with err is sent for the n-th time again.
func pauseBefore(ctx context.Context, n int, err error) error {
	d := 100 * time.Millisecond << (n - 1)
	if status, ok := errors.AsType[*StatusError](err); ok {
		d = max(d, status.retryAfter())
	}
	return sleep(ctx, d)
}

// unavailable is the condition of [repeat] for messages that may be sent twice without harm.
func unavailable(err error) bool {
	again, _ := broken(err)
	return again
}

// repeat calls send until a server responds, or may returns false for its error.
func repeat(ctx context.Context, may func(err error) bool, send func() error) error {
	for n := 1; ; n++ {
		err := send()
		if err == nil || n > maxRepeats || ctx.Err() != nil || !may(err) || pauseBefore(ctx, n, err) != nil {
			return err
		}
	}
}
