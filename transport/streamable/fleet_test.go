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
)

// A desk is a service.
type desk struct{}

// Where returns a place. It may log.
func (*desk) Where(*slog.Logger) string { return "here" }

// A deskReplica is one replica of the desk.
type deskReplica struct {
	t       *testing.T
	srv     *mcpkit.Server
	handler *Handler
	url     string
}

// replicas starts n replicas that share an engine in memory.
func replicas(t *testing.T, n int) []*deskReplica {
	t.Helper()
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	all := make([]*deskReplica, n)
	for i := range all {
		all[i] = startReplica(t, engine.Open())
	}
	return all
}

func startReplica(t *testing.T, engine fleet.Engine) *deskReplica {
	t.Helper()
	srv, err := mcpkit.New(&desk{}, mcpkit.Name("desk", "1"), mcpkit.StateKeys([]byte(strings.Repeat("k", 32))),
		mcpkit.Fleet(engine), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	require.NoError(t, srv.Start(t.Context()))
	handler := NewHandler(srv, nil)
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		web.CloseClientConnections()
		web.Close()
		require.NoError(t, srv.Close())
	})
	return &deskReplica{t, srv, handler, web.URL}
}

// at returns a client of another replica, with the same header fields.
func (c *client) at(r *deskReplica) *client {
	d := *c
	d.url = r.url
	return &d
}

const canElicit = `"capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}`

// open opens a session at r.
func (r *deskReplica) open() *client {
	r.t.Helper()
	c := (&testServer{t: r.t, url: r.url}).client()
	resp := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` + canElicit + `}}`)
	require.Equal(r.t, http.StatusOK, resp.StatusCode, read(r.t, resp))
	c = c.with("Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25")
	require.Equal(r.t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).StatusCode)
	return c
}

func TestMessagesThatConcernNoOtherReplicaCostThemLittle(t *testing.T) {
	all := replicas(t, 2)
	c, other := all[0].open(), all[1].srv.Fleet()
	var missed atomic.Bool
	defer other.OnMissed(func() { missed.Store(true) })()
	heard := make(chan int, 9)
	defer other.On(kindSession, func(_ string, payload []byte) { heard <- len(payload) })()
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"` + strings.Repeat("x", 1<<20) + `"}}`
	for range 3 {
		require.Equal(t, http.StatusAccepted, c.post(`{"jsonrpc":"2.0","id":"!!!!!!!!!!!!-1","result":{}}`).StatusCode)
		require.Equal(t, http.StatusAccepted, c.post(fmt.Sprintf(cancel, `{}`)).StatusCode)
		require.Equal(t, http.StatusAccepted, c.post(fmt.Sprintf(cancel, `77`)).StatusCode)
		require.Less(t, <-heard, 250)
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
	r := startReplica(t, bus)
	t.Cleanup(func() { close(bus.closed) })
	c := r.open()
	answer := `{"jsonrpc":"2.0","id":"aaaaaaaaaaaa-1","result":"` + strings.Repeat("x", 3<<20) + `"}`
	for range 10 {
		require.Equal(t, http.StatusAccepted, c.post(answer).StatusCode)
	}
	resp := c.post(answer)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
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
	one := startReplica(t, engine)
	two := startReplica(t, store.Open())
	here, there := one.open(), two.open()
	engine.down.Store(true)

	require.Equal(t, http.StatusOK, here.post(pingBody).StatusCode)
	modern := (&testServer{t: t, url: one.url}).client("MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "where")
	resp := modern.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"where","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`)
	require.Equal(t, http.StatusOK, resp.StatusCode, read(t, resp))

	resp = there.at(one).post(pingBody)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	resp = here.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`)
	require.Contains(t, read(t, resp), `"error"`)
	require.Error(t, one.srv.Fleet().Health())

	engine.down.Store(false)
	require.Eventually(t, func() bool {
		return there.at(one).post(pingBody).StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
	require.NoError(t, one.srv.Fleet().Health())
}

// TestAStreamWithoutMessagesOfADeadReplicaCannotBeResumed kills the replica that runs a call before
// it has sent a message.
func TestAStreamWithoutMessagesOfADeadReplicaCannotBeResumed(t *testing.T) {
	all := replicas(t, 2)
	c := all[0].open()
	gone := fleet.New(fleet.NewMemory(fleet.MemoryOptions{}), fleet.Options{}).Replica()
	resp := c.at(all[1]).with("Last-Event-ID", gone+"abcdefgh_1-0").get()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, read(t, resp), "the process that ran the request has ended")
}

func TestNothingIsKeptOfStreamsOfOtherReplicas(t *testing.T) {
	all := replicas(t, 2)
	c := all[0].open()
	ctx, disconnect := context.WithCancel(t.Context())
	last := all[0].srv.Fleet().Replica() + "abcdefgh_1-0"
	resp, err := c.at(all[1]).with("Content-Type", "", "Last-Event-ID", last).do(ctx, http.MethodGet, "")
	require.NoError(t, err)
	out := &known(all[1].handler, c.header.Get("Mcp-Session-Id")).out
	count := func() int {
		out.mu.Lock()
		defer out.mu.Unlock()
		return len(out.open)
	}
	require.Equal(t, 2, count(), "with that of the session")
	disconnect()
	_ = resp.Body.Close()
	require.Eventually(t, func() bool { return count() == 1 }, time.Minute, time.Millisecond)
}
