package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

// A desk is a service that says which replica it is on.
type desk struct {
	_ struct {
		Today mcpkit.Resource `uri:"notes://today"`
	}
	replica string

	started  chan struct{} // a call of Work has begun
	finish   chan struct{} // lets it go on
	stopped  chan error    // why it was cancelled
	question atomic.Int64
}

// Where returns the replica.
func (d *desk) Where() string { return d.replica }

// Today returns what is on today.
func (d *desk) Today() string { return "nothing" }

type colour struct {
	Name string `json:"name"`
}

// Ask asks the user for a colour.
func (d *desk) Ask(ctx context.Context) (string, error) {
	d.question.Add(1)
	c, err := mcpkit.Elicit[colour](ctx, "Which colour?")
	return d.replica + ": " + c.Name, err
}

// Work reports progress and waits.
func (d *desk) Work(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "begun")
	d.started <- struct{}{}
	select {
	case <-d.finish:
		call.Progress(2, 2, "done")
		return d.replica, nil
	case <-ctx.Done():
		d.stopped <- context.Cause(ctx)
		return "", ctx.Err()
	}
}

// A replicaUnderTest is one replica of a fleet in memory.
type replicaUnderTest struct {
	t       *testing.T
	desk    *desk
	srv     *mcpkit.Server
	handler *Handler
	web     *httptest.Server
}

var fleetKey = []byte(strings.Repeat("k", 32))

// replicas starts n replicas that share an engine.
func replicas(t *testing.T, n int, opts *Options) []*replicaUnderTest {
	t.Helper()
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	all := make([]*replicaUnderTest, n)
	for i := range all {
		all[i] = startReplica(t, fmt.Sprintf("r%d", i), engine.Open(), fleetKey, opts)
	}
	return all
}

func startReplica(t *testing.T, name string, engine fleet.Engine, key []byte, opts *Options) *replicaUnderTest {
	t.Helper()
	d := &desk{replica: name, started: make(chan struct{}, 9), finish: make(chan struct{}), stopped: make(chan error, 9)}
	r := serveReplica(t, d, engine, key, opts)
	r.desk = d
	return r
}

// serveReplica starts a replica of a service.
func serveReplica(t *testing.T, service any, engine fleet.Engine, key []byte, opts *Options, more ...mcpkit.Option) *replicaUnderTest {
	t.Helper()
	r := &replicaUnderTest{t: t}
	var err error
	r.srv, err = mcpkit.New(service, append(more, mcpkit.Name("desk", "1"), mcpkit.StateKeys(key), mcpkit.Fleet(engine), mcpkit.Logger(slog.New(slog.DiscardHandler)))...)
	require.NoError(t, err)
	require.NoError(t, r.srv.Start(t.Context()))
	r.handler = NewHandler(r.srv, opts)
	r.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user := req.Header.Get("X-User"); user != "" {
			req = req.WithContext(oauth.NewContext(req.Context(), &oauth.Principal{Subject: user, Scopes: []string{"vault:read"}}))
		}
		r.handler.ServeHTTP(w, req)
	}))
	t.Cleanup(r.stop)
	return r
}

// stop ends the replica.
func (r *replicaUnderTest) stop() {
	r.handler.Close()
	r.web.CloseClientConnections()
	r.web.Close()
	require.NoError(r.t, r.srv.Close())
}

// at returns a client of another replica, with the same header fields.
func (c *client) at(r *replicaUnderTest) *client {
	d := *c
	d.url = r.web.URL
	return &d
}

const canElicit = `"capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}`

// open opens a session of version at r.
func (r *replicaUnderTest) open(version string, fields ...string) *client {
	r.t.Helper()
	c := (&testServer{t: r.t, url: r.web.URL}).client(fields...)
	resp := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,%s}}`, version, canElicit))
	require.Equal(r.t, http.StatusOK, resp.StatusCode, read(r.t, resp))
	c = c.with("Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", version)
	require.Equal(r.t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).StatusCode)
	return c
}

func tool(id int, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"progressToken":1}}}`, id, name)
}

// where requires that the replica answers a call of c.
func (c *client) where(r *replicaUnderTest) {
	c.t.Helper()
	resp := c.at(r).post(tool(4711, "where"))
	text := read(c.t, resp)
	require.Equal(c.t, http.StatusOK, resp.StatusCode, text)
	require.Contains(c.t, text, `"text":"`+r.desk.replica+`"`)
}

