package mcpkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// answers makes a middleware that returns what result gives in place of a tool's.
func answers(result func() (mcpkit.Result, error)) mcpkit.Middleware {
	return func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { return result() }
	}
}

func TestResultsOfExtensionsHaveTheirTypeForModernClients(t *testing.T) {
	var log bytes.Buffer
	srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, srv.Add(mcpkit.NewTool("start", func() string { return "" })))
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if call.Method() != protocol.MethodToolsCall {
				return next(ctx, call)
			}
			return map[string]any{"resultType": "task", "taskId": "7"}, nil
		}
	})
	require.Contains(t, legacy(t, srv, protocol.V20251125).fails("tools/call", `{"name":"start"}`).Message, "internal error (ref ")
	require.Contains(t, log.String(), `clients of version 2025-11-25 have no results of type \"task\"`)
	result := modern(t, srv).result("tools/call", `{"name":"start"}`)
	require.Equal(t, `"task"`, member(t, result, "resultType"))
	require.Equal(t, `"7"`, member(t, result, "taskId"))
}

// ratings is the extension of these tests.
type ratings struct {
	topic *mcpkit.Topic
	items *mcpkit.Server
	set   *mcpkit.ItemSet // of items
	stars map[string]int
	calls []string
}

type ratedParams struct {
	Tool string `json:"tool" validate:"required"`
}

type rating struct {
	Tool  string `json:"tool"`
	Stars int    `json:"stars"`
}

func (r *ratings) get(ctx context.Context, p ratedParams) (rating, error) {
	r.calls = append(r.calls, mcpkit.CallFrom(ctx).Name())
	stars, ok := r.stars[p.Tool]
	if !ok {
		return rating{}, mcpkit.ErrNotFound
	}
	return rating{p.Tool, stars}, nil
}

// intercept answers with a result type of its own, if the client understands it.
func (r *ratings) intercept(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		if _, ok := call.Extension(ratingsID); ok && call.OwnName() == "slow" {
			return map[string]string{"resultType": "later", "ticket": "7"}, nil
		}
		return next(ctx, call)
	}
}

const ratingsID = "com.example/ratings"

// declaring is a client of 2026-07-28 that declares the extension.
func declaring(t testing.TB, srv *mcpkit.Server) *extensionPeer {
	return &extensionPeer{modern(t, srv)}
}

type extensionPeer struct{ *peer }

const ratingsMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.example/ratings":{"max":3}}}}`

