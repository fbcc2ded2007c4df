package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newTransport returns a transport that is closed with the test.
func newTransport(t *testing.T) *Transport {
	tr := New(&http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Hour})
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func post(t *testing.T, ctx context.Context, url, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	return req
}

// send sends a request and reads the response to its end.
func send(t *testing.T, tr *Transport, url, body string) (*http.Response, string, error) {
	resp, err := tr.RoundTrip(post(t, t.Context(), url, body))
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, resp.Body.Close())
	return resp, string(text), err
}

func (t *Transport) idleConns() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conns := range t.idle {
		n += len(conns)
	}
	return n
}

func TestRequestsArriveAsNetHTTPSendsThem(t *testing.T) {
	var conns atomic.Int32
	var got []*http.Request
	var bodies []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, bodies = append(got, r), append(bodies, string(body))
		fmt.Fprint(w, "back: ", string(body))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	tr := newTransport(t)
	plain := &http.Transport{DisableCompression: true}
	defer plain.CloseIdleConnections()
	for _, rt := range []http.RoundTripper{tr, plain} {
		req := post(t, t.Context(), s.URL+"/a%20b/c?d=e", "hello")
		req.Header["Mcp-Name"] = []string{"one", "two"}
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := rt.RoundTrip(req)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "back: hello", string(text))
		require.Same(t, req, resp.Request)
	}
	require.Equal(t, bodies[1], bodies[0])
	require.Equal(t, got[1].Header, got[0].Header)
	require.Equal(t, got[1].RequestURI, got[0].RequestURI)
	require.Equal(t, got[1].Host, got[0].Host)
	require.Equal(t, got[1].ContentLength, got[0].ContentLength)
	for range 5 {
		_, _, err := send(t, tr, s.URL, "again")
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, conns.Load(), "one of each transport")
	require.Equal(t, 1, tr.idleConns())
}

// echo answers with the body. It reads it first: once a server of net/http answers, it drops what it has not read.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
}

func TestManyCallersShareTheConnections(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(echo))
	defer s.Close()
	tr := newTransport(t)
	errs := make(chan error, 16)
	for i := range cap(errs) {
		go func() {
			for n := range 30 {
				want := fmt.Sprint(i, " ", n, strings.Repeat("x", n*300))
				if _, text, err := send(t, tr, s.URL, want); err != nil || text != want {
					errs <- fmt.Errorf("%d bytes, %.8q, came back as %d, %.8q: %v", len(want), want, len(text), text, err)
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.LessOrEqual(t, tr.idleConns(), 8)
}

// A raw server answers each request with bytes of the test's.
type rawServer struct {
	net.Listener
	conns atomic.Int32
	wg    sync.WaitGroup
}

// serve answers with answer, which says whether the connection stays open.
func serve(t *testing.T, answer func(c net.Conn, r *http.Request) (goOn bool)) *rawServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &rawServer{Listener: l}
	// Ends with the listener.
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			// Ends when the client closes the connection, or answer says so.
			s.wg.Go(func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil || !answer(c, r) {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		s.wg.Wait()
	})
	return s
}

func (s *rawServer) url() string { return "http://" + s.Addr().String() }

func TestResponsesOfAnyFraming(t *testing.T) {
	for _, test := range []struct {
		name, raw string
		status    int
		body      string
		kept      bool // the connection serves the next request too
		err       string
	}{
		{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true, ""},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", 200, "ok", true, ""},
		{"nothing", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, "", true, ""},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true, ""},
		{"an interim response", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true, ""},
		{"to the end", "HTTP/1.1 200 OK\r\n\r\nok", 200, "ok", false, ""},
		{"the old version", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false, ""},
		{"a last one", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false, ""},
		{"more than one", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", 200, "ok", false, ""},
		{"compressed unasked", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true, ""},
		{"less than promised", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", 200, "ok", false, "unexpected EOF"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", 0, "", false, `http: message cannot contain multiple Content-Length headers; got ["2" "3"]`},
		{"no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", 0, "", false, `malformed HTTP response "SSH-2.0-OpenSSH"`},
		{"silence", "", 0, "", false, "unexpected EOF"},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\n\r\n", 0, "", false, "the server switches to another protocol, which nobody asked for"},
		{"interim for ever", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 7), 0, "", false, "the server sent more than 5 interim responses"},
		{"a head without end", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: "+strings.Repeat("a", 1<<16)+"\r\n", 170), 0, "", false, "the head of the response is larger than 10485760 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, func(c net.Conn, r *http.Request) bool {
				_, err := io.WriteString(c, test.raw)
				return err == nil && test.kept
			})
			tr := newTransport(t)
			for range 2 {
				resp, text, err := send(t, tr, s.url(), "x")
				if test.err != "" {
					require.ErrorContains(t, err, test.err)
				} else {
					require.NoError(t, err)
				}
				if resp != nil {
					require.Equal(t, test.status, resp.StatusCode)
				}
				require.Equal(t, test.body, text)
			}
			want := 2
			if test.kept {
				want = 1
			}
			require.EqualValues(t, want, s.conns.Load())
		})
	}
}