var legacyWithSessions = []string{"2025-03-26", "2025-06-18", "2025-11-25"}

func TestSessionsGoOnAtAnyReplica(t *testing.T) {
	for _, version := range legacyWithSessions {
		t.Run(version, func(t *testing.T) {
			all := replicas(t, 3, nil)
			c := all[0].open(version)
			for range 2 {
				for _, r := range all {
					c.where(r)
				}
			}
			all[0].stop()
			c.where(all[1])
			c.where(all[2])
		})
	}
}

func TestSessionsOfOthersAreNotFoundAtAnotherReplica(t *testing.T) {
	all := replicas(t, 2, nil)
	c := all[0].open("2025-11-25", "X-User", "ann")
	c.where(all[0])
	for _, other := range []string{"bob", ""} {
		resp := c.at(all[1]).with("X-User", other).post(tool(1, "where"))
		require.Equal(t, http.StatusNotFound, resp.StatusCode)
	}
	c.where(all[1])
	resp := c.at(all[1]).with("X-User", "bob").post(tool(1, "where"))
	require.Equal(t, http.StatusNotFound, resp.StatusCode, "also where there is a copy")
}

func TestDeletedSessionsEndAtAllReplicas(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	defer engine.Close()
	var all []*replicaUnderTest
	for i := range 3 {
		all = append(all, startReplica(t, fmt.Sprintf("r%d", i), engine.Open(), fleetKey, nil))
	}
	c := all[0].open("2025-11-25")
	c.where(all[1])
	stream := c.at(all[1]).get()
	require.Equal(t, http.StatusOK, stream.StatusCode)
	require.Equal(t, http.StatusNoContent, c.at(all[2]).send(http.MethodDelete, "").StatusCode)
	read(t, stream)                                                         // it ends
	all = append(all, startReplica(t, "new", engine.Open(), fleetKey, nil)) // which heard nothing
	for _, r := range all {
		require.Eventually(t, func() bool { return c.at(r).post(tool(1, "where")).StatusCode == http.StatusNotFound }, time.Minute, 10*time.Millisecond)
	}
}

// TestAnswersFindTheReplicaThatAsked sends the answer of a user to another replica than the one that
// runs the call.
func TestAnswersFindTheReplicaThatAsked(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			all := replicas(t, 3, nil)
			c := all[0].open(version)
			ev := eventsOf(t, c.at(all[1]).post(tool(7, "ask")))
			question := ev.next()
			if len(question.Data) == 0 {
				question = ev.next() // after priming
			}
			id := questionOf(t, question.Data)
			answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"name":"red"}}}`, id)
			require.Equal(t, http.StatusAccepted, c.at(all[2]).post(answer).StatusCode)
			require.Contains(t, ev.data(), "r1: red")
			require.EqualValues(t, 1, all[1].desk.question.Load())

			late := c.at(all[0]).post(answer)
			require.Equal(t, http.StatusAccepted, late.StatusCode, "late answers are dropped")
		})
	}
}

func questionOf(t *testing.T, message []byte) (id string) {
	t.Helper()
	_, rest, ok := strings.Cut(string(message), `"id":"`)
	require.True(t, ok, string(message))
	id, _, _ = strings.Cut(rest, `"`)
	return id
}

