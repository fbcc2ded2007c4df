package mcpkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// TestClientLogKeepsTheRulesOfSlog runs slog's tests of handlers on the handler that sends records
// to clients.
func TestClientLogKeepsTheRulesOfSlog(t *testing.T) {
	var client *peer
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		srv := newServer(t, &Library{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
		handler, done := make(chan slog.Handler), make(chan struct{})
		require.NoError(t, srv.Add(mcpkit.NewTool("log", func(call *mcpkit.Call) string {
			handler <- call.Logger().Handler()
			<-done // messages after the call are not sent
			return ""
		})))
		client = legacy(t, srv, protocol.V20250618)
		var call sync.WaitGroup
		call.Go(func() { client.result("tools/call", `{"name":"log"}`) })
		t.Cleanup(func() { close(done); call.Wait() })
		return <-handler
	}, func(t *testing.T) map[string]any {
		sent := client.take()
		require.Len(t, sent, 1)
		m, bad := jsonrpc.Decode([]byte(sent[0]))
		require.Nil(t, bad)
		var p protocol.LoggingMessageParams
		require.NoError(t, json.Unmarshal(m.Request.Params, &p))
		record := map[string]any{}
		if json.Unmarshal(p.Data, &record) != nil {
			var text string
			require.NoError(t, json.Unmarshal(p.Data, &text))
			record = map[string]any{"msg": text}
		}
		record["level"] = string(p.Level)
		// Log messages of the protocol have no time.
		if !strings.HasSuffix(t.Name(), "/zero-time") {
			record["time"] = "none"
		}
		return record
	})
}

func TestDataOfLogMessages(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, srv.Add(mcpkit.NewTool("log", func(call *mcpkit.Call) string {
		log := call.Logger()
		log.Info("plain")
		log.With("n", 1, "took", time.Minute).WithGroup("g").Info("all", "err", io.EOF, "n", uint64(math.MaxUint64), "n", 2, "bad", func() {})
		return ""
	})))
	p := legacy(t, srv, protocol.V20250618)
	p.result("tools/call", `{"name":"log"}`)
	sent := p.take()
	require.Len(t, sent, 2)
	require.JSONEq(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"log","data":"plain"}}`, sent[0])
	require.JSONEq(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"log","data":
		{"msg":"all","n":1,"took":"1m0s","g":{"err":"EOF","n":2,"bad":"!ERROR:json: unsupported type: func()"}}}}`, sent[1])
}

// A stove has tools that do everything an observer sees.
type stove struct{}

// Cook asks, keeps a value, logs and reports progress.
func (stove) Cook(ctx context.Context, call *mcpkit.Call, in struct {
	Dish string `json:"dish"`
}) (string, error) {
	pot, err := mcpkit.Once(ctx, "pot", func() (string, error) { return "pot 1", nil })
	if err != nil {
		return "", err
	}
	call.Logger().With("pot", pot).WithGroup("dish").Debug("heats", "name", in.Dish)
	call.Progress(1, 2, "half")
	_, err = mcpkit.Confirm(ctx, "Add salt?")
	return in.Dish, err
}

// Burn panics.
func (stove) Burn() { panic("fire") }

// cook says yes.
type cook struct{}

func (cook) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: "accept", Content: json.RawMessage(`{"confirm":true}`)}, nil
}

func dial(t *testing.T, srv *mcpkit.Server, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.InMemory(srv), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// watched collects what an observer sees, without the places in the source.
type watched struct {
	mu  sync.Mutex
	all []string
}

var place = regexp.MustCompile(` \([^)]*\.go:\d+\)`)

func (s *watched) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, place.ReplaceAllString(fmt.Sprintf(format, args...), ""))
}

func (s *watched) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

func (s *watched) trace(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		s.add("call %s round %d", call.Name(), call.Round())
		call.Trace(func(_ context.Context, e mcpkit.TraceEvent) (context.Context, func(error)) {
			text, err := json.Marshal(e)
			if err != nil {
				return nil, nil
			}
			s.add("%s", text)
			return nil, func(err error) { s.add("< %s %v", e.Name, err) }
		})
		return next(ctx, call)
	}
}

func TestTraceTellsTheStepsOfACall(t *testing.T) {
	srv, err := mcpkit.New(&stove{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	var seen watched
	srv.Use(middleware.Timeout(time.Minute))
	srv.Use(seen.trace)
	c := dial(t, srv, client.Handlers(cook{}))
	seen.take()

	_, err = c.CallTool(t.Context(), "cook", map[string]string{"dish": "soup"})
	require.NoError(t, err)
	require.Equal(t, []string{
		"call cook round 0", `{"kind":"handler","name":"Timeout"}`, `{"kind":"handler","name":"stove.Cook"}`, `{"kind":"once","name":"pot"}`,
		`{"kind":"log","name":"debug","text":"{\"dish\":{\"name\":\"soup\"},\"msg\":\"heats\",\"pot\":\"pot 1\"}"}`, `{"kind":"progress","text":"half","done":1,"total":2}`,
		"< stove.Cook mcpkit: the question goes to the client; return this error", "< Timeout <nil>",
		"call cook round 1", `{"kind":"handler","name":"Timeout"}`, `{"kind":"handler","name":"stove.Cook"}`, `{"kind":"once","name":"pot","kept":true}`,
		`{"kind":"log","name":"debug","text":"{\"dish\":{\"name\":\"soup\"},\"msg\":\"heats\",\"pot\":\"pot 1\"}"}`, `{"kind":"progress","text":"half","done":1,"total":2}`,
		"< stove.Cook <nil>", "< Timeout <nil>",
	}, seen.take())

	_, err = c.CallTool(t.Context(), "burn", nil)
	require.Error(t, err)
	require.Equal(t, []string{
		"call burn round 0", `{"kind":"handler","name":"Timeout"}`, `{"kind":"handler","name":"stove.Burn"}`,
		"< stove.Burn panic: fire", "< Timeout panic: fire",
	}, seen.take())
}

func TestTraceTellsTheStepsInAMountedServer(t *testing.T) {
	quiet := mcpkit.Logger(slog.New(slog.DiscardHandler))
	outer, inner := mcpkit.MustNew(nil, quiet), mcpkit.MustNew(&stove{}, quiet)
	var seen watched
	outer.Use(seen.trace)
	inner.Use(middleware.Timeout(time.Minute))
	outer.MustMount("x", inner, mcpkit.Around(middleware.ResultLimit(1<<20)))
	c := dial(t, outer)
	seen.take()
	_, err := c.CallTool(t.Context(), "x_burn", nil)
	require.Error(t, err)
	require.Equal(t, []string{
		"call x_burn round 0", `{"kind":"handler","name":"ResultLimit"}`, `{"kind":"handler","name":"Timeout"}`, `{"kind":"handler","name":"stove.Burn"}`,
		"< stove.Burn panic: fire", "< Timeout panic: fire", "< ResultLimit panic: fire",
	}, seen.take())
}