func TestAServerThatClosedAnIdleConnectionIsDialedAgain(t *testing.T) {
	closed := make(chan struct{})
	s := serve(t, func(c net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_ = c.Close()
		closed <- struct{}{}
		return false
	})
	tr := newTransport(t)
	for range 3 {
		_, text, err := send(t, tr, s.url(), "x")
		require.NoError(t, err)
		require.Equal(t, "ok", text)
		<-closed
	}
	require.EqualValues(t, 3, s.conns.Load())
}

func TestTheEndOfTheContextEndsTheWaiting(t *testing.T) {
	gone := errors.New("nobody waits any more")
	for _, test := range []struct{ name, before string }{
		{"for the head", ""},
		{"for the rest of the head", "HTTP/1.1 200 OK\r\nContent-"},
		{"for the body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sent, left := make(chan struct{}), make(chan struct{})
			s := serve(t, func(c net.Conn, _ *http.Request) bool {
				_, _ = io.WriteString(c, test.before)
				close(sent)
				_, _ = c.Read(make([]byte, 1)) // until the client closes
				close(left)
				return false
			})
			tr := newTransport(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				<-sent
				cancel(gone)
			}()
			resp, err := tr.RoundTrip(post(t, ctx, s.url(), "x"))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_, again := resp.Body.Read(make([]byte, 1))
				require.ErrorIs(t, again, gone)
			}
			require.ErrorIs(t, err, gone)
			<-left
			require.Zero(t, tr.idleConns())
		})
	}
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, err := newTransport(t).RoundTrip(post(t, ctx, "http://127.0.0.1:1", "x"))
		require.ErrorIs(t, err, gone)
	})
}

func TestABodyThatIsClosedBeforeItsEndEndsTheConnection(t *testing.T) {
	left := make(chan struct{})
	s := serve(t, func(c net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
		_, _ = c.Read(make([]byte, 1))
		close(left)
		return false
	})
	tr := newTransport(t)
	resp, err := tr.RoundTrip(post(t, t.Context(), s.url(), "x"))
	require.NoError(t, err)
	b := make([]byte, len("data: 1\n\n"))
	_, err = io.ReadFull(resp.Body, b)
	require.NoError(t, err, "what is there is read before the end is")
	over := make(chan error)
	go func() {
		_, err := resp.Body.Read(b)
		over <- err
	}()
	require.NoError(t, resp.Body.Close())
	require.Error(t, <-over)
	<-left
	require.NoError(t, resp.Body.Close(), "once more")
	require.Zero(t, tr.idleConns())
}

func TestConnectionsAreNotKeptForEver(t *testing.T) {
	s := serve(t, func(c net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		return err == nil
	})
	tr := newTransport(t)
	open := func() *http.Response {
		resp, err := tr.RoundTrip(post(t, t.Context(), s.url(), "x"))
		require.NoError(t, err)
		return resp
	}
	finish := func(resp *http.Response) {
		_, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
	}
	first, second := open(), open()
	finish(first)
	finish(second)
	require.Equal(t, 2, tr.idleConns())
	tr.mu.Lock()
	tr.idle[s.Addr().String()][0].since = time.Now().Add(-2 * time.Hour)
	tr.mu.Unlock()
	tr.expire()
	require.Equal(t, 1, tr.idleConns(), "one was idle for long")
	tr.mu.Lock()
	require.NotNil(t, tr.sweep, "for the other")
	tr.mu.Unlock()

	inUse := open()
	tr.CloseIdleConnections()
	finish(inUse)
	require.Zero(t, tr.idleConns(), "what was in use then is not kept")
	finish(open())
	require.Equal(t, 1, tr.idleConns(), "a new one is")

	all := make([]*http.Response, 12)
	for i := range all {
		all[i] = open()
	}
	for _, resp := range all {
		finish(resp)
	}
	require.Equal(t, 8, tr.idleConns(), "no more than MaxIdleConnsPerHost")
}

