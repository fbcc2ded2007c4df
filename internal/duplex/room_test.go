package duplex_test

import (
	"context"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// stuck is a wire whose peer reads so many bytes, and no more: Write waits for it until the wire is
// closed.
type stuck struct {
	room   int64
	answer chan []byte // what the peer says
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	left int64 // guarded by mu
	own  int   // how often the caller of Do wrote itself; guarded by mu
}

func newStuck(room, left int64) *stuck {
	return &stuck{room: room, left: left, answer: make(chan []byte, 10), closed: make(chan struct{})}
}

func (s *stuck) Room() int64 { return s.room }

func (s *stuck) Write(lines []byte) (int, error) {
	s.mu.Lock()
	s.left -= int64(len(lines))
	if strings.Contains(string(debug.Stack()), "(*Link).Do(") {
		s.own++
	}
	waits := s.left < 0
	s.mu.Unlock()
	if waits {
		<-s.closed
		return 0, io.ErrClosedPipe
	}
	return len(lines), nil
}

func (s *stuck) Read() ([]byte, error) {
	select {
	case message := <-s.answer:
		return message, nil
	case <-s.closed:
		return nil, io.EOF
	}
}

func (s *stuck) Buffered() bool   { return false }
func (s *stuck) CloseRead() error { return s.Close() }
func (s *stuck) Close() error     { s.once.Do(func() { close(s.closed) }); return nil }

// running serves a client's end on w until the test is over.
func running(t *testing.T, w duplex.Wire) *duplex.Link {
	l := duplex.New(w, &handler{}, &duplex.Options{Client: true, WriteTimeout: time.Hour})
	over := make(chan error, 1)
	go func() { over <- l.Serve(t.Context()) }()
	t.Cleanup(func() {
		l.Close()
		require.NoError(t, <-over)
	})
	return l
}

// waiting asks with a second to live, and returns how long it took to fail.
func waiting(t *testing.T, l *duplex.Link, id int64, size int) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	_, err := l.Do(ctx, &jsonrpc.Request{ID: jsonrpc.NumberID(id), Method: "x", Params: []byte(`{"x":"` + strings.Repeat("0", size) + `"}`)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	return time.Since(begun)
}

// Who waits to be written would wait for the peer, or for WriteTimeout, if it wrote itself.
func TestCallersDoNotWaitForThePeerToRead(t *testing.T) {
	for _, test := range []struct {
		name       string
		room, left int64
		sizes      []int
	}{
		{"a wire without room", 0, 0, []int{1, 1, 1}},
		{"more than there is room for", 100, 100, []int{200, 1, 1}},
		{"more than there is room for, together", 1000, 1000, []int{300, 300, 300, 300, 300}},
		{"more than may wait", 1000, 1000, []int{800, 2 << 20, 1, 2 << 20}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := running(t, newStuck(test.room, test.left))
				for i, size := range test.sizes {
					require.Equal(t, time.Second, waiting(t, l, int64(i), size))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				begun := time.Now()
				_ = l.Notify(ctx, &jsonrpc.Request{Method: "n"})
				l.Flush(ctx)
				require.Equal(t, time.Second, time.Since(begun), "nor does Flush")
			})
		})
	}
}

// What is answered was read, and makes room: then the caller writes itself, which is quicker.
func TestResponsesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStuck(300, 1<<20)
		l := running(t, w)
		ask := func(id int64) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = l.Do(ctx, &jsonrpc.Request{ID: jsonrpc.NumberID(id), Method: "x"})
		}
		for id := range int64(100) {
			go func() {
				synctest.Wait()
				w.answer <- jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: jsonrpc.NumberID(id), Result: []byte(`{}`)})
			}()
			ask(id)
		}
		require.Equal(t, 100, w.own)
		for id := range int64(20) { // requests and cancellations that nothing is known of
			ask(1000 + id)
		}
		synctest.Wait()
		require.Less(t, w.own, 105)
		require.Greater(t, w.own, 100)
	})
}
