package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestAProcessThatEndsIsReportedAndStartedAgain(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			near := mounted(t, client.Command(os.Args[0], asChild), v)
			c := dial(t, near, protocol.V20260728)
			count := func() {
				t.Helper()
				got, err := client.Call[[]int](t.Context(), c, "far_count", nil)
				require.NoError(t, err)
				require.Equal(t, []int{1, 2}, got)
			}
			count()
			_, err := c.CallTool(t.Context(), "far_crash", nil)
			require.EqualError(t, err, `tool "far_crash": the connection to the remote server "desk" was lost; the call may or may not have taken effect`)
			count()
			_, err = c.CallTool(t.Context(), "far_crash", nil)
			require.Error(t, err)
			got, err := client.Call[int](t.Context(), c, "far_again", nil)
			require.NoError(t, err, "a call that may be repeated is repeated")
			require.Equal(t, 1, got, "in a new process")
		})
	}
}

// A web is a network in memory with one server over HTTP, which may be out of order.
type web struct {
	client *http.Client
	status atomic.Int32 // of all responses; 0 serves, and -1 breaks the connection
	conns  sync.Map     // of net.Conn
}

const url = "http://far.example/mcp"

func newWeb(t *testing.T, far *mcpkit.Server) *web {
	w := &web{}
	handler := streamable.NewHandler(far, nil)
	client, closeAll := testkit.Serve(&http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch status := w.status.Load(); status {
			case 0:
				handler.ServeHTTP(rw, r)
			case -1:
				panic(http.ErrAbortHandler)
			default:
				rw.WriteHeader(int(status))
			}
		}),
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ConnState: func(c net.Conn, _ http.ConnState) { w.conns.Store(c, true) },
	})
	w.client = client
	t.Cleanup(func() {
		handler.Close()
		closeAll()
	})
	return w
}

// breakDown ends all connections, and those that follow.
func (w *web) breakDown() {
	w.status.Store(-1)
	w.conns.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
}

func TestAnUnreachableServerIsAnErrorOfTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, mcpkit.MustNew(&desk{}, mcpkit.Logger(silent)))
		w.breakDown()
		err := mounted(t, url, protocol.V20260728, proxy.Dial(client.HTTPClient(w.client))).Start(t.Context())
		require.ErrorContains(t, err, "mcpkit: *mcpkit.Server does not start: mcpkit: *proxy.remote does not start: proxy: remote: client:")
	})
}

func TestAnUnreachableServerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, mcpkit.MustNew(&desk{}, mcpkit.Logger(silent)))
		w.breakDown()
		near := mounted(t, url, protocol.V20260728, proxy.Dial(client.HTTPClient(w.client)), proxy.Optional(), proxy.Name("shop"))
		require.NoError(t, near.Start(t.Context()))
		require.NoError(t, near.Add(mcpkit.NewTool("own", func() string { return "own" })))
		c := dial(t, near, protocol.V20260728)
		changes, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
		require.NoError(t, err)
		defer changes.Close()
		_, err = c.Tool(t.Context(), "far_count")
		require.Error(t, err)
		w.status.Store(0)
		_, err = changes.Next(t.Context())
		require.NoError(t, err)
		_, err = client.Call[[]int](t.Context(), c, "far_count", nil)
		require.NoError(t, err)

		w.status.Store(503)
		_, err = c.CallTool(t.Context(), "far_count", nil)
		require.ErrorContains(t, err, `the remote server "shop" responded with HTTP status 503 Service Unavailable`)
		w.status.Store(-1)
		_, err = c.CallTool(t.Context(), "far_refuse", nil)
		require.ErrorContains(t, err, `the connection to the remote server "shop" was lost; the call may or may not have taken effect`)
	})
}

