package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

type object = map[string]any

// A visitor calls the methods of a server with our client. The test servers (gosdk_server_test.go
// and ts/server.mjs) offer the same features, as far as their SDKs can:
//
//	tools      add, rooms (returns an array), content (all kinds), fail,
//	           locate (a header mirrors its argument), caller_meta (returns _meta of the request),
//	           work (sends progress and logs), wait (until it is cancelled),
//	           cancelled (returns after wait was cancelled),
//	           roots_changed (returns after the client's roots changed),
//	           change (adds to a list), update_resource, resume (closes its stream early),
//	           ask, register (asks twice), pay (a URL), pay_first (a URL required by an error),
//	           sample, list_roots, ask_several (a question, sampling and roots at once)
//	resources  test://menu, test://photo (bytes), test://guestbook (update_resource updates it),
//	           test://counter (counts its reads, may be cached), test://safe (asks),
//	           test://rooms/{number}
//	prompts    greet (with completion), welcome (asks), breakfast, lunch
type visitor struct {
	*testing.T
	c         *client.Client
	transport string
	version   string
	cannot    map[string]string // the checks that the server cannot support, with the reasons
	host      *host
	recorder  *recorder
}

// visit runs all checks. The client negotiates the modern version, and pins the others.
func visit(t *testing.T, server any, transport, version string, cannot map[string]string) {
	v := &visitor{T: t, transport: transport, version: version, cannot: cannot, host: newHost(), recorder: &recorder{}}
	opts := []client.DialOption{client.Handlers(v.host), client.Info("interop", "1.0.0"),
		client.HTTPClient(&http.Client{Transport: v.recorder}),
		client.ProbeTimeout(timeout), client.ShutdownTimeout(timeout)}
	if version != modern {
		opts = append(opts, client.Version(protocol.Version(version)))
	}
	c, err := client.Dial(t.Context(), server, opts...)
	require.NoError(t, err)
	v.c = c
	require.Equal(t, protocol.Version(version), c.Version())
	require.Equal(t, "interop", c.Server().Name)
	require.Equal(t, "Ask at the desk.", c.Instructions())
	require.NotNil(t, c.Capabilities().Tools)
	require.NotNil(t, c.Capabilities().Prompts)
	require.NotNil(t, c.Capabilities().Resources)
	require.NoError(t, c.Ping(t.Context()))
	for _, part := range []func(){
		v.tools, v.failures, v.questions, v.notifications, v.resources, v.prompts, v.changes, v.lifetimes,
	} {
		part()
	}
	require.NoError(t, c.Close())
}

// check runs a subtest, unless the server cannot support it.
func (v *visitor) check(name string, f func(t *testing.T, ctx context.Context)) {
	v.Run(name, func(t *testing.T) {
		if why := v.cannot[name]; why != "" {
			t.Skip(why)
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		f(t, ctx)
	})
}

func (v *visitor) returns(t *testing.T, tool string, args any, want string) {
	t.Helper()
	got, err := client.Call[string](t.Context(), v.c, tool, args)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (v *visitor) since(version string) bool { return v.version >= version }

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

type total struct {
	Sum int `json:"sum"`
}

func (v *visitor) tools() {
	v.check("tools/list", func(t *testing.T, ctx context.Context) {
		tools := map[string]*protocol.Tool{}
		for tool, err := range v.c.Tools(ctx) {
			require.NoError(t, err)
			require.NotContains(t, tools, tool.Name)
			tools[tool.Name] = tool
		}
		require.Greater(t, len(tools), 10)
		require.Equal(t, "Adds two numbers.", tools["add"].Description)
		require.True(t, *tools["add"].Annotations.ReadOnlyHint)
		if v.since("2025-06-18") {
			require.Equal(t, "Add up", tools["add"].Title)
		}
	})
	v.check("pages of tools", func(t *testing.T, ctx context.Context) {
		var page protocol.ListToolsResult
		require.NoError(t, v.c.Request(ctx, protocol.MethodToolsList, nil, &page))
		require.NotNil(t, page.NextCursor)
		require.Len(t, page.Tools, 3)
	})
	v.check("structured output", func(t *testing.T, ctx context.Context) {
		got, err := client.Call[total](ctx, v.c, "add", sum{1, 2})
		require.NoError(t, err)
		require.Equal(t, total{3}, got)
		var bound struct {
			Add func(context.Context, sum) (total, error) `mcp:"add"`
		}
		require.NoError(t, v.c.Bind(&bound))
		got, err = bound.Add(ctx, sum{20, 22})
		require.NoError(t, err)
		require.Equal(t, total{42}, got)
		if v.version == modern {
			rooms, err := client.Call[[]int](ctx, v.c, "rooms", nil)
			require.NoError(t, err)
			require.Equal(t, []int{10, 11}, rooms)
		}
	})
	v.check("content: text, image, audio, link, resource", func(t *testing.T, ctx context.Context) {
		result, err := v.c.CallTool(ctx, "content", nil)
		require.NoError(t, err)
		require.Equal(t, &protocol.TextContent{Text: "a text"}, result.Content[0])
		require.Equal(t, "image", string(result.Content[1].(*protocol.ImageContent).Data))
		require.Equal(t, "audio", string(result.Content[2].(*protocol.AudioContent).Data))
		require.Equal(t, "test://menu", result.Content[3].(*protocol.ResourceLink).URI)
		require.Equal(t, "Soup", *result.Content[4].(*protocol.EmbeddedResource).Resource.Text)
	})
	v.check("an argument mirrored by a header, not ASCII", func(t *testing.T, _ context.Context) {
		v.returns(t, "locate", object{"region": "Zürich, 東京"}, "Region: Zürich, 東京")
	})
	v.check("_meta of the caller", func(t *testing.T, ctx context.Context) {
		result, err := v.c.CallTool(ctx, "caller_meta", nil, client.Meta("example.com/caller", "Ann"))
		require.NoError(t, err)
		require.Equal(t, &protocol.TextContent{Text: "Ann"}, result.Content[0])
	})
	v.check("twenty calls at once", func(t *testing.T, ctx context.Context) {
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				got, err := client.Call[total](ctx, v.c, "add", sum{n, 1})
				if err != nil || got.Sum != n+1 {
					t.Error(got, err)
				}
			})
		}
		all.Wait()
	})
}