func (p *extensionPeer) send(method, params string) string {
	return p.raw(p.t.Context(), `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+strings.TrimSuffix(params, "}")+`,`+ratingsMeta+`}}`)
}

func newRatings() *ratings {
	r := &ratings{stars: map[string]int{"slow": 2}, items: mcpkit.MustNew(nil)}
	r.set = r.items.NewItemSet()
	r.topic = mcpkit.NewTopic("ratedTools", "notifications/ratings/changed", func(ctx context.Context, key string) bool { return r.stars[key] > 0 })
	return r
}

func (r *ratings) extension() mcpkit.Extension {
	return mcpkit.Extension{
		ID: ratingsID, Settings: map[string]int{"stars": 5}, Since: protocol.V20260728,
		Methods: []*mcpkit.Method{
			mcpkit.NewMethod("ratings/get", r.get).NameParam("tool").Negotiated(),
			mcpkit.NewMethod("ratings/ping", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }),
		},
		Topics: []*mcpkit.Topic{r.topic}, Items: r.items, Intercept: r.intercept,
	}
}

func TestExtensionsAreDeclaredForTheirVersions(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Extend(newRatings().extension()))
	capabilities := member(t, modern(t, srv).result("server/discover", `{}`), "capabilities", "extensions")
	require.JSONEq(t, `{"com.example/ratings":{"stars":5}}`, capabilities)
	p := &peer{t: t, srv: srv}
	p.session = transport.NewSession("s1", p)
	require.NotContains(t, p.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`), "extensions")
	require.Contains(t, p.fails("ratings/ping", `{}`).Message, `params._meta needs`, "the method is for modern clients")

	always := newServer(t, nil, mcpkit.Extend(mcpkit.Extension{ID: ratingsID}))
	p = &peer{t: t, srv: always}
	p.session = transport.NewSession("s1", p)
	require.Contains(t, p.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`), `"extensions":{"com.example/ratings":{}}`)
}

func TestNegotiatedMethodsNeedTheDeclarationOfTheClient(t *testing.T) {
	r := newRatings()
	srv := newServer(t, nil, mcpkit.Extend(r.extension()))
	err := modern(t, srv).fails("ratings/get", `{"tool":"slow"}`)
	require.EqualError(t, err, `ratings/get needs a client that declares the extension "com.example/ratings" (code -32021)`)
	require.JSONEq(t, `{"requiredCapabilities":{"extensions":{"com.example/ratings":{}}}}`, string(err.Data))
	require.Empty(t, r.calls)
	require.Contains(t, declaring(t, srv).send("ratings/get", `{"tool":"slow"}`), `"result":{"tool":"slow","stars":2,`)
	require.Equal(t, []string{"slow"}, r.calls, "Name is the named parameter")
	require.Contains(t, declaring(t, srv).send("ratings/get", `{"tool":7}`), `"code":-32602,"message":"ratings/get needs tool, a string"`)
	modern(t, srv).result("ratings/ping", `{}`)
}

func TestNamesOfExtensionMethodsAreMirroredByTheHeader(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Extend(newRatings().extension()))
	p := declaring(t, srv)
	send := func(name string) string {
		p.header = transport.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"ratings/get"}, "Mcp-Name": {name}}
		return p.send("ratings/get", `{"tool":"slow"}`)
	}
	require.Contains(t, send("slow"), `"stars":2`)
	require.Contains(t, send("fast"), `"code":-32020`)
}

func TestExtensionsInterceptCallsOfTools(t *testing.T) {
	r := newRatings()
	var seen []string
	srv := newServer(t, nil, mcpkit.Extend(r.extension()), mcpkit.Extend(mcpkit.Extension{ID: "com.example/second", Intercept: func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			seen = append(seen, call.Method()+" "+call.Name())
			return next(ctx, call)
		}
	}}))
	require.NoError(t, srv.Add(mcpkit.NewTool("slow", func() string { return "done" })))
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler { return next })
	require.Contains(t, declaring(t, srv).send("tools/call", `{"name":"slow"}`), `"ticket":"7","resultType":"later"`)
	require.Empty(t, seen, "the first extension is the outermost")
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"slow"}`), `"done"`)
	modern(t, srv).result("tools/list", `{}`)
	modern(t, srv).fails("tools/call", `{"name":"unknown"}`)
	require.Equal(t, []string{"tools/call slow"}, seen)
}

func TestTopicsNotifyTheirSubscribers(t *testing.T) {
	r := newRatings()
	r.stars["fast"] = 5
	plain := mcpkit.NewTopic("ratingsReset", "notifications/ratings/reset", nil)
	e := r.extension()
	e.Topics = append(e.Topics, plain)
	srv := newServer(t, nil, mcpkit.Extend(e))
	sent := make(chan string, 10)
	p := declaring(t, srv)
	link := &listeningPeer{p.peer, sent}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		msg, bad := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"ratedTools":["slow","secret"],"ratingsReset":true,"other":1},` + ratingsMeta + `}}`))
		if bad == nil {
			srv.ServeRPC(ctx, msg.Request, link)
		}
	}()
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"ratedTools":["slow"],"ratingsReset":true},"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}`, <-sent)
	for _, key := range []string{"fast", "secret"} {
		require.NoError(t, r.topic.Notify(key, rating{key, 1}), "nobody subscribed to it")
	}
	require.Equal(t, []string{"slow"}, r.topic.Keys())
	require.NoError(t, r.topic.Notify("slow", rating{"slow", 3}))
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/ratings/changed","params":{"tool":"slow","stars":3,"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}`, <-sent)
	require.NoError(t, plain.Notify("", map[string]any{}))
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/ratings/reset","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}`, <-sent)
	stop()
	<-ended
	require.False(t, r.topic.Subscribed("slow"))
	require.EqualError(t, r.topic.Notify("slow", 3), `mcpkit: topic "ratedTools": params are a JSON object, not 3`)
}