func TestAServerThatRefusesConnectionsIsReported(t *testing.T) {
	s := httptest.NewServer(streamable.NewHandler(mcpkit.MustNew(&desk{}, mcpkit.Logger(silent)), nil))
	near := mounted(t, s.URL, protocol.V20260728)
	c := dial(t, near, protocol.V20260728)
	s.CloseClientConnections()
	s.Close()
	_, _ = c.CallTool(t.Context(), "far_refuse", nil) // may use a connection that has ended
	_, err := c.CallTool(t.Context(), "far_refuse", nil)
	require.EqualError(t, err, `tool "far_refuse": the remote server "desk" cannot be reached at the moment; try again later`)
}

func TestWithoutAConnectionCallsFailAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		refusing := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			attempts.Add(1)
			return nil, errors.New("refused")
		})}
		p := proxy.MustNew("http://far.example/mcp", proxy.Optional(), proxy.Logger(silent), proxy.Dial(client.HTTPClient(refusing)))
		require.NoError(t, p.Start(t.Context()))
		first := attempts.Load()
		time.Sleep(500 * time.Millisecond) // of the synctest bubble
		synctest.Wait()
		require.Equal(t, first, attempts.Load())
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, 121*first, attempts.Load(), "attempts are 5 s apart")
		require.NoError(t, p.Close())
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The second round reaches a process that does not have the parked call.
func TestAnotherProcessContinuesWithoutTheParkedCall(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		d := &desk{}
		far := mcpkit.MustNew(d, mcpkit.Logger(silent))
		replica := func() *mcpkit.Server {
			p := proxy.MustNew(client.InMemory(far), proxy.Logger(silent), proxy.Dial(client.Version(v)))
			srv := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.StateKeys(key))
			srv.MustMount("far", p)
			t.Cleanup(func() { require.NoError(t, srv.Close()) })
			return srv
		}
		u := &user{}
		c := dial(t, &alternating{servers: []*mcpkit.Server{replica(), replica()}}, protocol.V20260728, client.Handlers(u))
		got, err := client.Call[ticket](t.Context(), c, "far_book", order{"Rome"})
		require.NoError(t, err)
		require.Equal(t, 3, got.Days)
		require.Equal(t, []string{"How many days in Rome?", "How many more?"}, u.asked, "no question is asked twice")
	}
}

// asker asks, and counts how often it begins.
type asker struct{ begun atomic.Int64 }

func (a *asker) Ask(ctx context.Context) (int, error) {
	a.begun.Add(1)
	d, err := mcpkit.Elicit[days](ctx, "How many days?")
	return d.Days, err
}

func TestACallThatIsNotKeptBeginsAgain(t *testing.T) {
	far := &asker{}
	near := mounted(t, client.InMemory(mcpkit.MustNew(far, mcpkit.Logger(silent))), protocol.V20251125)
	absent := dial(t, near, protocol.V20260728, client.Handlers(&user{}), client.MaxRounds(0))
	const most = 1000
	for range most {
		_, err := absent.CallTool(t.Context(), "far_ask", nil)
		require.ErrorContains(t, err, "asked 0 times for input and still wants more")
	}
	_, err := dial(t, near, protocol.V20260728, client.Handlers(&user{})).CallTool(t.Context(), "far_ask", nil)
	require.NoError(t, err)
	require.EqualValues(t, most+2, far.begun.Load())
}

func TestWhatBelongsToAnUnknownCallReachesNobody(t *testing.T) {
	handler := sse.NewHandler(mcpkit.MustNew(&desk{waiting: make(chan struct{}, 1), ended: make(chan error, 1)}, mcpkit.Logger(silent)), nil)
	web := httptest.NewServer(handler)
	defer web.Close()
	defer handler.Close()
	for name, target := range map[string]any{"process": client.Command(os.Args[0], asChild), "HTTP+SSE": web.URL} {
		t.Run(name, func(t *testing.T) {
			near := mounted(t, target, protocol.V20251125)
			ann, bob := &user{}, &user{}
			waiting := dial(t, near, protocol.V20251125, client.Handlers(ann))
			asking := dial(t, near, protocol.V20260728, client.Handlers(bob))
			ctx, cancel := context.WithCancel(t.Context())
			begun, ended := make(chan struct{}, 1), make(chan error, 1)
			// Ends with the call.
			go func() {
				_, err := waiting.CallTool(ctx, "far_wait", nil, client.OnProgress(func(*protocol.ProgressParams) { begun <- struct{}{} }))
				ended <- err
			}()
			<-begun
			_, err := asking.CallTool(t.Context(), "far_book", order{"Rome"})
			require.ErrorContains(t, err, "no call is in flight, or several may be: it is unknown which of them elicitation/create is for")
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.Empty(t, ann.asked)
			require.Empty(t, ann.logged, "messages of other calls are dropped")
			require.Empty(t, bob.asked)
		})
	}
}

