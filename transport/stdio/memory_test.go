package stdio_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

const maxPeerHeap = 64 << 20 // live heap that a peer may cost

// hoard has large results, at once or all together when they are released.
type hoard struct{ release chan struct{} }

func (h *hoard) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	size := 2
	switch req.Method {
	case "initialize":
		peer.Session().SetVersion("2025-03-26")
	case "large":
		size = 64 << 10
	case "large together":
		size = 64 << 10
		select {
		case <-h.release:
		case <-ctx.Done():
		}
	case "release":
		close(h.release)
	case "hold":
		<-ctx.Done()
	}
	result := bytes.Repeat([]byte{'x'}, size)
	result[0], result[size-1] = '"', '"'
	return &jsonrpc.Response{Result: result}
}

// A flood is the input of a peer that does not read.
type flood struct {
	name    string
	message func(i int) string
	count   int // the number of messages, unless the server stops reading
}

func call(i int, method string, padding int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"x":"%s"}}`, i, method, strings.Repeat("x", padding))
}

var floods = []flood{
	{"calls with large results", func(i int) string { return call(i, "large", 200) }, 31_000},
	{"calls whose large results are ready at the same time", func(i int) string {
		if i == 1000 {
			return call(i, "release", 0)
		}
		return call(i, "large together", 200)
	}, 1001},
	{"invalid messages", func(int) string { return "x" }, 1_000_000},
	{"calls with the same ID", func(i int) string {
		if i == 0 {
			return call(1, "hold", 0)
		}
		return call(1, "large", 200)
	}, 100_000},
	{"calls over the limit", func(i int) string { return call(i, "hold", 200) }, 100_000},
	{"large calls", func(i int) string { return call(i, "hold", 4<<20-100) }, 30},
	{"calls that are too large", func(i int) string { return call(i, "hold", 4<<20) }, 10},
	{"large notifications", func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"hold","params":{"x":"%s"}}`, strings.Repeat("x", 4<<20-100))
	}, 30},
	{"batches with large results", func(i int) string {
		calls := make([]string, 100)
		for k := range calls {
			calls[k] = call(100*i+k, "large", 0)
		}
		return "[" + strings.Join(calls, ",") + "]"
	}, 1000},
	{"batches of invalid messages", func(int) string { return "[" + strings.Repeat("1,", 99) + "1]" }, 10_000},
	{"large responses that no request waits for", func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`, i, strings.Repeat("x", 4<<20-100))
	}, 10},
}

// pour writes the flood until it ends, or until the server reads nothing for a while.
func (f flood) pour(t *testing.T, w io.Writer) {
	var sent atomic.Int64
	over := make(chan struct{})
	// Ends with the flood, or when the test closes w.
	go func() {
		defer close(over)
		_, err := io.WriteString(w, call(-1, "initialize", 0)+"\n")
		for i := 0; i < f.count && err == nil; i++ {
			_, err = io.WriteString(w, f.message(i)+"\n")
			sent.Add(1)
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last, same := int64(0), 0
	for same < 50 {
		select {
		case <-over:
			same++
			<-tick.C // the server may still read
		case <-tick.C:
			if now := sent.Load(); now > last {
				last, same = now, 0
			} else {
				same++
			}
		}
	}
	t.Logf("%d of %d messages were read", sent.Load(), f.count)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAPeerThatDoesNotReadCostsBoundedHeap(t *testing.T) {
	if raceDetector {
		t.Skip("make test runs it without the race detector, which makes floods slow")
	}
	for _, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := heap()
				ours, theirs := net.Pipe()
				var all sync.WaitGroup
				all.Go(func() {
					opts := &stdio.Options{DrainTimeout: time.Millisecond, WriteTimeout: -1, Logger: slog.New(slog.DiscardHandler)}
					_ = stdio.NewIO(theirs, theirs, opts).Serve(t.Context(), &hoard{release: make(chan struct{})})
				})
				f.pour(t, ours)
				cost := heap() - before
				require.NoError(t, ours.Close())
				all.Wait()
				t.Logf("%d MiB", cost>>20)
				require.Less(t, cost, int64(maxPeerHeap))
			})
		})
	}
}
