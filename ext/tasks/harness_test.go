package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// lease is how long a task belongs to a process that does not renew its claim.
const lease = 30 * time.Second

// peer is a client that calls the server without a transport.
type peer struct {
	t       *testing.T
	srv     *mcpkit.Server
	as      *oauth.Principal
	session *transport.Session
	header  transport.Header
	plain   bool // it does not declare the extension
	answer  func(req *jsonrpc.Request) *jsonrpc.Response

	mu   sync.Mutex
	sent []string // guarded by mu: notifications
}

func (p *peer) Notify(_ context.Context, n *jsonrpc.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, string(jsonrpc.AppendRequest(nil, n)))
	return nil
}

func (p *peer) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	if p.answer == nil {
		return nil, transport.ErrNoServerRequests
	}
	return p.answer(req), nil
}

func (p *peer) Session() *transport.Session { return p.session }
func (p *peer) Header() transport.Header    { return p.header }

// take returns the notifications since the last take.
func (p *peer) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

const (
	declared = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	plain    = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
)

func (p *peer) rpc(ctx context.Context, method, params string) *jsonrpc.Response {
	p.t.Helper()
	if p.session == nil {
		meta := declared
		if p.plain {
			meta = plain
		}
		params = strings.TrimSuffix(params, "}") + "," + meta + "}"
		params = strings.Replace(params, "{,", "{", 1)
	}
	msg, bad := jsonrpc.Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	require.Nil(p.t, bad, "the test's own message is malformed: %s", params)
	if p.as != nil {
		ctx = oauth.NewContext(ctx, p.as)
	}
	return p.srv.ServeRPC(ctx, msg.Request, p)
}

// result sends a request and returns its result.
func (p *peer) result(method, params string) string {
	p.t.Helper()
	resp := p.rpc(p.t.Context(), method, params)
	require.Nil(p.t, resp.Error, "%s", method)
	return string(resp.Result)
}

// fails sends a request and returns its error.
func (p *peer) fails(method, params string) *jsonrpc.Error {
	p.t.Helper()
	resp := p.rpc(p.t.Context(), method, params)
	require.NotNil(p.t, resp.Error, "%s answered with %s", method, resp.Result)
	return resp.Error
}

