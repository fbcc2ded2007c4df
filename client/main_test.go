package client_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// childVariable makes the test binary a stdio server instead of running tests. Its value is the
// kind.
const childVariable = "MCPKIT_CLIENT_TEST_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		os.Exit(beChild(kind))
	}
	// Parallel tests also wait: for Close inside a handler, and for children to end.
	flag.Parse()
	_ = flag.Set("test.parallel", "4")
	testkit.VerifyTestMain(m)
}

// beChild serves on standard input and output.
func beChild(kind string) int {
	if serve, ok := children[kind]; ok {
		return serve()
	}
	srv, err := newShop(slog.New(slog.DiscardHandler))
	if err == nil {
		err = srv.Serve(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// children are the servers of child processes, by kind, besides the shop.
var children = map[string]func() int{}

// child returns the command of a server of this kind; "" is the shop.
func child(kind string) *client.CommandTarget {
	if kind == "" {
		kind = "shop"
	}
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	t := client.Command(exe)
	t.Env = []string{childVariable + "=" + kind, "GORACE=atexit_sleep_ms=0"}
	return t
}

// transports are the ways to reach a server. Each starts its own server.
var transports = []struct {
	name   string
	target func(t *testing.T) any
}{
	{"memory", func(t *testing.T) any { return shop(t) }},
	{"stdio", func(*testing.T) any { return child("") }},
	{"http", func(t *testing.T) any { return serveHTTP(t, shop(t)) }},
	{"websocket", func(t *testing.T) any { return serveWebSocket(t, shop(t)) }},
	{"unix", func(t *testing.T) any { return "unix:" + serveUnix(t, shop(t), nil) }},
	{"stream", func(t *testing.T) any { return serveStream(t, shop(t), nil) }},
	{"sse", func(t *testing.T) any { return client.HTTPSSE(serveSSE(t, shop(t))) }},
}

func shop(t *testing.T) *mcpkit.Server {
	t.Helper()
	srv, err := newShop(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return srv
}

// serveHTTP serves over HTTP and returns the URL.
func serveHTTP(t *testing.T, srv *mcpkit.Server) string {
	t.Helper()
	return serveHandler(t, streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)}))
}

func serveWebSocket(t *testing.T, srv *mcpkit.Server) string {
	t.Helper()
	return "ws" + strings.TrimPrefix(serveHandler(t, websocket.NewHandler(srv, &websocket.Options{Logger: slog.New(slog.DiscardHandler)})), "http")
}

func serveSSE(t *testing.T, srv *mcpkit.Server) string {
	t.Helper()
	return serveHandler(t, sse.NewHandler(srv, &sse.Options{Logger: slog.New(slog.DiscardHandler)}))
}

// serveHandler serves the handler of a transport, and returns the URL.
func serveHandler(t *testing.T, h interface {
	http.Handler
	Shutdown(context.Context) error
}) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		require.NoError(t, h.Shutdown(context.Background()))
		s.Close()
	})
	return s.URL
}