func TestAClosedProxyDoesNotConnectAgain(t *testing.T) {
	p := proxy.MustNew(client.InMemory(mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))), proxy.Logger(silent), proxy.Dial(client.Stderr(io.Discard)))
	require.NoError(t, p.Close(), "before Start")
	require.NoError(t, p.Start(t.Context()))
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
}

// alternating passes each request to the next server.
type alternating struct {
	servers []*mcpkit.Server
	n       atomic.Int64
}

func (a *alternating) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	return a.servers[int(a.n.Add(1))%len(a.servers)].ServeRPC(ctx, req, peer)
}

// The caller does not answer the question of a legacy server.
func TestAParkedCallOfAMissingCallerIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent), mcpkit.ToolTimeout(0))
		ended := make(chan error, 1)
		far.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				result, err := next(ctx, call)
				if call.Method() == protocol.MethodToolsCall {
					ended <- err
				}
				return result, err
			}
		})
		near := mounted(t, client.InMemory(far), protocol.V20251125, proxy.Dial(client.Timeout(0)))
		c := dial(t, near, protocol.V20260728, client.Handlers(&user{absent: true}))
		_, err := c.CallTool(t.Context(), "far_book", order{"Rome"})
		require.ErrorContains(t, err, "nobody is at home")
		time.Sleep(9 * time.Minute) // of the synctest bubble
		synctest.Wait()
		require.Empty(t, ended, "it waits")
		time.Sleep(2 * time.Minute)
		require.Error(t, <-ended)
	})
}

// The remote server cannot list its prompts at first, and later again.
func TestAListThatFailsDoesNotHideOthers(t *testing.T) {
	fails := map[string]string{"prompts/list": "the prompts are broken"}
	on := map[string]string{
		"server/discover":          discovered,
		"tools/list":               `"tools":[{"name":"one","inputSchema":{"type":"object"}}]`,
		"prompts/list":             `"prompts":[{"name":"two"}]`,
		"resources/list":           `"resources":[{"uri":"x://three","name":"three"}]`,
		"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"x://four/{id}","name":"four"}]`,
	}
	respond := func(req *jsonrpc.Request) (string, *jsonrpc.Error) {
		if fault, ok := fails[req.Method]; ok {
			return "", jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", fault)
		}
		return complete(on[req.Method]), nil
	}
	var log strings.Builder
	srv, err := proxy.New(answering(t, respond), proxy.Logger(slog.New(slog.NewTextHandler(&log, nil))), proxy.Name("far"))
	require.NoError(t, err)
	require.NoError(t, srv.Start(t.Context()), "the other lists can be read")
	c := dial(t, srv, protocol.V20260728)
	has := func(method string) string {
		var list json.RawMessage
		if err := c.Request(t.Context(), method, nil, &list); err != nil {
			return err.Error()
		}
		return string(list)
	}
	require.Contains(t, has("tools/list"), `"one"`)
	require.Contains(t, has("resources/list"), `"three"`)
	require.Contains(t, has("resources/templates/list"), `"four"`)
	require.NotContains(t, has("prompts/list"), `"two"`)
	require.Contains(t, log.String(), `msg="proxy: a list of the remote server cannot be read" server=far method=prompts/list error="client: prompts/list: the prompts are broken (code -32603)"`)
	require.NoError(t, srv.Close())

	for method := range on {
		fails[method] = "all is broken"
	}
	delete(fails, "server/discover")
	srv, err = proxy.New(answering(t, respond), proxy.Logger(silent), proxy.Name("far"))
	require.NoError(t, err)
	require.ErrorContains(t, srv.Start(t.Context()), "all is broken", "no list can be read")
	require.NoError(t, srv.Close())
}

