package mcpkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
)

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