func TestTopicsRefuseWrongSubscriptions(t *testing.T) {
	r := newRatings()
	e := r.extension()
	e.Topics = append(e.Topics, mcpkit.NewTopic("ratingsReset", "notifications/ratings/reset", nil))
	srv := newServer(t, nil, mcpkit.Extend(e))
	require.EqualError(t, modern(t, srv).fails("subscriptions/listen", `{"notifications":{"ratedTools":[]}}`),
		`the member ratedTools of the filter needs a client that declares the extension "com.example/ratings" (code -32021)`)
	many := strings.Repeat(`"x",`, 1001)
	for filter, want := range map[string]string{
		`{"ratedTools":"slow"}`:                       `the member ratedTools of the filter is a list of strings`,
		`{"ratedTools":[1]}`:                          `the member ratedTools of the filter is a list of strings`,
		`{"ratedTools":[` + many[:len(many)-1] + `]}`: `ratedTools names more than 1000 keys`,
		`{"ratingsReset":"yes"}`:                      `the member ratingsReset of the filter is true or false`,
	} {
		require.Contains(t, declaring(t, srv).send("subscriptions/listen", `{"notifications":`+filter+`}`), `"code":-32602,"message":"`+want+`"`)
	}
}

func TestItemsOfExtensionsAreReplacedAsAWhole(t *testing.T) {
	r := newRatings()
	require.NoError(t, r.set.Replace(mcpkit.NewTool("rate", func() string { return "1" })))
	first := newServer(t, nil, mcpkit.Extend(r.extension()))
	second := newServer(t, nil, mcpkit.Extend(r.extension()))
	p := legacy(t, first, protocol.V20251125)
	names := func(srv *mcpkit.Server) string { return modern(t, srv).result("tools/list", `{}`) }

	err := r.set.Replace(mcpkit.NewTool("unrate", func() {}), mcpkit.NewTool("unrate", func() {}))
	require.ErrorContains(t, err, `tool "unrate" is registered twice`)
	require.NotContains(t, names(first), "unrate")
	require.Contains(t, modern(t, first).result("tools/call", `{"name":"rate"}`), `"text":"1"`)
	require.Contains(t, modern(t, second).result("tools/call", `{"name":"rate"}`), `"text":"1"`)

	p.take()
	require.NoError(t, r.set.Replace(
		mcpkit.NewTool("rate", func() string { return "2" }),
		mcpkit.NewResource("ratings://all", "all", func() string { return "" }).Hidden().Size(7),
	))
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}`}, p.take(), "the list of tools is the same")
	require.Contains(t, modern(t, first).result("tools/call", `{"name":"rate"}`), `"text":"2"`)
	require.Contains(t, modern(t, second).result("tools/call", `{"name":"rate"}`), `"text":"2"`)
	require.NotContains(t, modern(t, first).result("resources/list", `{}`), "ratings://all", "it is hidden")
	p.result("resources/subscribe", `{"uri":"ratings://all"}`)
	require.True(t, r.items.ResourceUpdated("ratings://all"))
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"ratings://all"}}`}, p.take())
}