// A legacy server goes on without the answer, which comes too late.
func TestACallThatEndedBeforeItsAnswerIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var booked atomic.Int64
		far := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.QuestionTimeout(time.Minute))
		require.NoError(t, far.Add(mcpkit.NewTool("book", func(ctx context.Context) (string, error) {
			_, err := mcpkit.Elicit[days](ctx, "How many days?")
			booked.Add(1)
			if err != nil {
				return "booked one day", nil
			}
			return "booked", nil
		})))
		near := mounted(t, client.InMemory(far), protocol.V20251125, proxy.Dial(client.Timeout(0)))
		c := dial(t, near, protocol.V20260728, client.Handlers(&user{takes: 2 * time.Minute}))
		got, err := client.Call[string](t.Context(), c, "far_book", nil)
		require.NoError(t, err)
		require.Equal(t, "booked one day", got)
		require.EqualValues(t, 1, booked.Load())
	})
}

// A cable is a connection in memory to a server, which is made again after it was cut.
type cable struct {
	far     *mcpkit.Server
	connect func(ctx context.Context) error // called before each connection; nil does nothing
	theirs  net.Conn
}

func (c *cable) target() client.Target {
	return client.Connect(func(ctx context.Context) (io.ReadWriteCloser, error) {
		if c.connect != nil {
			if err := c.connect(ctx); err != nil {
				return nil, err
			}
		}
		ours, theirs := net.Pipe()
		c.theirs = theirs
		go func() { _ = stdio.NewIO(theirs, theirs, nil).Serve(context.WithoutCancel(ctx), c.far) }() // ends with the connection
		return ours, nil
	})
}

func (c *cable) cut(t *testing.T) {
	require.NoError(t, c.theirs.Close())
	synctest.Wait()
}

// The remote server takes five seconds to start again, and its callers wait for three.
func TestCallersThatLeaveDoNotDelayTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &cable{far: mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))}
		c := dial(t, mounted(t, link.target(), protocol.V20260728), protocol.V20260728)
		link.connect = func(ctx context.Context) error {
			select {
			case <-time.After(5 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		link.cut(t)
		var err error
		for range 4 {
			_, err = c.CallTool(t.Context(), "far_count", nil, client.Timeout(3*time.Second))
		}
		require.NoError(t, err)
	})
}

// The function of the program panics when the connection has to be made again.
func TestAPanicOfConnectFailsTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &cable{far: mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))}
		c := dial(t, mounted(t, link.target(), protocol.V20260728), protocol.V20260728)
		link.connect = func(context.Context) error { panic("no cable") }
		link.cut(t)
		_, err := c.CallTool(t.Context(), "far_count", nil)
		require.Error(t, err)
		link.connect = nil
		time.Sleep(time.Minute)
		_, err = c.CallTool(t.Context(), "far_count", nil)
		require.NoError(t, err)
	})
}

// awaitUpdate waits for an update of desk://index.
func awaitUpdate(t *testing.T, sub *client.Subscription) {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	change, err := sub.Next(limited)
	require.NoError(t, err)
	require.Equal(t, client.Change{Kind: client.ResourceUpdated, URI: "desk://index"}, change)
}

// The remote server is away for longer than a client tries to listen again.
func TestUpdatesAreForwardedAfterAnOutage(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
			w := newWeb(t, far)
			c := dial(t, mounted(t, url, v, proxy.Dial(client.HTTPClient(w.client))), protocol.V20260728)
			sub, err := c.Subscribe(t.Context(), "desk://index")
			require.NoError(t, err)
			w.breakDown()
			time.Sleep(10 * time.Minute)
			w.status.Store(0)
			awaitUpdate(t, sub) // one may have been missed
			synctest.Wait()
			require.True(t, far.ResourceUpdated("desk://index"), v)
			awaitUpdate(t, sub)
		})
	}
}