// dial connects to target and closes the client at the end of the test.
func dial(t *testing.T, target any, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append([]client.DialOption{client.Logger(slog.New(slog.DiscardHandler)), client.Stderr(nil), patient}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// patient leaves a server enough time to start on a busy machine.
var patient = client.ProbeTimeout(time.Minute)

// everywhere runs a test on every transport in every version. Programs run only the newest version
// of each family, and so do other transports unless long tests run; "stream", which differs from a
// program only in the process, runs all.
func everywhere(t *testing.T, run func(t *testing.T, dial func(t *testing.T, opts ...client.DialOption) *client.Client, v protocol.Version)) {
	for _, b := range transports {
		for _, v := range protocol.Supported {
			if b.name == "sse" && v.Modern() {
				continue // HTTP+SSE supports only legacy versions
			}
			if b.name != "stream" && (b.name == "stdio" || !testkit.LongTests()) && v != protocol.LatestLegacy && v != protocol.Latest {
				continue
			}
			t.Run(b.name+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				run(t, func(t *testing.T, opts ...client.DialOption) *client.Client {
					return dial(t, b.target(t), append([]client.DialOption{client.Version(v)}, opts...)...)
				}, v)
			})
		}
	}
}

// Shop is the server that these tests call.
type Shop struct {
	_ mcpkit.Info `name:"shop" version:"1.2.3"`
	_ struct {
		Search  mcpkit.Tool     `hints:"readonly"`
		Tagline mcpkit.Tool     `name:"tagline"`
		Region  mcpkit.Tool     `name:"region"`
		Article mcpkit.Resource `uri:"shop://article/{id}" mime:"text/plain"`
		Hours   mcpkit.Resource `uri:"shop://hours" cache:"60s,public"`
		Advise  mcpkit.Prompt   `params:"taste" complete:"taste=Tastes"`
		Tastes  mcpkit.Skip
	}
	srv *mcpkit.Server
}

// A Hit is an article that was found.
type Hit struct {
	ID    int64  `json:"id"`
	Title string `json:"title"`
}

// SearchInput says what to look for.
type SearchInput struct {
	Query string `json:"query" validate:"required"`
	Limit int    `json:"limit,omitempty"`
}

// Search finds articles.
func (s *Shop) Search(in SearchInput) ([]Hit, error) {
	if in.Query == "" {
		return nil, mcpkit.Errorf("the query is empty")
	}
	return []Hit{{ID: 1 << 60, Title: in.Query}}, nil
}

// Tagline returns a text.
func (s *Shop) Tagline() string { return "Everything must go." }

// AddInput holds numbers.
type AddInput struct {
	A int `json:"a"`
	B int `json:"b"`
}

// Add adds numbers.
func (s *Shop) Add(in AddInput) int { return in.A + in.B }

// RegionInput is copied to headers.
type RegionInput struct {
	Region string `json:"region" header:"Region"`
	Level  int    `json:"level,omitempty" header:"Level"`
}

// Region returns the region.
func (s *Shop) Region(in RegionInput) string { return in.Region }

// Address is an address.
type Address struct {
	Street string `json:"street"`
	Gift   bool   `json:"gift" default:"true"`
}

// Order asks for the address and a confirmation.
func (s *Shop) Order(ctx context.Context, in Hit) (Address, error) {
	where, err := mcpkit.Elicit[Address](ctx, "Where to?")
	if err != nil {
		return Address{}, err
	}
	sure, err := mcpkit.Confirm(ctx, "Really?")
	if err != nil || !sure {
		return Address{}, errors.Join(err, mcpkit.Errorf("not sure"))
	}
	return where, nil
}

// Ask asks the client for a sample of its model and for its roots.
func (s *Shop) Ask(ctx context.Context) (string, error) {
	r, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{
		MaxTokens: 10, Messages: []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: protocol.SamplingContents{&protocol.TextContent{Text: "hm?"}}}},
	})
	if err != nil {
		return "", err
	}
	roots, err := mcpkit.Roots(ctx)
	if err != nil {
		return "", err
	}
	return r.Content[0].(*protocol.TextContent).Text + " " + roots[0].URI, nil
}

// Count reports progress and logs.
func (s *Shop) Count(ctx context.Context, call *mcpkit.Call, log *slog.Logger) string {
	for i := range 3 {
		call.Progress(float64(i+1), 3, "counting")
		log.InfoContext(ctx, "counted")
	}
	return "done"
}

// Wait waits until it is cancelled.
func (s *Shop) Wait(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "waiting")
	<-ctx.Done()
	return "", ctx.Err()
}

// Article returns an article.
func (s *Shop) Article(id string) string { return "article " + id }

// Hours returns the time, so that each read differs.
func (s *Shop) Hours() string { return time.Unix(0, time.Now().UnixNano()).String() }

// Advise asks for advice.
func (s *Shop) Advise(taste string) string { return "What goes with " + taste + "?" }

// Tastes completes.
func (s *Shop) Tastes(_ context.Context, prefix string) ([]string, error) {
	return []string{prefix + "1", prefix + "2"}, nil
}

// newShop returns a shop.
func newShop(log *slog.Logger) (*mcpkit.Server, error) {
	s := &Shop{}
	srv, err := mcpkit.New(s, mcpkit.Logger(log), mcpkit.PageSize(2), mcpkit.ListTTL(time.Minute))
	s.srv = srv
	return srv, err
}