func (v *visitor) failures() {
	v.check("a tool that fails", func(t *testing.T, ctx context.Context) {
		_, err := v.c.CallTool(ctx, "fail", nil)
		failed, ok := errors.AsType[*client.ToolError](err)
		require.True(t, ok, "%v", err)
		require.ErrorContains(t, failed, "the kitchen is closed")
	})
	// refused reports whether err is a tool error, or a protocol error for invalid params.
	refused := func(t *testing.T, err error) {
		if _, ok := errors.AsType[*client.ToolError](err); ok {
			return
		}
		wire, ok := errors.AsType[*jsonrpc.Error](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, jsonrpc.CodeInvalidParams, wire.Code)
	}
	v.check("bad arguments, unknown tools and prompts", func(t *testing.T, ctx context.Context) {
		_, err := v.c.CallTool(ctx, "add", object{"a": "one", "b": 2})
		refused(t, err)
		_, err = v.c.CallTool(ctx, "ad", nil)
		refused(t, err)
		_, err = v.c.GetPrompt(ctx, "dinner", nil)
		refused(t, err)
	})
	v.check("an unknown method", func(t *testing.T, ctx context.Context) {
		err := v.c.Request(ctx, "rooms/burn", nil, nil)
		wire, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok { // go-sdk refuses the whole message with status 400 and plain text
			require.ErrorContains(t, err, `"JSON RPC not handled: \"rooms/burn\" unsupported"`)
			return
		}
		require.EqualValues(t, jsonrpc.CodeMethodNotFound, wire.Code)
	})
	v.check("an unknown resource has an error of its own", func(t *testing.T, ctx context.Context) {
		_, err := v.c.ReadResource(ctx, "test://cellar")
		require.True(t, protocol.IsResourceNotFound(err), "%v", err)
	})
}

func (v *visitor) questions() {
	if v.since("2025-06-18") { // the first version with elicitation
		v.forms()
	}
	if v.since(latest) {
		v.check("elicitation: a URL", func(t *testing.T, _ context.Context) {
			v.returns(t, "pay", nil, "accept")
			require.Equal(t, "https://pay.example.com/bill?n=1", <-v.host.pages)
		})
	}
	if v.version == latest {
		v.check("elicitation: a URL required by an error", func(t *testing.T, ctx context.Context) {
			v.returns(t, "pay_first", nil, "paid")
			require.Equal(t, "https://pay.example.com/bill?n=1", <-v.host.pages)
			v.host.expect(t, ctx, "complete bill-1")
		})
	}
	v.check("sampling", func(t *testing.T, _ context.Context) {
		v.returns(t, "sample", nil, "echo of a word")
		p := <-v.host.prompts
		require.EqualValues(t, 100, p.MaxTokens)
		require.Equal(t, "Be short.", p.SystemPrompt)
	})
	v.check("roots", func(t *testing.T, ctx context.Context) {
		v.returns(t, "list_roots", nil, "home at file:///home")
		if v.version != modern {
			require.NoError(t, v.c.Notify(ctx, protocol.NotificationRootsListChanged, nil))
			v.returns(t, "roots_changed", nil, "roots changed")
		}
	})
}