func TestMountedServersKeepTheirExtensions(t *testing.T) {
	r := newRatings()
	require.NoError(t, r.set.Replace(mcpkit.NewTool("rate", func() string { return "1" })))
	parent, child := newServer(t, nil), newServer(t, nil, mcpkit.Extend(r.extension()))
	require.NoError(t, child.Add(mcpkit.NewTool("slow", func() string { return "done" })))
	require.NoError(t, parent.Mount("shop", child))
	require.Contains(t, modern(t, parent).result("server/discover", `{}`), `"extensions":{"com.example/ratings":{"stars":5}}`)
	require.Contains(t, declaring(t, parent).send("ratings/get", `{"tool":"slow"}`), `"stars":2`)
	modern(t, parent).fails("ratings/get", `{"tool":"slow"}`)
	require.Contains(t, declaring(t, parent).send("tools/call", `{"name":"shop_slow"}`), `"resultType":"later"`)
	require.NoError(t, r.set.Replace(mcpkit.NewTool("rerate", func() string { return "1" })))
	require.Contains(t, modern(t, parent).result("tools/list", `{}`), `"shop_rerate"`)
}

func TestClientsOfAServerSubscribeToTheTopicsOfMountedServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRatings()
		top, middle, child := newServer(t, nil), newServer(t, nil), newServer(t, nil, mcpkit.Extend(r.extension()))
		require.NoError(t, middle.Mount("m", child))
		require.NoError(t, top.Mount("t", middle))
		// listen returns the filter that the server acknowledges, and the notification of a change.
		listen := func(srv *mcpkit.Server) (filter, changed string) {
			sent := make(chan string, 10)
			link := &listeningPeer{declaring(t, srv).peer, sent}
			ctx, stop := context.WithCancel(t.Context())
			var ended sync.WaitGroup
			ended.Go(func() {
				msg, bad := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"ratedTools":["slow","secret"]},` + ratingsMeta + `}}`))
				if bad == nil {
					srv.ServeRPC(ctx, msg.Request, link)
				}
			})
			synctest.Wait()
			filter = <-sent
			require.NoError(t, r.topic.Notify("slow", rating{"slow", 3}))
			synctest.Wait()
			stop()
			ended.Wait()
			close(sent)
			return filter, <-sent
		}
		for _, srv := range []*mcpkit.Server{child, middle, top} {
			filter, changed := listen(srv)
			require.Contains(t, filter, `"notifications":{"ratedTools":["slow"]}`)
			require.Contains(t, changed, `"method":"notifications/ratings/changed"`)
		}
	})
}

type counted struct{ starts, closes int }

func (c *counted) Start(context.Context) error { c.starts++; return nil }
func (c *counted) Close() error                { c.closes++; return nil }

func TestServicesOfExtensionsStartAndCloseWithTheServer(t *testing.T) {
	c := &counted{}
	srv := newServer(t, nil, mcpkit.Extend(mcpkit.Extension{ID: ratingsID, Service: c}))
	require.NoError(t, srv.Start(t.Context()))
	require.NoError(t, srv.Close())
	require.Equal(t, counted{1, 1}, *c)
}

func TestFaultsOfExtensionsAreFoundAtStartup(t *testing.T) {
	ping := mcpkit.NewMethod("ratings/ping", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	for _, test := range []struct {
		name string
		e    mcpkit.Extension
		err  string
	}{
		{"no domain", mcpkit.Extension{ID: "ratings"}, `mcpkit: extension "ratings": the ID is a reversed domain, a slash and a name; write for example "com.example/ratings"`},
		{"settings not an object", mcpkit.Extension{ID: ratingsID, Settings: 5}, `mcpkit: extension "com.example/ratings": the settings, a int, do not encode to a JSON object`},
		{"method of the protocol", mcpkit.Extension{ID: ratingsID, Methods: []*mcpkit.Method{mcpkit.NewMethod("tools/list", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })}},
			`mcpkit: extension "com.example/ratings": the method "tools/list" is part of the protocol`},
		{"method twice", mcpkit.Extension{ID: ratingsID, Methods: []*mcpkit.Method{ping, ping}}, `mcpkit: extension "com.example/ratings": the method "ratings/ping" is registered already, by the extension "com.example/ratings"`},
		{"member of the protocol", mcpkit.Extension{ID: ratingsID, Topics: []*mcpkit.Topic{mcpkit.NewTopic("toolsListChanged", "n", nil)}},
			`mcpkit: extension "com.example/ratings": the member "toolsListChanged" of a topic is empty or means something already`},
		{"its own check", mcpkit.Extension{ID: ratingsID, Check: func() error { return errors.New("no stars") }}, `mcpkit: extension "com.example/ratings": no stars`},
	} {
		_, err := mcpkit.New(nil, mcpkit.Extend(test.e))
		require.EqualError(t, err, test.err, test.name)
	}
	_, err := mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{ID: ratingsID}), mcpkit.Extend(mcpkit.Extension{ID: ratingsID}))
	require.EqualError(t, err, `mcpkit: extension "com.example/ratings": the server has it already`)
	one, two := mcpkit.NewTopic("topic", "n", nil), mcpkit.NewTopic("topic", "n", nil)
	_, err = mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{ID: ratingsID, Topics: []*mcpkit.Topic{one, two}}))
	require.EqualError(t, err, `mcpkit: extension "com.example/ratings": the member "topic" of a topic is empty or means something already`)
}

// starred is the extension com.example/ratings, which shows clients how good tools are.
func starred() mcpkit.Extension {
	return mcpkit.Extension{
		ID:   ratingsID,
		Tags: []string{"stars"},
		Tool: func(t *mcpkit.ToolEntry, v protocol.Version) error {
			value, ok := t.Tags["stars"]
			if !ok {
				return nil
			}
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > 5 {
				return fmt.Errorf("tag stars: %q is not a number from 1 to 5", value)
			}
			if v == protocol.V20251125 {
				t.Definition.Execution = &protocol.ToolExecution{TaskSupport: "optional"}
			}
			return t.Definition.Meta.Set("example.com/stars", n)
		},
	}
}

type rated struct {
	_ struct {
		Search mcpkit.Tool `stars:"4" meta:"example.com/team=search"`
		Plain  mcpkit.Tool
	}
}

func (rated) Search() string { return "" }
func (rated) Plain() string  { return "" }

func TestTagsOfExtensionsReachTheEntryAndTheCall(t *testing.T) {
	calls := map[string]string{}
	e := starred()
	e.Intercept = func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if value, ok := call.ToolTag("stars"); ok {
				calls[call.Name()] = value
			}
			return next(ctx, call)
		}
	}
	srv := newServer(t, &rated{}, mcpkit.Extend(e))
	require.NoError(t, srv.Add(mcpkit.NewTool("built", func() string { return "" }).Tag("stars", "5")))
	top := newServer(t, nil)
	top.MustMount("far", srv)
	p := modern(t, top)
	for _, name := range []string{"search", "plain", "built"} {
		p.result("tools/call", `{"name":"far_`+name+`"}`)
	}
	require.Equal(t, map[string]string{"far_search": "4", "far_built": "5"}, calls)
}

func TestExtensionsAddMembersToToolsPerVersion(t *testing.T) {
	srv := newServer(t, &rated{}, mcpkit.Extend(starred()))
	const schemas = `"inputSchema":{"type":"object","properties":{},"additionalProperties":false}`
	plain := `{"name":"plain",` + schemas + `}`
	withMeta := `{"name":"search",` + schemas + `,"_meta":{"example.com/stars":4,"example.com/team":"search"}`
	for range 2 { // the second time from the cache
		require.Equal(t, `[`+plain+`,`+withMeta+`}]`, member(t, modern(t, srv).result("tools/list", `{}`), "tools"))
		require.Equal(t, `[`+plain+`,`+withMeta+`}]`, member(t, legacy(t, srv, protocol.V20250618).result("tools/list", `{}`), "tools"))
		require.Equal(t, `[`+plain+`,{"name":"search",`+schemas+`,"execution":{"taskSupport":"optional"},"_meta":{"example.com/stars":4,"example.com/team":"search"}}]`, member(t, legacy(t, srv, protocol.V20251125).result("tools/list", `{}`), "tools"))
	}
}

func TestMembersOfExtensionsReachThroughAMount(t *testing.T) {
	parent := newServer(t, nil)
	require.NoError(t, parent.Mount("child", newServer(t, &rated{}, mcpkit.Extend(starred()))))
	require.Contains(t, modern(t, parent).result("tools/list", `{}`), `{"name":"child_search","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"_meta":{"example.com/stars":4,`)
}

