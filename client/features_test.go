package client_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A user answers questions and records what it received.
type user struct {
	mu       sync.Mutex
	asked    []string
	logged   []string
	progress []float64
}

func (u *user) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, p.Message)
	content := `{"confirm":true}`
	if p.Message == "Where to?" {
		content = `{"street":"Main St"}`
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(content)}, nil
}

func (u *user) Sample(_ context.Context, p *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	return &protocol.CreateMessageResult{
		Role: protocol.RoleAssistant, Model: "m", Content: protocol.SamplingContents{&protocol.TextContent{Text: "well"}},
	}, nil
}

func (u *user) Roots(context.Context) ([]protocol.Root, error) {
	return []protocol.Root{{URI: "file:///home"}}, nil
}

func (u *user) Log(_ context.Context, p *protocol.LoggingMessageParams) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.logged = append(u.logged, string(p.Level))
}

func (u *user) Progress(_ context.Context, p *protocol.ProgressParams) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.progress = append(u.progress, p.Progress)
}

func TestHandlersServeLegacyAndModernServers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		u := &user{}
		c := dial(t, client.Handlers(u))
		text, err := client.Call[string](t.Context(), c, "ask", nil)
		require.NoError(t, err)
		require.Equal(t, "well file:///home", text)
		if v < protocol.V20250618 {
			return // the version has no elicitation
		}
		where, err := client.Call[Address](t.Context(), c, "order", Hit{ID: 1, Title: "tea"})
		require.NoError(t, err)
		require.Equal(t, Address{Street: "Main St", Gift: true}, where, "a field that the user leaves out has its default")
		require.Equal(t, []string{"Where to?", "Really?"}, u.asked, "each question is asked once")
	})
}

// A refuser rejects all questions.
type refuser struct{}

func (refuser) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return nil, errors.New("nobody is at home")
}

func (refuser) Sample(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	return nil, client.ErrRejected
}

func TestARefusalByAHandlerFailsTheCall(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		c := dial(t, client.Handlers(refuser{}))
		_, err := c.CallTool(t.Context(), "ask", nil)
		if v.Modern() {
			require.ErrorIs(t, err, client.ErrRejected)
			_, err = c.CallTool(t.Context(), "order", Hit{})
			require.EqualError(t, err, `client: tools/call "order": input request elicitation/create: nobody is at home`)
			return
		}
		require.Error(t, err)
	})
}

func TestProgressAndLogsReachTheCallAndTheHandlers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		u := &user{}
		c := dial(t, client.Handlers(u), client.LogLevel(protocol.LevelDebug))
		var progress []float64
		var logged []protocol.LoggingLevel
		text, err := client.Call[string](t.Context(), c, "count", nil,
			client.OnProgress(func(p *protocol.ProgressParams) { progress = append(progress, p.Progress) }),
			client.OnLog(func(p *protocol.LoggingMessageParams) { logged = append(logged, p.Level) }))
		require.NoError(t, err)
		require.Equal(t, "done", text)
		// On some transports, the Log handler may run after the call has returned.
		require.Eventually(t, func() bool {
			u.mu.Lock()
			defer u.mu.Unlock()
			return len(u.logged) == 3
		}, time.Minute, time.Millisecond)
		u.mu.Lock()
		defer u.mu.Unlock()
		require.Equal(t, []float64{1, 2, 3}, progress)
		require.Equal(t, []float64{1, 2, 3}, u.progress)
		require.Equal(t, []protocol.LoggingLevel{"info", "info", "info"}, logged)
		require.Equal(t, []string{"info", "info", "info"}, u.logged)
	})
}

// A watcher receives changes.
type watcher struct {
	tools   chan struct{}
	updated chan string
}

func (w *watcher) ToolsChanged(context.Context) { w.tools <- struct{}{} }

func (w *watcher) ResourceUpdated(_ context.Context, uri string) { w.updated <- uri }

