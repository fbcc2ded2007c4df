package sse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	events "github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// client is the client's end of a session.
type client struct {
	http   *http.Client
	header http.Header
	stream io.ReadCloser
	events *events.Reader
	url    string // of the POSTs
	stop   func()
	done   <-chan struct{}
}

func open(t *testing.T, base string, header http.Header) *client {
	return openOn(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, base, header)
}

func openOn(t *testing.T, h *http.Client, base string, header http.Header) *client {
	c := &client{http: h, header: header}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/sse", nil)
	require.NoError(t, err)
	r.Header = header.Clone()
	resp, err := c.http.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	c.stream, c.events = resp.Body, events.NewReader(resp.Body, 4<<20)
	first, err := c.events.Next()
	require.NoError(t, err)
	require.Equal(t, "endpoint", first.Type)
	require.Regexp(t, `^/sse\?sessionId=[A-Z2-7]{26}$`, string(first.Data))
	c.url = base + string(first.Data)
	return c
}

// post posts a message and returns the status.
func (c *client) post(message []byte, header http.Header) (int, error) {
	r, err := http.NewRequest(http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		return 0, err
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func (c *client) Send(message []byte) error {
	status, err := c.post(message, c.header)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

func (c *client) Receive() ([]byte, error) {
	e, err := c.events.Next()
	if err == nil && e.Type != "message" {
		err = errors.New(e.Type)
	}
	return e.Data, err
}

func (c *client) Close() error          { return c.stream.Close() }
func (c *client) Stop()                 { c.stop() }
func (c *client) Done() <-chan struct{} { return c.done }

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		handler := sse.NewHandler(h, &sse.Options{
			MaxBodyBytes: transporttest.MaxMessageBytes, ShutdownTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer handler.Close()
			assert.NoError(t, httpserve.Run(ctx, listener, &http.Server{Handler: handler}, func() { _ = handler.Shutdown(context.Background()) }))
		}()
		c := open(t, "http://"+listener.Addr().String(), nil)
		c.stop, c.done = stop, done
		return c
	})
}

type pong struct{}

func (pong) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: []byte(`{}`)}
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestSessionsBelongToTheirPrincipal(t *testing.T) {
	h := sse.NewHandler(pong{}, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("User"); user != "" {
			r = r.WithContext(oauth.NewContext(r.Context(), &oauth.Principal{Subject: user}))
		}
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	ann := http.Header{"User": {"ann"}}
	c := open(t, server.URL, ann)
	for _, test := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"another principal", http.Header{"User": {"bob"}}, 404},
		{"no principal", nil, 404},
		{"a foreign page", http.Header{"User": {"ann"}, "Origin": {"http://evil.example.com"}}, 403},
		{"its own", ann, 202},
	} {
		status, err := c.post([]byte(ping), test.header)
		require.NoError(t, err)
		require.Equal(t, test.status, status, test.name)
	}
	got, err := c.Receive()
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, string(got))
	require.NoError(t, c.Close())
	require.NoError(t, h.Shutdown(t.Context()))
}

func TestSessionsEndWithTheirCredential(t *testing.T) {
	h := sse.NewHandler(pong{}, &sse.Options{Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &oauth.Principal{Subject: "ann", Expires: time.Now().Add(50 * time.Millisecond)}
		h.ServeHTTP(w, r.WithContext(oauth.NewContext(r.Context(), p)))
	}))
	defer server.Close()
	c := open(t, server.URL, nil)
	_, err := c.Receive()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, c.Close())
	require.NoError(t, h.Shutdown(t.Context()))
}