func TestMistakesWithTagsOfExtensions(t *testing.T) {
	type (
		outOfRange struct {
			rated
			_ struct {
				Plain mcpkit.Tool `stars:"6"`
			}
		}
		misspelt struct {
			rated
			_ struct {
				Plain mcpkit.Tool `star:"3"`
			}
		}
		onPrompt struct {
			rated
			_ struct {
				Plain mcpkit.Prompt `stars:"3"`
			}
		}
		ofTasks struct {
			rated
			_ struct {
				Plain mcpkit.Tool `task:"optional"`
			}
		}
	)
	const known = `name, title, desc, icon, scopes, timeout, rate, tags, toolset, alias, variant, params, rules, hints, cache, hidden, meta, stars`
	for _, test := range []struct {
		service any
		want    string
	}{
		{&outOfRange{}, `: tag stars: "6" is not a number from 1 to 5`},
		{&misspelt{}, `: unknown tag "star"; did you mean "stars"?; known are ` + known},
		{&onPrompt{}, `: tag "stars" means nothing for mcpkit.Prompt; known are name,`},
		{&ofTasks{}, `: unknown tag "task"; if it is of an extension, such as tasks.New or apps.Pages, add that to the options of New; known are ` + known},
	} {
		_, err := mcpkit.New(test.service, mcpkit.Extend(starred()))
		require.ErrorContains(t, err, `.Plain (extension_test.go:`)
		require.ErrorContains(t, err, test.want)
	}
	srv := newServer(t, nil, mcpkit.Extend(starred()))
	tool := func(key, value string) *mcpkit.Builder {
		return mcpkit.NewTool("brew", func() string { return "" }).Tag(key, value)
	}
	require.ErrorContains(t, srv.Add(tool("stars", "many")), `: tag stars: "many" is not a number from 1 to 5`)
	require.ErrorContains(t, srv.Add(tool("star", "3")), `: unknown tag "star"; did you mean "stars"?`)
}