func TestCancellationFindsTheReplicaThatRunsTheCall(t *testing.T) {
	all := replicas(t, 2, nil)
	c := all[0].open("2025-11-25")
	c.post(tool(7, "work"))
	<-all[0].desk.started
	require.Equal(t, http.StatusAccepted, c.at(all[1]).post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`).StatusCode)
	select {
	case <-all[0].desk.stopped:
	case <-time.After(time.Minute):
		require.Fail(t, "the call was not cancelled")
	}
}

func TestMessagesThatConcernNoOtherReplicaCostThemLittle(t *testing.T) {
	all := replicas(t, 2, nil)
	c, other := all[0].open("2025-11-25"), all[1].srv.Fleet()
	var missed atomic.Bool
	defer other.OnMissed(func() { missed.Store(true) })()
	heard := make(chan int, 9)
	defer other.On(kindCancel, func(_ string, payload []byte) { heard <- len(payload) })()
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"` + strings.Repeat("x", 1<<20) + `"}}`
	for range 3 {
		require.Equal(t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","id":"!!!!!!!!!!!!-1","result":{}}`).StatusCode)
		require.Equal(t, http.StatusAccepted, c.post(fmt.Sprintf(cancel, `{}`)).StatusCode)
		require.Equal(t, http.StatusAccepted, c.post(fmt.Sprintf(cancel, `77`)).StatusCode)
		require.Less(t, <-heard, 100)
	}
	require.False(t, missed.Load())
}

// A stuckBus publishes nothing until it is closed.
type stuckBus struct {
	fleet.Engine
	closed chan struct{}
}

func (e stuckBus) Publish(context.Context, string, []byte) error {
	<-e.closed
	return nil
}

func TestAnswersAreRefusedWhenTooManyWaitForTheBus(t *testing.T) {
	bus := stuckBus{fleet.NewMemory(fleet.MemoryOptions{}), make(chan struct{})}
	r := startReplica(t, "r0", bus, fleetKey, nil)
	t.Cleanup(func() { close(bus.closed) })
	c := r.open("2025-11-25")
	answer := `{"jsonrpc":"2.0","id":"aaaaaaaaaaaa-1","result":"` + strings.Repeat("x", 3<<20) + `"}`
	for range 10 {
		require.Equal(t, http.StatusAccepted, c.post(answer).StatusCode)
	}
	resp := c.post(answer)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
}

// TestStreamsAreResumedAtAnotherReplica breaks the connection of a call and resumes its stream at
// another replica, once while the call runs and once when it is over.
func TestStreamsAreResumedAtAnotherReplica(t *testing.T) {
	all := replicas(t, 3, nil)
	c := all[0].open("2025-11-25")
	ctx, disconnect := context.WithCancel(t.Context())
	resp, err := c.do(ctx, http.MethodPost, tool(7, "work"))
	require.NoError(t, err)
	ev := eventsOf(t, resp)
	priming := ev.next()
	require.Contains(t, ev.data(), "begun")
	<-all[0].desk.started
	disconnect()
	_ = resp.Body.Close()

	first := eventsOf(t, c.at(all[2]).with("Last-Event-ID", priming.ID).get())
	require.Contains(t, first.data(), "begun")
	resumed := eventsOf(t, c.at(all[1]).with("Last-Event-ID", priming.ID).get())
	require.Contains(t, resumed.data(), "begun")
	first.end() // the client reads on elsewhere
	left := &known(all[2].handler, c.header.Get("Mcp-Session-Id")).out
	require.Eventually(t, func() bool {
		left.mu.Lock()
		defer left.mu.Unlock()
		return len(left.open) == 0
	}, time.Minute, time.Millisecond)
	close(all[0].desk.finish)
	done := resumed.next()
	require.Contains(t, string(done.Data), `"message":"done"`)
	require.Contains(t, resumed.data(), `"text":"r0"`)
	resumed.end()

	again := eventsOf(t, c.at(all[2]).with("Last-Event-ID", done.ID).get())
	require.Contains(t, again.data(), `"text":"r0"`)
	again.end()
}

// TestCallsOfADeadReplicaAreAnswered kills the replica that runs a call. A client that resumes the
// stream elsewhere gets an error instead of waiting for ever.
func TestCallsOfADeadReplicaAreAnswered(t *testing.T) {
	for name, reading := range map[string]bool{"before the client resumes": false, "while the client reads elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			all := replicas(t, 2, nil)
			c := all[0].open("2025-11-25")
			ev := eventsOf(t, c.post(tool(7, "work")))
			ev.next()
			begun := ev.next()
			<-all[0].desk.started
			die := func() { require.NoError(t, all[0].srv.Fleet().Close()) } // no sign of life any more
			if !reading {
				die()
			}
			since := time.Now()
			resumed := eventsOf(t, c.at(all[1]).with("Last-Event-ID", begun.ID).get())
			if reading {
				die()
				stream, _, _ := strings.Cut(begun.ID, "-")
				known(all[1].handler, c.header.Get("Mcp-Session-Id")).out.wakeNamed(stream) // as it does every 3 s
			}
			text := resumed.data()
			require.Contains(t, text, `"id":7,"error"`)
			require.Contains(t, text, "the process that ran the request has ended")
			resumed.end()
			require.Less(t, time.Since(since), lookAway, "at once: the replica that tells the client may end, too")
			close(all[0].desk.finish)
		})
	}
}

