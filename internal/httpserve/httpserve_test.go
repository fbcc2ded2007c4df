package httpserve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// A blocker is a handler whose requests wait until let is closed or they are cancelled.
type blocker struct {
	*Lifecycle
	begun, let chan struct{}
}

func newBlocker() blocker {
	return blocker{NewLifecycle(), make(chan struct{}, 10), make(chan struct{})}
}

func (b blocker) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.Begin()
	defer b.End()
	b.begun <- struct{}{}
	select {
	case <-b.let:
		_, _ = io.WriteString(w, "done")
	case <-b.Cancelling.Done():
		http.Error(w, "cancelled", http.StatusServiceUnavailable)
	}
}

// serving runs a server on b.
type serving struct {
	url  string
	stop func()
	over chan error
	http *http.Client
}

func serve(t *testing.T, b blocker, timeout time.Duration) *serving {
	t.Helper()
	s := &serving{over: make(chan error, 1), http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() {
		s.over <- Run(ctx, listener, &http.Server{Handler: b}, func() {
			bound, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_ = b.Shutdown(bound)
		})
	}()
	s.url = "http://" + listener.Addr().String()
	return s
}

// get asks in the background.
func (s *serving) get(path string) <-chan string {
	got := make(chan string, 1)
	go func() {
		resp, err := s.http.Get(s.url + path)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		got <- resp.Status + " " + string(body)
	}()
	return got
}

func TestRequestsInFlightFinish(t *testing.T) {
	b := newBlocker()
	s := serve(t, b, time.Minute)
	got := s.get("/mcp")
	<-b.begun
	s.stop()
	select {
	case err := <-s.over:
		require.Fail(t, "it did not wait", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(b.let)
	require.Equal(t, "200 OK done", <-got)
	require.NoError(t, <-s.over)
	_, err := s.http.Get(s.url + "/mcp")
	require.Error(t, err, "the listener is closed")
}

func TestUnfinishedRequestsAreCancelledAndGetResponses(t *testing.T) {
	b := newBlocker()
	s := serve(t, b, 20*time.Millisecond)
	got := s.get("/mcp")
	<-b.begun
	s.stop()
	require.Equal(t, "503 Service Unavailable cancelled\n", <-got)
	require.NoError(t, <-s.over)
}

// A wrapper hides a writer, as middleware does.
type wrapper struct {
	http.ResponseWriter
	below http.ResponseWriter
}

func (w wrapper) Unwrap() http.ResponseWriter { return w.below }

// A flushing writer counts flushes, which may fail.
type flushing struct {
	http.ResponseWriter
	times *int
	err   error
}

func (f flushing) FlushError() error { *f.times++; return f.err }

// A panicking writer is like echo.Response on a writer that cannot flush.
type panicking struct{ wrapper }

func (panicking) Flush() { panic("the writer below cannot flush") }

func TestFlushersAreFoundThroughWrappers(t *testing.T) {
	var mute struct{ http.ResponseWriter } // has no Flush
	n := 0
	inner := flushing{httptest.NewRecorder(), &n, nil}
	broken := flushing{httptest.NewRecorder(), &n, errors.New("broken pipe")}
	for _, test := range []struct {
		name string
		w    http.ResponseWriter
		can  bool
		err  string
	}{
		{"itself", inner, true, ""},
		{"through one", wrapper{mute, inner}, true, ""},
		{"through two", wrapper{mute, wrapper{mute, inner}}, true, ""},
		{"a flush that fails", wrapper{mute, broken}, true, "broken pipe"},
		{"no flush", mute, false, ""},
		{"no flush below", wrapper{mute, mute}, false, ""},
		{"no writer below", wrapper{mute, nil}, false, ""},
		{"a flush that would panic", panicking{wrapper{mute, mute}}, false, ""},
		{"http.Flusher", httptest.NewRecorder(), true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n = 0
			flush := Flusher(test.w)
			require.Equal(t, test.can, flush != nil)
			if flush == nil {
				return
			}
			err := flush()
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			if test.name != "http.Flusher" {
				require.Equal(t, 1, n)
			}
		})
	}
}

func TestBodiesAreReadWhole(t *testing.T) {
	const limit = 1 << 20
	for _, size := range []int{0, 1, 511, 512, 513, FreeBodyBytes, FreeBodyBytes + 1, 300_000, limit} {
		for name, declared := range map[string]int64{"exact": int64(size), "unknown": -1, "too small": 1, "too large": limit} {
			t.Run(fmt.Sprintf("%d bytes, length %s", size, name), func(t *testing.T) {
				want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
				r := httptest.NewRequest(http.MethodPost, "/", iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(want))))
				r.ContentLength = declared
				all := &conn.Memory{Max: 4 * limit}
				held, other := conn.Share{All: all}, conn.Share{All: all}
				got, bad := ReadBody(httptest.NewRecorder(), r, limit, &held)
				require.Nil(t, bad)
				require.Equal(t, string(want), string(got))
				if size <= FreeBodyBytes && name == "exact" {
					require.True(t, other.Take(4*limit), "a small body is free")
					return
				}
				require.False(t, size > FreeBodyBytes && other.Take(4*limit), "a large body counts")
				held.Close()
				require.True(t, other.Take(4*limit), "until the request ends")
			})
		}
	}
}

