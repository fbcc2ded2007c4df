package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestSplitCommand(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
		err  string
	}{
		{line: "server", want: []string{"server"}},
		{line: "  server  --flag\tx ", want: []string{"server", "--flag", "x"}},
		{line: `server "two words" 'it is'`, want: []string{"server", "two words", "it is"}},
		{line: `server a"b c"d`, want: []string{"server", "ab cd"}},
		{line: `server ""`, want: []string{"server", ""}},
		{line: `server a\ b \"`, want: []string{"server", "a b", `"`}},
		{line: `server "a\n\"b" 'c\d'`, want: []string{"server", `a\n"b`, `c\d`}},
		{line: "server $HOME; rm * | x && y `z`", want: []string{"server", "$HOME;", "rm", "*", "|", "x", "&&", "y", "`z`"}},
		{line: `server "open`, err: `client: the command line "server \"open" ends inside quotes`},
		{line: `server \`, err: `client: the command line "server \\" ends inside quotes`},
		{line: " ", err: "client: the target is empty; write a URL, unix:PATH or a command line"},
	} {
		got, err := splitCommand(test.line, true)
		if test.err != "" {
			require.EqualError(t, err, test.err)
			continue
		}
		require.NoError(t, err, test.line)
		require.Equal(t, test.want, got, test.line)
	}
	got, err := splitCommand(`C:\bin\server.exe "a b"`, false)
	require.NoError(t, err)
	require.Equal(t, []string{`C:\bin\server.exe`, "a b"}, got)
}

func TestTargets(t *testing.T) {
	for _, test := range []struct {
		target any
		err    string
	}{
		{"ftp://x/mcp", `client: "ftp://x/mcp": the scheme must be http, https, ws or wss`},
		{"http:///mcp", `client: "http:///mcp" has no host`},
		{"https://ann:secret@x/mcp", "client: the URL of the server contains a user or a password; pass credentials with Header or HTTPClient"},
		{42, "client: cannot dial a int; want a URL, unix:PATH or a command line as a string, a client.Target, a transport.Handler or an io.ReadWriteCloser"},
		{"", "client: the target is empty; write a URL, unix:PATH or a command line"},
		{"unix:", `client: "unix:" has no path of a socket; write unix:/path/of/the.sock`},
		{"unix://host/x", `client: "unix://host/x" has no path of a socket; write unix:/path/of/the.sock`},
		{"unix:/no/such.sock", "client: dial unix /no/such.sock: connect: no such file or directory"},
		{"unix:///no/such.sock", "client: dial unix /no/such.sock: connect: no such file or directory"},
	} {
		_, err := Dial(t.Context(), test.target)
		require.EqualError(t, err, test.err)
	}
}

func TestDefaultsAreAddedToAnAcceptedForm(t *testing.T) {
	const schema = `{"type":"object","properties":{"s":{"type":"string","default":"d"},"n":{"type":"integer","default":1},"b":{"type":"boolean"}}}`
	for content, want := range map[string]string{
		``:                      `{"s":"d","n":1}`,
		`null`:                  `{"s":"d","n":1}`,
		` {"s":"x","b":true} `:  `{"s":"x","b":true,"n":1}`,
		`{"s":null,"other":[]}`: `{"s":null,"other":[],"n":1}`,
	} {
		got, err := withDefaults([]byte(schema), []byte(content))
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
	for _, bad := range []string{`[]`, `{`, `"x"`} {
		_, err := withDefaults([]byte(schema), []byte(bad))
		require.EqualError(t, err, "the content of the response is not a JSON object")
	}
	got, err := withDefaults(nil, nil)
	require.NoError(t, err)
	require.Equal(t, "{}", string(got))
}

func TestDeadlines(t *testing.T) {
	errOver := errors.New("over")
	begin := func() (context.Context, *deadline, func() time.Duration) {
		begun := time.Now()
		ctx, d := withDeadline(context.Background(), time.Second, errOver)
		return ctx, d, func() time.Duration {
			<-ctx.Done()
			require.Equal(t, errOver, context.Cause(ctx))
			return time.Since(begun)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		_, _, lasted := begin()
		require.Equal(t, time.Second, lasted())

		_, d, lasted := begin()
		time.Sleep(900 * time.Millisecond)
		d.extend()
		require.Equal(t, 1900*time.Millisecond, lasted(), "progress restarts the time")

		running, longer, lasted := begin()
		go func() {
			for running.Err() == nil {
				time.Sleep(100 * time.Millisecond)
				longer.extend()
			}
		}()
		require.Equal(t, 10*time.Second, lasted(), "but at most ten times")

		_, d, lasted = begin()
		time.Sleep(300 * time.Millisecond)
		d.hold()
		d.hold()
		time.Sleep(time.Hour)
		d.release()
		time.Sleep(time.Hour)
		d.release()
		require.Equal(t, 2*time.Hour+time.Second, lasted(), "the time does not run while it is held")

		ctx, d, _ := begin()
		d.stop()
		d.hold()
		d.extend()
		d.release()
		time.Sleep(time.Hour)
		require.Equal(t, context.Canceled, context.Cause(ctx), "a stopped deadline does nothing")

		ctx, d = withDeadline(context.Background(), 0, nil)
		d.extend()
		d.hold()
		d.release()
		require.NoError(t, ctx.Err(), "there is no limit")
		d.stop()
	})
}

func TestResultsAreCachedForTheTimeThatTheServerAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k cache
		put := func(key, raw string) bool {
			k.put(key, []byte(raw), k.mark())
			_, ok := k.get(key)
			return ok
		}
		require.True(t, put("a", `{"ttlMs":1000}`))
		for _, raw := range []string{`{}`, `{"ttlMs":0}`, `{"ttlMs":-5}`, `{"ttlMs":"9"}`, `{"ttlMs":null}`, `[]`} {
			require.False(t, put("no", raw), raw)
		}
		time.Sleep(999 * time.Millisecond)
		_, ok := k.get("a")
		require.True(t, ok)
		time.Sleep(time.Millisecond)
		_, ok = k.get("a")
		require.False(t, ok)
		require.Zero(t, k.bytes)

		require.True(t, put("far", `{"ttlMs":1e300}`))
		time.Sleep(24 * time.Hour)
		_, ok = k.get("far")
		require.False(t, ok, "results stay in the cache for at most a day")

		mark := k.mark()
		k.drop("tools")
		k.put("tools/list", []byte(`{"ttlMs":1000}`), mark)
		_, ok = k.get("tools/list")
		require.False(t, ok, "the result may be older than the change")

		for i := range 3 * maxCached {
			put(string(rune(i)), `{"ttlMs":1000}`)
		}
		require.Len(t, k.entries, maxCached)
		require.LessOrEqual(t, k.bytes, maxCachedBytes)
		k.drop("")
		require.Zero(t, k.bytes)

		off := cache{off: true}
		off.put("a", []byte(`{"ttlMs":1000}`), cacheMark{})
		_, ok = off.get("a")
		require.False(t, ok)
	})
}

// later answers server/discover. It answers calls by requiring input for some rounds, and then with
// an empty result.
type later struct{ rounds int }

func (l *later) ServeRPC(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	switch {
	case req.IsNotification():
		return nil
	case req.Method == protocol.MethodDiscover:
		return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)}
	case l.rounds == 0:
		return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"resultType":"complete","content":[]}`)}
	}
	l.rounds--
	return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"resultType":"input_required","requestState":""}`)}
}

// A pager answers every request for a list with a large page, after which others follow.
type pager struct{ pages int }

func (p *pager) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if req.IsNotification() || req.Method == protocol.MethodDiscover {
		return (&later{}).ServeRPC(ctx, req, peer)
	}
	p.pages++
	page := fmt.Sprintf(`{"tools":[],"nextCursor":"%d","x":"%s"}`, p.pages, strings.Repeat("x", maxListBytes/3))
	return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(page)}
}

func TestTheBytesOfAListAreLimited(t *testing.T) {
	p := &pager{}
	c, err := Dial(t.Context(), p)
	require.NoError(t, err)
	var last error
	for _, last = range c.Tools(t.Context()) {
	}
	require.EqualError(t, last, "client: tools/list: the list is larger than 67108864 bytes")
	require.Equal(t, 3, p.pages)
	require.NoError(t, c.Close())
}

func TestRetriesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Dial(context.Background(), &later{rounds: 4})
		require.NoError(t, err)
		begun := time.Now()
		_, err = c.CallTool(context.Background(), "x", nil)
		require.NoError(t, err)
		require.Equal(t, (100+200+400+800)*time.Millisecond, time.Since(begun))
		require.NoError(t, c.Close())
	})
}

// A listener answers subscriptions/listen. It answers server/discover as later does.
type listener func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer)

func (l listener) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if req.Method == protocol.MethodDiscover {
		return (&later{}).ServeRPC(ctx, req, peer)
	}
	l(ctx, req, peer)
	<-ctx.Done()
	return &jsonrpc.Response{ID: req.ID}
}

// telling returns the _meta of the subscription req, and a function that sends notifications to its
// peer.
func telling(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) (meta protocol.Meta, tell func(method string, params any)) {
	return protocol.Meta{protocol.MetaSubscriptionID: json.RawMessage(req.ID.String())}, func(method string, params any) {
		n, _ := jsonrpc.NewNotification(method, params)
		_ = peer.Notify(ctx, n)
	}
}

// flood acknowledges subscriptions and then sends n changes of each kind, and unknown
// notifications.
type flood struct{ n int }

func (f *flood) listen(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) {
	meta, tell := telling(ctx, req, peer)
	tell(protocol.NotificationSubscriptionsAcknowledged, &protocol.SubscriptionsAcknowledgedParams{
		Notifications: protocol.SubscriptionFilter{ResourceSubscriptions: []string{"x"}, ToolsListChanged: true}, Meta: meta})
	for i := range f.n {
		tell(protocol.NotificationResourcesUpdated, &protocol.ResourceUpdatedParams{URI: strings.Repeat("x", i), Meta: meta})
		tell(protocol.NotificationToolsListChanged, &protocol.EmptyParams{Meta: meta})
		tell("notifications/unheard/of", nil)
	}
}

func TestNotificationFloodIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c, err := Dial(context.Background(), listener((&flood{n: 5000}).listen), Logger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		s, err := c.Subscribe(context.Background(), "x")
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, s.pending.updated, maxChanges)
		require.Equal(t, maxWarnings, strings.Count(log.String(), "an update was dropped"))
		require.NoError(t, s.Close())
		count := 0
		for _, err := range s.All(context.Background()) {
			if err != nil {
				require.Equal(t, transport.ErrClosed, err)
				break
			}
			count++
		}
		require.Equal(t, maxChanges+1, count)
		require.NoError(t, c.Close())
	})
}

// unnamed acknowledges every subscription, and then sends changes without the ID of a subscription.
func unnamed(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) {
	meta, tell := telling(ctx, req, peer)
	tell(protocol.NotificationToolsListChanged, nil) // before the acknowledgement
	tell(protocol.NotificationSubscriptionsAcknowledged, &protocol.SubscriptionsAcknowledgedParams{
		Notifications: protocol.SubscriptionFilter{ResourceSubscriptions: []string{"x"}, PromptsListChanged: true}, Meta: meta})
	for _, uri := range []string{"x", "y"} {
		tell(protocol.NotificationResourcesUpdated, &protocol.ResourceUpdatedParams{URI: uri})
	}
	tell(protocol.NotificationPromptsListChanged, nil)
	tell(protocol.NotificationResourcesListChanged, nil)
}

func TestChangesWithoutSubscriptionReachAllSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Dial(context.Background(), listener(unnamed))
		require.NoError(t, err)
		s, err := c.Listen(context.Background(), protocol.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourceSubscriptions: []string{"x"}})
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, s.Close())
		var got []Change
		for change, err := range s.All(context.Background()) {
			if err != nil {
				require.Equal(t, transport.ErrClosed, err)
				break
			}
			got = append(got, change)
		}
		require.Equal(t, []Change{{Kind: PromptsChanged}, {Kind: ResourceUpdated, URI: "x"}}, got)
		require.NoError(t, c.Close())
	})
}

// belated acknowledges its first subscription after a second, and sends changes only for the second
// one: it does not know of the first when they happen.
type belated struct{ listens atomic.Int32 }

func (b *belated) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if req.Method == protocol.MethodDiscover {
		return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)}
	}
	first := b.listens.Add(1) == 1
	if first {
		time.Sleep(time.Second)
	}
	meta, tell := telling(ctx, req, peer)
	tell(protocol.NotificationSubscriptionsAcknowledged, &protocol.SubscriptionsAcknowledgedParams{
		Notifications: protocol.SubscriptionFilter{ToolsListChanged: true}, Meta: meta})
	if !first {
		time.Sleep(2 * time.Second) // the change happened before, and takes a while to arrive
		tell(protocol.NotificationToolsListChanged, &protocol.EmptyParams{Meta: meta})
	}
	<-ctx.Done()
	return &jsonrpc.Response{ID: req.ID}
}

type countsTools struct{ n atomic.Int32 }

func (c *countsTools) ToolsChanged(context.Context) { c.n.Add(1) }

func TestHandlersHearOfChangesThatTheirOwnSubscriptionIsTooLateFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handler countsTools
		c, err := Dial(context.Background(), &belated{}, Handlers(&handler))
		require.NoError(t, err)
		synctest.Wait() // the subscription for the handler is sent
		_, err = c.Listen(context.Background(), protocol.SubscriptionFilter{ToolsListChanged: true})
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, int32(1), handler.n.Load())
		require.NoError(t, c.Close())
	})
}

func FuzzDefaults(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"default":1}}}`), []byte(`{"b":2}`))
	f.Fuzz(func(t *testing.T, schema, content []byte) {
		if !json.Valid(schema) {
			return
		}
		got, err := withDefaults(schema, content)
		if err == nil {
			require.True(t, json.Valid(got), "%s", got)
		}
	})
}

func TestAnInboxKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b inbox
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var got []int
		first := make(chan struct{})
		require.True(t, b.push(log, func() { <-first; got = append(got, 0) }, 1, nil))
		synctest.Wait()
		for i := 1; i < 5; i++ {
			require.True(t, b.push(log, func() {
				got = append(got, i)
				switch i {
				case 2:
					panic("oops")
				case 3:
					runtime.Goexit()
				}
			}, 1, nil))
		}
		require.Empty(t, got)
		close(first)
		b.close(t.Context())
		require.Equal(t, []int{0, 1, 2, 3, 4}, got)
		require.Contains(t, out.String(), `msg="client: a handler panicked" panic=oops`)
		require.True(t, b.push(log, func() { t.Error("nothing is begun after the call") }, 1, nil))
		synctest.Wait()
	})
}

func TestAnInboxIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b inbox
		gate := make(chan struct{})
		require.True(t, b.push(slog.Default(), func() { <-gate }, 1, nil))
		synctest.Wait()
		for range maxInbox {
			require.True(t, b.push(slog.Default(), func() {}, 1, nil))
		}
		require.False(t, b.push(slog.Default(), func() {}, 1, nil))
		for range 2 { // the second comes after the last
			require.True(t, b.push(slog.Default(), func() {}, 1, func() {}))
		}
		require.Len(t, b.queue, maxInbox+1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.close(ctx) // returns although a handler hangs
		close(gate)
	})
}