func (v *visitor) forms() {
	v.check("elicitation: accepted", func(t *testing.T, _ context.Context) {
		v.host.accept(`{"name":"Ann"}`)
		v.returns(t, "ask", nil, "Hello, Ann in blue!") // the client fills in the default
		asked := <-v.host.asked
		require.Equal(t, "Who are you?", asked.Message)
		require.Contains(t, string(asked.RequestedSchema), `"room"`)
	})
	v.check("elicitation: declined, cancelled", func(t *testing.T, _ context.Context) {
		v.host.answers <- &protocol.ElicitResult{Action: protocol.ElicitDecline}
		v.returns(t, "ask", nil, "decline")
		v.host.answers <- &protocol.ElicitResult{Action: protocol.ElicitCancel}
		v.returns(t, "ask", nil, "cancel")
	})
	v.check("elicitation: two questions in a row", func(t *testing.T, _ context.Context) {
		v.host.accept(`{"name":"Ann"}`)
		v.host.accept(`{"colour":"green"}`)
		v.returns(t, "register", nil, "Ann likes green")
	})
	v.check("three questions at once", func(t *testing.T, _ context.Context) {
		v.host.accept(`{"name":"Ann"}`)
		v.returns(t, "ask_several", nil, "Ann, echo of a word, home at file:///home")
	})
	v.check("a prompt that asks", func(t *testing.T, ctx context.Context) {
		v.host.accept(`{"name":"Ann"}`)
		result, err := v.c.GetPrompt(ctx, "welcome", nil)
		require.NoError(t, err)
		require.Equal(t, &protocol.TextContent{Text: "Welcome, Ann"}, result.Messages[0].Content)
	})
	v.check("a resource that asks", func(t *testing.T, ctx context.Context) {
		v.host.accept(`{"code":"1234"}`)
		require.Equal(t, "opened by 1234", *v.read(t, ctx, "test://safe").Text)
	})
	v.check("cancelling a call cancels its question", func(t *testing.T, ctx context.Context) {
		for len(v.host.asked) > 0 {
			<-v.host.asked
		}
		one, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		// Ends with the call.
		go func() {
			_, err := v.c.CallTool(one, "ask", nil)
			ended <- err
		}()
		<-v.host.asked
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		v.host.expect(t, ctx, "question cancelled")
	})
}

// notifications checks logging first: some servers send logs of all levels until the client sets a
// level.
func (v *visitor) notifications() {
	v.check("logging", func(t *testing.T, ctx context.Context) {
		at := func(level protocol.LoggingLevel, want ...string) {
			require.NoError(t, v.c.SetLogLevel(ctx, level))
			v.returns(t, "work", nil, "done")
			v.host.expect(t, ctx, want...)
		}
		at(protocol.LevelInfo, `log info "told at info"`)
		at(protocol.LevelError)
		at(protocol.LevelDebug, `log debug "told at debug"`, `log info "told at info"`)
		require.NoError(t, v.c.SetLogLevel(ctx, protocol.LevelEmergency))
	})
	v.check("progress", func(t *testing.T, ctx context.Context) {
		var steps []float64
		_, err := v.c.CallTool(ctx, "work", nil, client.OnProgress(func(p *protocol.ProgressParams) {
			steps = append(steps, p.Progress)
		}))
		require.NoError(t, err)
		require.Equal(t, []float64{1, 2, 3}, steps)
	})
}

func (v *visitor) read(t *testing.T, ctx context.Context, uri string, opts ...client.CallOption) protocol.ResourceContents {
	result, err := v.c.ReadResource(ctx, uri, opts...)
	require.NoError(t, err)
	require.Len(t, result.Contents, 1)
	return result.Contents[0]
}