func TestMistakesOfExtensionsWithTags(t *testing.T) {
	for want, tags := range map[string][]string{
		`mcpkit: extension "com.example/ratings": the tag "timeout" means something already, or has characters that no tag has`: {"timeout"},
		`mcpkit: extension "com.example/ratings": the tag "a b" means something already, or has characters that no tag has`:     {"a b"},
		`mcpkit: extension "com.example/ratings": the tag "stars" means something already, or has characters that no tag has`:   {"stars", "stars"},
	} {
		_, err := mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{ID: ratingsID, Tags: tags}))
		require.EqualError(t, err, want)
	}
}

// A check of services does not know the extensions, and yet finds what is misspelt.
func TestAnyTagsAreThoseOfUnknownExtensions(t *testing.T) {
	srv := newServer(t, &rated{}, mcpkit.AnyTags())
	require.NotContains(t, modern(t, srv).result("tools/list", `{}`), "stars")
	err := srv.Add(mcpkit.NewTool("brew", func() string { return "" }).Tag("timeuot", "9s"))
	require.ErrorContains(t, err, `unknown tag "timeuot"; did you mean "timeout"?`)
}

func TestExtendEachMakesAnExtensionForEachServer(t *testing.T) {
	made := 0
	opt := mcpkit.ExtendEach(func() mcpkit.Extension {
		made++
		return mcpkit.Extension{ID: ratingsID, Settings: map[string]int{"server": made}}
	})
	for i := range 2 {
		require.Contains(t, modern(t, newServer(t, nil, opt)).result("server/discover", `{}`), fmt.Sprintf(`{"server":%d}`, i+1))
	}
}