// start calls a tool and returns the ID of the task that the call has become.
func (p *peer) start(tool, args string) string {
	p.t.Helper()
	result := p.result("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	require.Equal(p.t, `"task"`, member(p.t, result, "resultType"), result)
	return text(p.t, result, "taskId")
}

// get asks for a task.
func (p *peer) get(id string) *protocol.DetailedTask {
	p.t.Helper()
	var d protocol.DetailedTask
	result := p.result("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id))
	require.NoError(p.t, json.Unmarshal([]byte(result), &d))
	require.Equal(p.t, protocol.ResultComplete, d.ResultType)
	return &d
}

// await waits until the task has the status. Time is that of synctest.
func (p *peer) await(id string, status protocol.TaskStatus) *protocol.DetailedTask {
	p.t.Helper()
	for range 200 {
		d := p.get(id)
		if d.Status == status {
			return d
		}
		require.False(p.t, d.Status.Terminal(), "%+v", d)
		time.Sleep(time.Second)
		synctest.Wait()
	}
	require.Fail(p.t, "the task does not become "+string(status))
	return nil
}

// answer gives the task answers.
func (p *peer) update(id, responses string) {
	p.t.Helper()
	p.result("tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":%s}`, id, responses))
}

func member(t testing.TB, object string, path ...string) string {
	t.Helper()
	raw := json.RawMessage(object)
	for _, name := range path {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &m), "%s in %s", name, raw)
		raw = m[name]
	}
	return string(raw)
}

// text returns a member that is a string.
func text(t testing.TB, object string, path ...string) string {
	t.Helper()
	var s string
	require.NoError(t, json.Unmarshal([]byte(member(t, object, path...)), &s), "%v in %s", path, object)
	return s
}

// contentOf returns the text of a tool's result.
func contentOf(t testing.TB, result json.RawMessage) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	require.NoError(t, json.Unmarshal(result, &r))
	require.NotEmpty(t, r.Content, "%s", result)
	return r.Content[0].Text
}

// An office is the service of these tests.
type office struct {
	_ struct {
		Work   mcpkit.Tool `task:"optional"`
		Timed  mcpkit.Tool `task:"optional" timeout:"5s"`
		Fail   mcpkit.Tool `task:"required"`
		Refuse mcpkit.Tool `task:"optional"`
		Burst  mcpkit.Tool `task:"optional"`
		Trip   mcpkit.Tool `task:"optional,durable"`
		Both   mcpkit.Tool `task:"optional"`
		Deaf   mcpkit.Tool `task:"optional"`
		Chatty mcpkit.Tool `task:"optional"`
		Bulk   mcpkit.Tool `task:"optional"`

		GreetLater mcpkit.Tool `task:"optional"`
	}
	mu     sync.Mutex
	made   int      // guarded by mu: values of Once
	causes []string // guarded by mu: why contexts ended
	runs   int      // guarded by mu
}

func (o *office) note(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// noted returns a value that note has changed.
func noted[T any](o *office, v *T) T {
	o.mu.Lock()
	defer o.mu.Unlock()
	return *v
}

func (o *office) Greet(in struct{ Name string }) string { return "Hello, " + in.Name + "!" }

func (o *office) GreetLater(ctx context.Context, in struct{ Name string }) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Greet?", mcpkit.Key("greet"))
	return fmt.Sprint("Hello, ", in.Name, ok), err
}

type workInput struct {
	Seconds int `json:"seconds"`
}

func (o *office) Work(ctx context.Context, call *mcpkit.Call, in workInput) (string, error) {
	o.note(func() { o.runs++ })
	call.Progress(1, 2, "half of it")
	select {
	case <-time.After(time.Duration(in.Seconds) * time.Second):
		return "done", nil
	case <-ctx.Done():
		o.note(func() { o.causes = append(o.causes, context.Cause(ctx).Error()) })
		return "", ctx.Err()
	}
}

func (o *office) Timed(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
func (o *office) Fail() error                     { return mcpkit.Errorf("it cannot be done") }
func (o *office) Refuse() error                   { return jsonrpc.Errorf(-32050, "no") }
func (o *office) Burst() string                   { panic("burst") }
func (o *office) Deaf(in workInput) string {
	time.Sleep(time.Duration(in.Seconds) * time.Second)
	return "heard nothing"
}

// Chatty reports progress every second.
func (o *office) Chatty(call *mcpkit.Call, in workInput) string {
	for i := range in.Seconds {
		call.Progress(float64(i), float64(in.Seconds), fmt.Sprintf("step %d", i))
		time.Sleep(time.Second)
	}
	return "done"
}

// Bulk returns a text of so many bytes.
func (o *office) Bulk(in struct{ Bytes int }) string { return strings.Repeat("x", in.Bytes) }

type place struct {
	Place string `json:"place"`
}

func (o *office) Trip(ctx context.Context) (string, error) {
	o.note(func() { o.runs++ })
	to, err := mcpkit.Elicit[place](ctx, "Where to?", mcpkit.Key("where"))
	if err != nil {
		return "", err
	}
	ticket, err := mcpkit.Once(ctx, "ticket", func() (int, error) {
		o.note(func() { o.made++ })
		return 7, nil
	})
	if err != nil {
		return "", err
	}
	ok, err := mcpkit.Confirm(ctx, "Pay for "+to.Place+"?", mcpkit.Key("pay"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("ticket %d to %s, paid %v", ticket, to.Place, ok), nil
}

func (o *office) Both(ctx context.Context) (string, error) {
	var names [2]string
	err := mcpkit.Ask(ctx, func(ctx context.Context) error {
		first, err := mcpkit.Elicit[place](ctx, "First?", mcpkit.Key("first"))
		names[0] = first.Place
		return err
	}, func(ctx context.Context) error {
		second, err := mcpkit.Elicit[place](ctx, "Second?", mcpkit.Key("second"))
		names[1] = second.Place
		return err
	})
	return names[0] + " and " + names[1], err
}

// An opened office is served.
type opened struct {
	*office
	srv *mcpkit.Server
	t   *testing.T
}

// open serves an office with tasks until the test ends, or Close.
func open(t *testing.T, opts ...tasks.Option) *opened {
	return openWith(t, tasks.New(opts...))
}

// openOn is open with the tasks in an engine.
func openOn(t *testing.T, engine fleet.Engine, opts ...tasks.Option) *opened {
	return openWith(t, tasks.New(opts...), mcpkit.Fleet(engine))
}

// newStore returns an engine that outlives processes.
func newStore(t *testing.T) *fleet.Local {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// faulty is the engine of a process, which sees it as that of many machines. before and after are
// called for each operation on records, if they are not nil; an error of before is that of the
// operation.
type faulty struct {
	fleet.Engine
	killed atomic.Bool // the process was: nothing of it reaches the store any more
	deaf   atomic.Bool // what it publishes is lost
	before func(op, set string) error
	after  func(op, set string)
}

func operate[T any](f *faulty, op, set string, run func() (T, error)) (result T, err error) {
	if f.killed.Load() {
		return result, errors.New("the process was killed")
	}
	if f.before != nil {
		if err = f.before(op, set); err != nil {
			return result, err
		}
	}
	result, err = run()
	if f.after != nil {
		f.after(op, set)
	}
	return result, err
}

func (f *faulty) Publish(ctx context.Context, topic string, data []byte) error {
	if f.killed.Load() || f.deaf.Load() {
		return nil
	}
	return f.Engine.Publish(ctx, topic, data)
}

func (f *faulty) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	return operate(f, "Get", set, func() (fleet.Record, error) { return f.Engine.Get(ctx, set, key) })
}

func (f *faulty) Create(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	return operate(f, "Create", set, func() (uint64, error) { return f.Engine.Create(ctx, set, r) })
}

func (f *faulty) Update(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	return operate(f, "Update", set, func() (uint64, error) { return f.Engine.Update(ctx, set, r) })
}

func (f *faulty) Delete(ctx context.Context, set, key string, revision uint64) error {
	_, err := operate(f, "Delete", set, func() (any, error) { return nil, f.Engine.Delete(ctx, set, key, revision) })
	return err
}

func (f *faulty) Due(ctx context.Context, set string, within time.Duration, limit int) ([]fleet.Record, error) {
	return operate(f, "Due", set, func() ([]fleet.Record, error) { return f.Engine.Due(ctx, set, within, limit) })
}

func (f *faulty) Count(ctx context.Context, set, group string) (int, error) {
	return operate(f, "Count", set, func() (int, error) { return f.Engine.Count(ctx, set, group) })
}

func openWith(t *testing.T, opts ...mcpkit.Option) *opened {
	t.Helper()
	o := &office{}
	return &opened{o, serve(t, o, opts...), t}
}

// serve serves a service until the test ends.
func serve(t *testing.T, service any, opts ...mcpkit.Option) *mcpkit.Server {
	t.Helper()
	srv, err := mcpkit.New(service, append([]mcpkit.Option{quiet(), mcpkit.StateKeys(stateKey)}, opts...)...)
	require.NoError(t, err)
	require.NoError(t, srv.Start(t.Context()))
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}

var stateKey = []byte("0123456789abcdef0123456789abcdef")

// modern is a client of 2026-07-28 that declares the extension.
func (o *opened) modern() *peer { return &peer{t: o.t, srv: o.srv} }

func accept(key, content string) string {
	return fmt.Sprintf(`{%q:{"action":"accept","content":%s}}`, key, content)
}

// quiet drops the server's log.
func quiet() mcpkit.Option { return mcpkit.Logger(slog.New(slog.DiscardHandler)) }