func (v *visitor) resources() {
	v.check("resources/list, templates/list", func(t *testing.T, ctx context.Context) {
		var uris []string
		for r, err := range v.c.Resources(ctx) {
			require.NoError(t, err)
			uris = append(uris, r.URI)
		}
		require.ElementsMatch(t, []string{"test://counter", "test://guestbook", "test://menu", "test://photo", "test://safe"}, uris)
		for r, err := range v.c.Templates(ctx) {
			require.NoError(t, err)
			require.Equal(t, "test://rooms/{number}", r.URITemplate)
		}
	})
	v.check("resources/read: text, binary, template", func(t *testing.T, ctx context.Context) {
		menu := v.read(t, ctx, "test://menu")
		require.Equal(t, "Soup", *menu.Text)
		require.Equal(t, "text/plain", menu.MIMEType)
		require.Equal(t, "PNG", string(v.read(t, ctx, "test://photo").Blob[1:]))
		require.Equal(t, `{"number":"7"}`, *v.read(t, ctx, "test://rooms/7").Text)
	})
	if v.version == modern {
		v.check("a resource that may be cached", func(t *testing.T, ctx context.Context) {
			require.Equal(t, "1", *v.read(t, ctx, "test://counter").Text)
			require.Equal(t, "1", *v.read(t, ctx, "test://counter").Text)
			require.Equal(t, "2", *v.read(t, ctx, "test://counter", client.Fresh()).Text)
		})
	}
}

func (v *visitor) prompts() {
	v.check("prompts/list, prompts/get", func(t *testing.T, ctx context.Context) {
		var names []string
		for p, err := range v.c.Prompts(ctx) {
			require.NoError(t, err)
			names = append(names, p.Name)
			if p.Name == "greet" {
				require.True(t, *p.Arguments[0].Required)
				require.Equal(t, "style", p.Arguments[1].Name)
			}
		}
		require.ElementsMatch(t, []string{"breakfast", "greet", "lunch", "welcome"}, names)
		result, err := v.c.GetPrompt(ctx, "greet", map[string]string{"name": "Ann", "style": "formal"})
		require.NoError(t, err)
		require.Equal(t, []protocol.PromptMessage{
			{Role: "user", Content: &protocol.TextContent{Text: "Greet Ann, formal"}},
			{Role: "assistant", Content: &protocol.TextContent{Text: "I do."}},
		}, result.Messages)
	})
	v.check("completion", func(t *testing.T, ctx context.Context) {
		greet := protocol.CompletionRef{Type: protocol.RefPrompt, Name: "greet"}
		got, err := v.c.Complete(ctx, greet, "style", "f", nil)
		require.NoError(t, err)
		require.Equal(t, []string{"formal", "friendly"}, got.Values)
		if v.since("2025-06-18") {
			got, err = v.c.Complete(ctx, greet, "style", "f", map[string]string{"name": "Ann"})
			require.NoError(t, err)
			require.Equal(t, []string{"formal"}, got.Values)
		}
		rooms := protocol.CompletionRef{Type: protocol.RefResource, URI: "test://rooms/{number}"}
		got, err = v.c.Complete(ctx, rooms, "number", "1", nil)
		require.NoError(t, err)
		require.Equal(t, []string{"10", "11"}, got.Values)
	})
}

// changes checks that changes reach the handlers and the subscriptions.
func (v *visitor) changes() {
	lists := []string{"tools", "prompts", "resources"}
	change := func(t *testing.T, ctx context.Context, list string) {
		_, err := v.c.CallTool(ctx, "change", object{"list": list})
		require.NoError(t, err)
	}
	v.check("changed lists reach the handlers", func(t *testing.T, ctx context.Context) {
		for _, list := range lists {
			change(t, ctx, list)
			v.host.expect(t, ctx, list)
		}
		v.returns(t, "extra1", nil, "here")
	})
	v.check("changed lists reach a subscription", func(t *testing.T, ctx context.Context) {
		all := protocol.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
		sub, err := v.c.Listen(ctx, all)
		require.NoError(t, err)
		for i, list := range lists {
			change(t, ctx, list)
			got, err := sub.Next(ctx)
			require.NoError(t, err)
			require.Equal(t, client.ChangeKind(i+1), got.Kind)
		}
		require.NoError(t, sub.Close())
	})
	v.check("an updated resource", func(t *testing.T, ctx context.Context) {
		sub, err := v.c.Subscribe(ctx, "test://guestbook")
		require.NoError(t, err)
		v.returns(t, "update_resource", nil, "touched")
		got, err := sub.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, client.Change{Kind: client.ResourceUpdated, URI: "test://guestbook"}, got)
		require.NoError(t, sub.Close())
		_, err = sub.Next(ctx)
		require.ErrorIs(t, err, transport.ErrClosed)
	})
}