func TestBodiesAreRefused(t *testing.T) {
	const limit = 100_000
	for _, test := range []struct {
		name   string
		body   io.Reader
		length int64
		most   int64 // bytes that all requests may hold
		want   BodyError
	}{
		{"declared too large", strings.NewReader("x"), limit + 1, 1 << 20, BodyError{413, "request body is larger than 100000 bytes"}},
		{"too large", strings.NewReader(strings.Repeat("x", limit+1)), -1, 1 << 20, BodyError{413, "request body is larger than 100000 bytes"}},
		{"larger than declared", strings.NewReader(strings.Repeat("x", limit+1)), 10, 1 << 20, BodyError{413, "request body is larger than 100000 bytes"}},
		{"without memory for it", strings.NewReader(strings.Repeat("x", limit)), limit, 40_000, BodyError{503, conn.ErrNoRoom.Message}},
		{"broken", iotest.ErrReader(io.ErrUnexpectedEOF), 10, 1 << 20, BodyError{400, "body could not be read"}},
		{"too large for middleware", iotest.ErrReader(&http.MaxBytesError{Limit: 7}), 10, 1 << 20, BodyError{413, "request body is larger than 7 bytes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", test.body)
			r.ContentLength = test.length
			all := &conn.Memory{Max: test.most}
			held, other := conn.Share{All: all}, conn.Share{All: all}
			require.True(t, other.Take(1), "another request holds something")
			defer held.Close()
			got, bad := ReadBody(httptest.NewRecorder(), r, limit, &held)
			require.Nil(t, got)
			require.Equal(t, &test.want, bad)
		})
	}
}

func TestIsJSON(t *testing.T) {
	for _, test := range []struct {
		contentType []string
		want        bool
	}{
		{[]string{"application/json"}, true},
		{[]string{"Application/JSON; charset=utf-8"}, true},
		{nil, false},
		{[]string{"text/plain"}, false},
		{[]string{"application/jsonp"}, false},
		{[]string{"application/json", "text/plain"}, false},
	} {
		require.Equal(t, test.want, IsJSON(http.Header{"Content-Type": test.contentType}), "%q", test.contentType)
	}
}

func TestAccepts(t *testing.T) {
	for _, test := range []struct {
		accept       []string
		json, stream bool
	}{
		{nil, true, true},
		{[]string{"application/json, text/event-stream"}, true, true},
		{[]string{"text/event-stream,application/json;charset=utf-8"}, true, true},
		{[]string{"application/json", "text/event-stream"}, true, true},
		{[]string{"*/*"}, true, true},
		{[]string{"application/*"}, true, false},
		{[]string{"Application/JSON"}, true, false},
		{[]string{"text/*;q=0.1"}, false, true},
		{[]string{"application/json, text/event-stream; q=0"}, true, false},
		{[]string{""}, false, false},
		{[]string{"image/png"}, false, false},
	} {
		json, stream := Accepts(http.Header{"Accept": test.accept})
		require.Equal(t, [2]bool{test.json, test.stream}, [2]bool{json, stream}, "%q", test.accept)
	}
}