func TestChangesReachHandlersAndSubscriptions(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		w := &watcher{tools: make(chan struct{}, 10), updated: make(chan string, 10)}
		c := dial(t, client.Handlers(w))
		ctx := t.Context()
		sub, err := c.Listen(ctx, protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"shop://hours"}})
		require.NoError(t, err)
		other, err := c.Subscribe(ctx, "shop://hours", "shop://article/1")
		require.NoError(t, err)

		require.Len(t, list(t, c), 9)
		_, err = c.CallTool(ctx, "change", nil)
		require.NoError(t, err)
		<-w.tools
		require.Equal(t, "shop://hours", <-w.updated)
		got := map[client.Change]bool{}
		for len(got) < 2 {
			change, err := sub.Next(ctx)
			require.NoError(t, err)
			got[change] = true
		}
		require.Equal(t, map[client.Change]bool{{Kind: client.ToolsChanged}: true, {Kind: client.ResourceUpdated, URI: "shop://hours"}: true}, got)
		change, err := other.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, client.Change{Kind: client.ResourceUpdated, URI: "shop://hours"}, change)
		require.Len(t, list(t, c), 10, "the cached list is outdated")

		require.NoError(t, sub.Close())
		_, err = sub.Next(ctx)
		require.ErrorContains(t, err, "closed")
	})
}

func list(t *testing.T, c *client.Client) []string {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(t.Context()) {
		require.NoError(t, err)
		names = append(names, tool.Name)
	}
	return names
}

func TestListsAndResourcesAreCachedAsLongAsTheServerAllows(t *testing.T) {
	srv := shop(t)
	read := func(c *client.Client, opts ...client.CallOption) string {
		r, err := c.ReadResource(t.Context(), "shop://hours", opts...)
		require.NoError(t, err)
		return *r.Contents[0].Text
	}
	c := dial(t, srv)
	first := read(c)
	require.Equal(t, first, read(c))
	fresh := read(c, client.Fresh())
	require.NotEqual(t, first, fresh)
	require.Equal(t, fresh, read(c))
	never := dial(t, srv, client.NoCache())
	require.NotEqual(t, read(never), read(never))
}

func TestResultsAreCachedForTheirMeta(t *testing.T) {
	srv := mcpkit.MustNew(nil)
	require.NoError(t, srv.Add(mcpkit.NewResource("tenant://name", "tenant", func(call *mcpkit.Call) string {
		return string(call.Meta("example.com/tenant"))
	}).Cache("1h,private")))
	c, err := client.Dial(t.Context(), client.InMemory(srv))
	require.NoError(t, err)
	defer c.Close()
	for _, tenant := range []string{"a", "b", "a"} {
		for _, trace := range []string{"00-1", "00-2"} {
			r, err := c.ReadResource(t.Context(), "tenant://name", client.Meta("example.com/tenant", tenant), client.Meta("traceparent", trace))
			require.NoError(t, err)
			require.Equal(t, `"`+tenant+`"`, *r.Contents[0].Text)
		}
	}
}

func TestProtocolErrorsReachTheCaller(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		c := dial(t)
		_, err := c.ReadResource(t.Context(), "shop://nothing/at/all")
		var rpc *jsonrpc.Error
		require.True(t, protocol.IsResourceNotFound(err), err)
		_, err = c.CallTool(t.Context(), "nothing", nil)
		require.ErrorAs(t, err, &rpc)
		require.Equal(t, jsonrpc.CodeInvalidParams, rpc.Code)
		require.ErrorContains(t, c.Request(t.Context(), "no/such", nil, nil), `client: no/such: method "no/such" is not offered (code -32601)`)
	})
}

func TestArgumentsAreCopiedToHeaders(t *testing.T) {
	for _, name := range []string{"Köln", " edge ", "plain", ""} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, serveHTTP(t, shop(t)))
			// The client does not know the schema: the server refuses the call, the client lists
			// the tools and calls again.
			got, err := client.Call[string](t.Context(), c, "region", RegionInput{Region: name, Level: 3})
			require.NoError(t, err)
			require.Equal(t, name, got)
			got, err = client.Call[string](t.Context(), c, "region", RegionInput{Region: name})
			require.NoError(t, err)
			require.Equal(t, name, got)
		})
	}
}

// inBubbles runs a test in a synctest bubble for each transport that needs no network, in these
// versions.
func inBubbles(t *testing.T, versions []protocol.Version, run func(t *testing.T, dial dialer, v protocol.Version)) {
	for _, via := range []string{"memory", "stream", "http"} {
		for _, v := range versions {
			t.Run(via+"/"+string(v), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := shop(t)
					var target any = srv
					own := []client.DialOption{client.Version(v)}
					switch via {
					case "stream":
						target = serveStream(t, srv, nil)
					case "http":
						handler := streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
						web, closeAll := testkit.Serve(&http.Server{Handler: handler})
						t.Cleanup(func() {
							handler.Close()
							closeAll()
						})
						target, own = "http://shop.test/mcp", append(own, client.HTTPClient(web))
					}
					run(t, func(t *testing.T, opts ...client.DialOption) *client.Client {
						return dial(t, target, append(own, opts...)...)
					}, v)
				})
			})
		}
	}
}