func TestUnusualRequestsAreForNetHTTP(t *testing.T) {
	proxy, err := url.Parse("http://proxy.example.com")
	require.NoError(t, err)
	set := func(name, value string) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request {
			r.Header[name] = []string{value}
			return r
		}
	}
	same := func(r *http.Request) *http.Request { return r }
	for _, test := range []struct {
		name   string
		url    string
		change func(*http.Request) *http.Request
		base   *http.Transport
		want   bool
	}{
		{"a usual one", "http://example.com/mcp", same, nil, true},
		{"a port", "http://127.0.0.1:80/mcp", same, nil, true},
		{"IPv6", "http://[::1]:80/mcp", same, nil, true},
		{"a field", "http://example.com", set("Authorization", "Bearer a.b-c"), nil, true},
		{"TLS", "https://example.com/mcp", same, nil, false},
		{"a zone", "http://[fe80::1%25en0]:80/", same, nil, false},
		{"letters beyond ASCII", "http://bücher.example.com/", same, nil, false},
		{"GET", "http://example.com", func(r *http.Request) *http.Request { r.Method = "GET"; return r }, nil, false},
		{"no body", "http://example.com", func(r *http.Request) *http.Request { r.Body, r.ContentLength = nil, 0; return r }, nil, false},
		{"no length", "http://example.com", func(r *http.Request) *http.Request { r.ContentLength = -1; return r }, nil, false},
		{"a large body", "http://example.com", func(r *http.Request) *http.Request { r.ContentLength = maxBody + 1; return r }, nil, false},
		{"the last one", "http://example.com", func(r *http.Request) *http.Request { r.Close = true; return r }, nil, false},
		{"a trace", "http://example.com", func(r *http.Request) *http.Request {
			return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{}))
		}, nil, false},
		{"another host", "http://example.com", func(r *http.Request) *http.Request { r.Host = "a b"; return r }, nil, false},
		{"a line break", "http://example.com", set("X", "a\r\nB: c"), nil, false},
		{"a name that is none", "http://example.com", set("X y", "a"), nil, false},
		{"a name that is empty", "http://example.com", set("", "a"), nil, false},
		{"blanks", "http://example.com", set("X", " a"), nil, false},
		{"an upgrade", "http://example.com", set("Upgrade", "websocket"), nil, false},
		{"a length of its own", "http://example.com", set("Content-Length", "7"), nil, false},
		{"a proxy", "http://example.com", same, &http.Transport{Proxy: http.ProxyURL(proxy)}, false},
		{"no proxy", "http://example.com", same, &http.Transport{Proxy: http.ProxyURL(nil)}, true},
		{"few connections", "http://example.com", same, &http.Transport{MaxConnsPerHost: 1}, false},
		{"no keeping", "http://example.com", same, &http.Transport{DisableKeepAlives: true}, false},
		{"little patience", "http://example.com", same, &http.Transport{ResponseHeaderTimeout: time.Second}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			base := test.base
			if base == nil {
				base = &http.Transport{}
			}
			require.Equal(t, test.want && canPeek, New(base).direct(test.change(post(t, t.Context(), test.url, "x"))))
		})
	}
}

func TestWhatNetHTTPDoesIsDone(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Method, " ", n)
	}))
	defer s.Close()
	tr := newTransport(t)
	_, text, err := send(t, tr, s.URL, strings.Repeat("x", maxBody+1))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint("POST ", maxBody+1), text)
	require.Zero(t, tr.idleConns())
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	tr := newTransport(t)
	for _, body := range []string{"", "ab", "abcd"} {
		req := post(t, t.Context(), "http://example.com/", "abc")
		req.Body = io.NopCloser(bytes.NewReader([]byte(body)))
		_, err := tr.RoundTrip(req)
		require.EqualError(t, err, "http1: the body of the request is not as long as its ContentLength")
	}
	req := post(t, t.Context(), "http://example.com/", "abc")
	req.URL.Opaque = "//example.com/a b"
	_, err := tr.RoundTrip(req)
	require.EqualError(t, err, "http1: the path of the URL holds a blank or a control character")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, _, err = send(t, tr, "http://"+l.Addr().String(), "x")
	require.ErrorContains(t, err, "connection refused")
}

func TestAddressesHaveAPort(t *testing.T) {
	for raw, want := range map[string]string{
		"http://a": "a:80", "http://a:81/b": "a:81", "http://[::1]": "[::1]:80", "http://[::1]:82": "[::1]:82", "http://1.2.3.4": "1.2.3.4:80",
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		require.Equal(t, want, address(u))
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(echo))
	defer s.Close()
	base := &http.Transport{}
	for name, rt := range map[string]http.RoundTripper{"here": New(base), "net/http": base} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("hello"))
				if err != nil {
					b.Fatal(err)
				}
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	New(base).CloseIdleConnections()
}