// TestEventsOfOtherSessionsAreNotReadable names a stream of another session.
func TestEventsOfOtherSessionsAreNotReadable(t *testing.T) {
	t.Parallel()
	all := replicas(t, 2, nil)
	c, other := all[0].open("2025-11-25"), all[0].open("2025-11-25")
	ev := eventsOf(t, c.post(tool(7, "work")))
	priming := ev.next()
	<-all[0].desk.started
	close(all[0].desk.finish)
	require.Contains(t, ev.data(), "begun")

	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	resp, err := other.at(all[1]).with("Content-Type", "", "Last-Event-ID", priming.ID).do(ctx, http.MethodGet, "")
	if err == nil {
		body := make([]byte, 1)
		_, err = resp.Body.Read(body)
		_ = resp.Body.Close()
	}
	require.ErrorIs(t, err, context.DeadlineExceeded, "nothing is sent")
	for _, bad := range []string{"1-0", "../x-1", strings.Repeat("a", 21) + "-1", "r-", "-"} {
		resp := c.at(all[1]).with("Last-Event-ID", bad).get()
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, bad)
	}
}

func TestChangesReachTheReplicaThatTheClientListensTo(t *testing.T) {
	all := replicas(t, 3, nil)
	c := all[0].open("2025-11-25")
	for _, r := range all {
		c.where(r) // each knows the session, but only one notifies the client
	}
	first := eventsOf(t, c.at(all[0]).get())
	first.next() // priming
	ev := eventsOf(t, c.at(all[2]).get())
	ev.next()
	first.end() // the second stream replaces it
	subscribed := c.at(all[1]).post(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"notes://today"}}`)
	require.Contains(t, read(t, subscribed), `"result"`)
	require.Eventually(t, func() bool { return all[2].srv.ResourceUpdated("notes://today") }, time.Minute, time.Millisecond)
	require.Contains(t, ev.data(), "resources/updated")
	for _, r := range all {
		r.srv.ResourceUpdated("notes://today")
		require.Contains(t, ev.data(), "resources/updated")
	}
	require.NoError(t, all[0].srv.Add(mcpkit.NewTool("more", func() {})))
	require.Contains(t, ev.data(), "tools/list_changed", "each change is told once")
}

// TestClientsThatListenElsewhereAreToldThatAllMayHaveChanged stops the replica that notifies the
// client.
func TestClientsThatListenElsewhereAreToldThatAllMayHaveChanged(t *testing.T) {
	all := replicas(t, 2, nil)
	c := all[0].open("2025-11-25")
	ev := eventsOf(t, c.get())
	last := ev.next().ID
	subscribed := c.at(all[1]).post(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"notes://today"}}`)
	require.Contains(t, read(t, subscribed), `"result"`)
	all[0].stop()
	all[1].srv.ResourceUpdated("notes://today") // no replica notifies the client
	ev = eventsOf(t, c.at(all[1]).with("Last-Event-ID", last).get())
	ev.next() // priming
	require.Contains(t, ev.data(), "tools/list_changed")
	require.Contains(t, ev.data(), "resources/list_changed")
	require.Contains(t, ev.data(), "resources/updated")
}

func TestModernListenersHearOfChangesAtOtherReplicas(t *testing.T) {
	all := replicas(t, 2, nil)
	c := (&testServer{t: t, url: all[0].web.URL}).client("MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	ev := eventsOf(t, c.post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["notes://today"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`))
	require.Contains(t, ev.data(), "acknowledged")
	all[1].srv.ResourceUpdated("notes://today")
	require.Contains(t, ev.data(), "notifications/resources/updated")
}

func TestLogLevelsMoveWithTheSession(t *testing.T) {
	all := replicas(t, 2, nil)
	c := all[0].open("2025-11-25")
	for _, test := range []struct{ level, want string }{{"error", `{"logLevel":5}`}, {"info", ""}} { // info is the default
		resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"` + test.level + `"}}`)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		c.where(all[1])
		require.Eventually(t, func() bool {
			_, changes := all[1].srv.StoreSession(known(all[1].handler, c.header.Get("Mcp-Session-Id")).Session)
			return test.want == string(changes)
		}, time.Minute, time.Millisecond)
	}
}

// TestReplicasWithOtherKeysShareNothing starts a replica with another key: it can neither read the
// sessions of the others nor tell them anything.
func TestReplicasWithOtherKeysShareNothing(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	defer engine.Close()
	one := startReplica(t, "one", engine.Open(), fleetKey, nil)
	two := startReplica(t, "two", engine.Open(), []byte(strings.Repeat("x", 32)), nil)
	c := one.open("2025-11-25")
	resp := c.at(two).post(tool(1, "where"))
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	c.where(one)
}

func TestRecordsOfSessionsAreLimited(t *testing.T) {
	all := replicas(t, 2, &Options{MaxSessions: 2})
	for i, want := range []string{`"result"`, `"result"`, `"error"`} {
		c := all[i%2].open("2025-11-25")
		resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`)
		require.Contains(t, read(t, resp), want)
	}
}