func TestTheTimeOfAHandlerDoesNotCountAsTimeOfTheCall(t *testing.T) {
	inBubbles(t, []protocol.Version{protocol.V20250618, protocol.V20251125, protocol.V20260728}, func(t *testing.T, dial dialer, _ protocol.Version) {
		c := dial(t, client.Handlers(slowUser{}))
		_, err := client.Call[Address](t.Context(), c, "order", Hit{}, client.Timeout(30*time.Second))
		require.NoError(t, err)
	})
}

// A slowUser takes longer to answer than the timeout of the call.
type slowUser struct{}

func (slowUser) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	time.Sleep(time.Minute) // of the synctest bubble
	return (&user{}).Elicit(ctx, p)
}

// Change adds a tool and updates a resource.
func (s *Shop) Change() error {
	s.srv.ResourceUpdated("shop://hours")
	return s.srv.Add(mcpkit.NewTool("zzz", func() string { return "" }))
}

func TestItemsOfListsOfExtensions(t *testing.T) {
	f := newFake(t, map[string]answer{
		"x/list": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			text := `{"things":[{"n":1},2],"nextCursor":"more"}`
			if string(req.Param("cursor")) == `"more"` {
				text = fmt.Sprintf(`{"things":[%s]}`, req.Param("of"))
			}
			result(text)(w, r, req)
		},
		"x/none": result(`{}`),
	})
	c := dial(t, f.URL)
	var all []string
	for item, err := range c.Items(t.Context(), "x/list", "things", map[string]string{"of": "tea"}) {
		require.NoError(t, err)
		all = append(all, string(item))
	}
	require.Equal(t, []string{`{"n":1}`, `2`, `"tea"`}, all)
	for _, err := range c.Items(t.Context(), "x/none", "things", nil) {
		require.EqualError(t, err, `client: x/none: the server's response is invalid: it has no list "things"`)
	}
}

// markers receives a notification that no version defines.
type markers chan struct{}

func (m markers) Notification(context.Context, string, json.RawMessage) { m <- struct{}{} }

// logging also has a method for log messages.
type logging struct{ markers }

func (logging) Log(context.Context, *protocol.LoggingMessageParams) {}

// The message may belong to any of the calls in flight, or to none.
func TestALogMessageOutsideTheStreamsOfCallsReachesALoneCallOnly(t *testing.T) {
	t.Parallel()
	marked := make(markers)
	for _, tt := range []struct {
		calls    int
		handlers any
		want     int64
	}{{1, marked, 1}, {2, marked, 0}, {1, logging{marked}, 0}} {
		begun, release := make(chan struct{}, tt.calls), make(chan struct{})
		f := newLegacyFake(t, map[string]answer{
			"initialize": initialized("2025-11-25", "s"),
			"tools/call": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
				begun <- struct{}{}
				<-release
				result(`{"content":[]}`)(w, r, req)
			},
			"GET": func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				for range tt.calls {
					<-begun
				}
				_, _ = io.WriteString(w, event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)+
					event(`{"jsonrpc":"2.0","method":"x/marker"}`))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
		})
		c := dial(t, f.URL, client.Handlers(tt.handlers))
		var heard atomic.Int64
		var over sync.WaitGroup
		for range tt.calls {
			over.Go(func() {
				_, err := c.CallTool(t.Context(), "x", nil, client.OnLog(func(*protocol.LoggingMessageParams) { heard.Add(1) }))
				require.NoError(t, err)
			})
		}
		<-marked // calls hear the message before
		close(release)
		over.Wait()
		require.Equal(t, tt.want, heard.Load(), "%d calls, %T", tt.calls, tt.handlers)
	}
}