// lifetimes checks the end of calls, streams and sessions.
func (v *visitor) lifetimes() {
	v.check("cancellation ends the call", func(t *testing.T, ctx context.Context) {
		one, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err := v.c.CallTool(one, "wait", nil, client.OnProgress(func(*protocol.ProgressParams) { cancel() }))
		require.ErrorIs(t, err, context.Canceled)
		v.returns(t, "cancelled", nil, "cancelled")
	})
	if v.transport != "http" {
		return
	}
	if v.version == latest {
		v.check("a closed stream is resumed", func(t *testing.T, _ context.Context) {
			_, before := v.recorder.state()
			v.returns(t, "resume", nil, "still here")
			_, after := v.recorder.state()
			require.NotEqual(t, before, after)
		})
	}
	if v.version != modern {
		v.check("an expired session is replaced", func(t *testing.T, ctx context.Context) {
			before, _ := v.recorder.state()
			v.recorder.endSession(t, ctx)
			v.returns(t, "add", sum{1, 2}, `{"sum":3}`)
			after, _ := v.recorder.state()
			require.NotEqual(t, before, after)
		})
	}
}

// A host answers the server's requests and records its notifications.
type host struct {
	answers  chan *protocol.ElicitResult // the next answers of the user
	asked    chan *protocol.ElicitParams
	pages    chan string // the URLs that the user was asked to open
	prompts  chan *protocol.CreateMessageParams
	received chan string // the notifications
}

func newHost() *host {
	return &host{
		answers: make(chan *protocol.ElicitResult, 10), asked: make(chan *protocol.ElicitParams, 100),
		pages: make(chan string, 100), prompts: make(chan *protocol.CreateMessageParams, 100), received: make(chan string, 100),
	}
}

// accept makes the user fill in the next form.
func (h *host) accept(content string) {
	h.answers <- &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(content)}
}

// Elicit returns the next answer.
func (h *host) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	h.asked <- p
	select {
	case answer := <-h.answers:
		return answer, nil
	case <-ctx.Done():
		h.received <- "question cancelled"
		return nil, context.Cause(ctx)
	}
}

// ElicitURL records the URL and accepts.
func (h *host) ElicitURL(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	h.pages <- p.URL
	return &protocol.ElicitResult{Action: protocol.ElicitAccept}, nil
}

// Sample returns the text of the first message.
func (h *host) Sample(_ context.Context, p *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	h.prompts <- p
	text, ok := p.Messages[0].Content[0].(*protocol.TextContent)
	if !ok {
		return nil, fmt.Errorf("the message is a %T", p.Messages[0].Content[0])
	}
	return &protocol.CreateMessageResult{Role: "assistant", Model: "m", StopReason: "endTurn",
		Content: protocol.SamplingContents{&protocol.TextContent{Text: "echo of " + text.Text}}}, nil
}

// Roots returns one root.
func (h *host) Roots(context.Context) ([]protocol.Root, error) {
	return []protocol.Root{{URI: "file:///home", Name: "home"}}, nil
}

// Log records a log message.
func (h *host) Log(_ context.Context, p *protocol.LoggingMessageParams) {
	h.received <- fmt.Sprintf("log %s %s", p.Level, p.Data)
}

// ToolsChanged records a change of the tools.
func (h *host) ToolsChanged(context.Context) { h.received <- "tools" }

// PromptsChanged records a change of the prompts.
func (h *host) PromptsChanged(context.Context) { h.received <- "prompts" }

// ResourcesChanged records a change of the resources.
func (h *host) ResourcesChanged(context.Context) { h.received <- "resources" }

// ElicitationComplete records that the user has finished at a URL.
func (h *host) ElicitationComplete(_ context.Context, id string) { h.received <- "complete " + id }

// expect waits for as many notifications as want has, and checks that they are those, in any order:
// servers with several streams may send them in any.
func (h *host) expect(t *testing.T, ctx context.Context, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case note := <-h.received:
			got = append(got, note)
		case <-ctx.Done():
			require.Fail(t, "a notification is missing", "received %q, want %q", got, want)
		}
	}
	slices.Sort(got)
	require.Equal(t, want, got)
}

// A recorder is an HTTP transport that records the session and the resumed streams of a client.
type recorder struct {
	mu      sync.Mutex
	url     string // of the last request; guarded by mu
	session string // guarded by mu
	last    string // the Last-Event-ID of the newest GET; guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.url = req.URL.String()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		r.session = id
	}
	if id := req.Header.Get("Last-Event-ID"); id != "" {
		r.last = id
	}
	return resp, nil
}

func (r *recorder) state() (session, last string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session, r.last
}

// endSession ends the session without the client's knowledge.
func (r *recorder) endSession(t *testing.T, ctx context.Context) {
	session, _ := r.state()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, r.url, nil)
	require.NoError(t, err)
	req.Header.Set("Mcp-Session-Id", session)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 2, resp.StatusCode/100, resp.Status)
}