// A downEngine fails while it is down.
type downEngine struct {
	fleet.Engine
	down atomic.Bool
}

var errDown = errors.New("connection refused")

func (e *downEngine) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	if e.down.Load() {
		return fleet.Record{}, errDown
	}
	return e.Engine.Get(ctx, set, key)
}

func (e *downEngine) Count(ctx context.Context, set, group string) (int, error) {
	if e.down.Load() {
		return 0, errDown
	}
	return e.Engine.Count(ctx, set, group)
}

func (e *downEngine) Update(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	if e.down.Load() {
		return 0, errDown
	}
	return e.Engine.Update(ctx, set, r)
}

// TestWithoutTheEngineOnlyWhatNeedsItFails takes the engine away and brings it back.
func TestWithoutTheEngineOnlyWhatNeedsItFails(t *testing.T) {
	store := fleet.NewMemory(fleet.MemoryOptions{})
	defer store.Close()
	engine := &downEngine{Engine: store.Open()}
	one := startReplica(t, "one", engine, fleetKey, nil)
	two := startReplica(t, "two", store.Open(), fleetKey, nil)
	here, there := one.open("2025-11-25"), two.open("2025-11-25")
	engine.down.Store(true)

	here.where(one)
	modern := (&testServer{t: t, url: one.web.URL}).client("MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "where")
	resp := modern.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"where","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`)
	require.Equal(t, http.StatusOK, resp.StatusCode, read(t, resp))

	resp = there.at(one).post(tool(1, "where"))
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	resp = here.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`)
	require.Contains(t, read(t, resp), `"error"`)
	require.Error(t, one.srv.Fleet().Health())

	engine.down.Store(false)
	require.Eventually(t, func() bool {
		return there.at(one).post(tool(1, "where")).StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
	require.NoError(t, one.srv.Fleet().Health())
}

// TestAStreamWithoutMessagesOfADeadReplicaCannotBeResumed kills the replica that runs a call before
// it has sent a message.
func TestAStreamWithoutMessagesOfADeadReplicaCannotBeResumed(t *testing.T) {
	all := replicas(t, 2, nil)
	c := all[0].open("2025-11-25")
	gone := fleet.New(fleet.NewMemory(fleet.MemoryOptions{}), fleet.Options{}).Replica()
	resp := c.at(all[1]).with("Last-Event-ID", gone+"abcdefgh_1-0").get()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, read(t, resp), "the process that ran the request has ended")
}

// A vault is a service whose resource needs a scope.
type vault struct {
	_ struct {
		Gold mcpkit.Resource `uri:"vault://gold" scopes:"vault:read"`
	}
}

func (*vault) Gold() string { return "much" }

func TestUpdatesThatNeedScopesReachSessionsOfAllReplicas(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	var all [2]*replicaUnderTest
	for i := range all {
		all[i] = serveReplica(t, &vault{}, engine.Open(), fleetKey, nil, mcpkit.Authenticated())
	}
	c := all[0].open("2025-11-25", "X-User", "ann")
	subscribed := c.post(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"vault://gold"}}`)
	require.Contains(t, read(t, subscribed), `"result"`)
	ev := eventsOf(t, c.at(all[1]).get()) // the first request of the session there
	ev.next()                             // priming
	require.Eventually(t, func() bool { return all[1].srv.ResourceUpdated("vault://gold") }, 10*time.Second, 10*time.Millisecond)
	for !strings.Contains(ev.data(), "resources/updated") {
	}
}