func TestNotificationsReachASlowHandlerEvenIfTheStreamDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &babbler{answer: func(r *http.Request) *http.Response {
			body, events := io.Pipe()
			context.AfterFunc(r.Context(), func() { _ = events.CloseWithError(r.Context().Err()) })
			// Ends when all is read.
			go func() {
				for n := range 3 {
					_, _ = io.WriteString(events, event(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":%d}}`, n)))
				}
				_, _ = io.WriteString(events, event(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`))
			}()
			return respond(r, http.StatusOK, "text/event-stream", body)
		}}
		c := dial(t, "http://example.com/mcp", client.Version(protocol.Latest), client.HTTPClient(&http.Client{Transport: server}))
		heard := 0
		_, err := c.CallTool(t.Context(), "x", nil, client.OnProgress(func(*protocol.ProgressParams) {
			time.Sleep(time.Second) // of the bubble
			heard++
		}))
		require.NoError(t, err)
		require.Equal(t, 3, heard)
	})
}

// A panicker panics in all its methods, as a handler may that meets input it does not expect.
type panicker struct{}

func (panicker) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	panic("oops")
}

func (panicker) Log(context.Context, *protocol.LoggingMessageParams) { panic("oops") }

func TestAPanicInAHandlerEndsNeitherTheProgramNorTheConnection(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		c := dial(t, client.Handlers(panicker{}), client.LogLevel(protocol.LevelDebug))
		if v >= protocol.V20250618 { // earlier versions have no questions
			_, err := c.CallTool(t.Context(), "order", Hit{ID: 1, Title: "tea"})
			require.Error(t, err)
		}
		_, err := c.CallTool(t.Context(), "count", nil)
		require.NoError(t, err)
		require.NoError(t, c.Ping(t.Context()))
	})
}

type dialer = func(t *testing.T, opts ...client.DialOption) *client.Client

func TestCallsWorkOnEveryTransportInEveryVersion(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		c := dial(t)
		ctx := t.Context()
		require.Equal(t, v, c.Version())
		require.Equal(t, "shop", c.Server().Name)
		require.NotNil(t, c.Capabilities().Tools)
		require.NoError(t, c.Ping(ctx))

		hits, err := client.Call[[]Hit](ctx, c, "search", SearchInput{Query: "tea"})
		require.NoError(t, err)
		require.Equal(t, []Hit{{ID: 1 << 60, Title: "tea"}}, hits)
		sum, err := client.Call[int](ctx, c, "add", AddInput{2, 3})
		require.NoError(t, err)
		require.Equal(t, 5, sum)
		line, err := client.Call[string](ctx, c, "tagline", nil)
		require.NoError(t, err)
		require.Equal(t, "Everything must go.", line)

		_, err = client.Call[[]Hit](ctx, c, "search", SearchInput{})
		var toolErr *client.ToolError
		require.ErrorAs(t, err, &toolErr)
		require.EqualError(t, err, `tool "search": the query is empty`)

		var names []string
		for tool, err := range c.Tools(ctx) {
			require.NoError(t, err)
			names = append(names, tool.Name)
		}
		require.Equal(t, []string{"add", "ask", "change", "count", "order", "region", "search", "tagline", "wait"}, names)

		r, err := c.ReadResource(ctx, "shop://article/7")
		require.NoError(t, err)
		require.Equal(t, "article 7", *r.Contents[0].Text)
		p, err := c.GetPrompt(ctx, "advise", map[string]string{"taste": "tea"})
		require.NoError(t, err)
		require.Equal(t, "What goes with tea?", p.Messages[0].Content.(*protocol.TextContent).Text)
		for p, err := range c.Prompts(ctx) {
			require.NoError(t, err)
			require.Equal(t, "advise", p.Name)
		}
		for r, err := range c.Resources(ctx) {
			require.NoError(t, err)
			require.Equal(t, "shop://hours", r.URI)
		}
		for r, err := range c.Templates(ctx) {
			require.NoError(t, err)
			require.Equal(t, "shop://article/{id}", r.URITemplate)
		}
		got, err := c.Complete(ctx, protocol.CompletionRef{Type: protocol.RefPrompt, Name: "advise"}, "taste", "x", map[string]string{"a": "b"})
		require.NoError(t, err)
		require.Equal(t, []string{"x1", "x2"}, got.Values)
	})
}

func TestConcurrentCallersKeepTheirConnections(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			t.Run(fmt.Sprint(v, " HTTP2 ", http2), func(t *testing.T) {
				const callers, calls = 8, 15
				var conns atomic.Int64
				handler := streamable.NewHandler(shop(t), nil)
				t.Cleanup(handler.Close)
				server := httptest.NewUnstartedServer(handler)
				server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateNew {
						conns.Add(1)
					}
				}
				if server.EnableHTTP2 = http2; http2 {
					server.StartTLS()
					trust(t, server)
				} else {
					server.Start()
				}
				t.Cleanup(server.Close)
				c := dial(t, server.URL, client.Version(v))
				all := func() (made int64) {
					before := conns.Load()
					var group sync.WaitGroup
					for range callers {
						group.Go(func() {
							for range calls {
								_, err := client.Call[string](t.Context(), c, "region", map[string]any{"region": "north"})
								if err != nil {
									t.Error(err)
									return
								}
							}
						})
					}
					group.Wait()
					return conns.Load() - before
				}
				all() // the first calls open the connections
				if http2 {
					require.EqualValues(t, 1, conns.Load(), "one connection carries all calls")
				}
				require.Less(t, all(), int64(callers), "connections for %d later calls", callers*calls)
			})
		}
	}
}

// trust makes the default HTTP transport accept the certificate of server until the test ends.
func trust(t *testing.T, server *httptest.Server) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	trusting := before.(*http.Transport).Clone()
	trusting.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	http.DefaultTransport = trusting
}

func TestPrivateResultsAreForgottenWithTheLogin(t *testing.T) {
	user := "ada"
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error { a.Subject = user; return nil }})
	srv := mcpkit.MustNew(nil)
	reads := 0
	require.NoError(t, srv.Add(mcpkit.NewResource("me://name", "name", func(call *mcpkit.Call) string {
		reads++
		return call.Principal().Subject
	}).Cache("1h,private")))
	require.NoError(t, srv.Add(mcpkit.NewResource("me://everybody", "everybody", func(call *mcpkit.Call) string {
		return call.Principal().Subject
	}).Cache("1h,public")))

	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	guard, err := resource.New(resource.Options{Issuer: as.Issuer, Resource: s.URL + "/mcp", InsecureLoopback: true, Client: as.Client()})
	require.NoError(t, err)
	guard.Mount(mux)
	mux.Handle("/mcp", guard.Wrap(streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})))

	login, err := oauthclient.New(s.URL+"/mcp", &oauthclient.AuthorizationCode{
		Name: "test", Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open}),
	}, &oauthclient.Options{InsecureLoopback: true, Base: as.Client().Transport})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, login.Close()) })
	c := dial(t, s.URL+"/mcp", client.HTTPClient(&http.Client{Transport: login}))
	read := func(uri string) string {
		r, err := c.ReadResource(t.Context(), uri)
		require.NoError(t, err)
		return *r.Contents[0].Text
	}

	require.Equal(t, "ada", read("me://name"))
	require.Equal(t, "ada", read("me://name"))
	require.Equal(t, 1, reads, "private results are cached for their user")
	require.Equal(t, "ada", read("me://everybody"))

	require.NoError(t, login.Logout(t.Context()))
	user = "bob"
	require.NoError(t, login.Login(t.Context()))
	require.Equal(t, "bob", read("me://name"))
	require.Equal(t, "ada", read("me://everybody"), "public results are for everybody")
}

// signing is a transport that sends credentials which the client does not know.
type signing struct{ http.RoundTripper }

func TestPrivateResultsAreNotCachedForUnknownCredentials(t *testing.T) {
	srv := mcpkit.MustNew(nil)
	reads := 0
	count := func() string { reads++; return "" }
	require.NoError(t, srv.Add(mcpkit.NewResource("x://private", "private", count).Cache("1h,private")))
	require.NoError(t, srv.Add(mcpkit.NewResource("x://public", "public", count).Cache("1h,public")))
	url := serveHTTP(t, srv)
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	for _, test := range []struct {
		uri    string
		client *http.Client
		reads  int
	}{
		{"x://private", &http.Client{Transport: signing{own}}, 2},
		{"x://public", &http.Client{Transport: signing{own}}, 1},
		{"x://private", &http.Client{Transport: own}, 1},
	} {
		c, before := dial(t, url, client.HTTPClient(test.client)), reads
		for range 2 {
			_, err := c.ReadResource(t.Context(), test.uri)
			require.NoError(t, err)
		}
		require.Equal(t, test.reads, reads-before, "%s %T", test.uri, test.client.Transport)
	}
}