func TestOriginsAreComparedAfterNormalization(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"http://localhost/a", "http://localhost/b?c", true},
		{"http://localhost", "http://LocalHost:80", true},
		{"HTTPS://mcp.example.com:443", "https://mcp.example.com", true},
		{"http://[::1]:8080", "http://[::1]:8080/", true},
		{"http://[::1]", "http://[::1]:80/", true},
		{"http://localhost", "https://localhost", false},
		{"http://localhost", "http://localhost:443", false},
		{"https://localhost", "https://localhost:80", false},
		{"http://localhost:80", "http://localhost:8080", false},
		{"http://localhost", "http://localhost.", false},
		{"http://localhost", "http://localhost.evil.example", false},
		{"http://localhost", "http://evil.example/@localhost", false},
		{"http://127.0.0.1", "http://127.0.0.1.nip.io", false},
	} {
		t.Run(test.a+" "+test.b, func(t *testing.T) {
			a, err := url.Parse(test.a)
			require.NoError(t, err)
			b, err := url.Parse(test.b)
			require.NoError(t, err)
			require.Equal(t, test.want, sameOrigin(a, b))
			require.Equal(t, test.want, sameOrigin(b, a))
		})
	}
}

func TestSchemasThatReferToEachOtherAgainAndAgainAreNotChecked(t *testing.T) {
	var defs strings.Builder
	for i := range 40 {
		fmt.Fprintf(&defs, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	s := newOutputSchema([]byte(`{"$ref":"#/$defs/a0","$defs":{`+defs.String()+`"a40":{"multipleOf":2}}}`), false)
	_, err := s.check([]byte(`1`))
	require.ErrorIs(t, err, errSteps)
}

func TestOutputsAreNotCheckedIfThatIsExpensive(t *testing.T) {
	many := func(n int, item string) string { // item contains one %d
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(item, i)
		}
		return strings.Join(items, ",")
	}
	const steps = "the check takes too long"
	for _, test := range []struct {
		name, schema, output string
		err                  string
	}{
		{"a long enum for many values", `{"items":{"enum":[` + many(50_000, `"v%d"`) + `]}}`, `[` + many(2_000, `"x%d"`) + `]`, steps},
		{"many required properties of many objects", `{"items":{"required":[` + many(50_000, `"v%d"`) + `]}}`, `[` + many(2_000, `{"x":%d}`) + `]`, steps},
		{"many dependent properties of many objects", `{"items":{"dependentRequired":{` + many(50_000, `"v%d":[]`) + `}}}`, `[` + many(2_000, `{"x":%d}`) + `]`, steps},
		{"many values", `{"items":{"minimum":1}}`, `[` + many(maxOutputSteps+1, "1%d") + `]`, steps},
		{"a large schema", `{"title":"` + strings.Repeat("x", maxOutputSchema) + `"}`, `{}`, "it is larger than 1048576 bytes"},
		{"a long number", `{"minimum":1,"minLength":0}`, strings.Repeat("1", 65), `the number "` + strings.Repeat("1", 40) + `" is too large`},
		{"a large exponent", `{"minimum":1,"minLength":0}`, `1e401`, `the number "1e401" is too large`},
		{"an enum", `{"items":{"enum":[` + many(200, `"v%d"`) + `]}}`, `[` + many(200, `"v%d"`) + `]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			faults, err := newOutputSchema([]byte(test.schema), false).check([]byte(test.output))
			if test.err == "" {
				require.NoError(t, err)
				require.Empty(t, faults)
				return
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}

// The largest patterns that fit into a schema take gigabytes and half a minute to compile.
func TestPatternsOfServersAreNotCompiled(t *testing.T) {
	pattern := strings.Repeat("(a|b)", 50_000)
	schema := fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","pattern":"%s"},"b":{"type":"integer"}}}`, pattern)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	faults, err := newOutputSchema([]byte(schema), false).check([]byte(`{"a":"x","b":"x"}`))
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, []string{`at "/b": got string, want integer`}, faults, "the other keywords are checked")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

func TestPatternsAreCheckedOnlyIfTheProgramTrustsTheServer(t *testing.T) {
	const combined = "it combines patterns with other keywords, and patterns of servers are ignored; see CheckPatterns"
	for _, test := range []struct {
		schema, output string
		ignored, fault string // why outputs are not checked, and the fault that CheckPatterns finds
		alwaysOK       bool
	}{
		{schema: `{"pattern":"^a"}`, output: `"b"`, fault: `at "": 'b' does not match pattern '^a'`},
		{schema: `{"properties":{"pattern":{"type":"string"}}}`, output: `{"pattern":"b"}`, alwaysOK: true},
		{schema: `{"not":{"pattern":"^a"}}`, output: `"b"`, ignored: combined, alwaysOK: true},
		{schema: `{"oneOf":[{"pattern":"^a"},{"pattern":"^b"}]}`, output: `"b"`, ignored: combined, alwaysOK: true},
		{schema: `{"patternProperties":{"^a":{"type":"string"}}}`, output: `{"a":1}`, ignored: combined, fault: `at "/a": got number, want string`},
	} {
		faults, err := newOutputSchema([]byte(test.schema), false).check([]byte(test.output))
		require.Empty(t, faults, test.schema)
		if test.ignored == "" {
			require.NoError(t, err, test.schema)
		} else {
			require.EqualError(t, err, test.ignored, test.schema)
		}
		faults, err = newOutputSchema([]byte(test.schema), true).check([]byte(test.output))
		require.NoError(t, err)
		if test.alwaysOK {
			require.Empty(t, faults, test.schema)
		} else {
			require.Equal(t, []string{test.fault}, faults)
		}
	}
}
