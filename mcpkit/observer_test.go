package mcpkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
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

func (s *watched) observer() mcpkit.Observer {
	return mcpkit.Observer{
		Call: func(_ context.Context, call *mcpkit.Call) func(mcpkit.Result, error) {
			s.add("call %s %s round %d", call.Method(), call.Name(), call.Round())
			return func(result mcpkit.Result, err error) { s.add("end %T %v", result, err) }
		},
		Span: func(_ *mcpkit.Call, name string) func(error) {
			s.add("> %s", name)
			return func(err error) { s.add("< %s %v", name, err) }
		},
		Once: func(_ *mcpkit.Call, key string, kept bool) { s.add("once %s %t", key, kept) },
		Log: func(_ *mcpkit.Call, r slog.Record) {
			var attrs []string
			r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a.String()); return true })
			s.add("log %s %s %s", r.Level, r.Message, strings.Join(attrs, " "))
		},
		Progress: func(_ *mcpkit.Call, done, total float64, message string) {
			s.add("progress %v/%v %s", done, total, message)
		},
	}
}

func newStove(t *testing.T) *mcpkit.Server {
	t.Helper()
	srv, err := mcpkit.New(&stove{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	srv.Use(middleware.Timeout(time.Minute))
	return srv
}

func TestAnObserverSeesTheStepsOfACall(t *testing.T) {
	srv := newStove(t)
	var seen watched
	stop := srv.Observe(seen.observer())
	c := dial(t, srv, client.Handlers(cook{}))
	seen.take()

	_, err := c.CallTool(t.Context(), "cook", map[string]string{"dish": "soup"})
	require.NoError(t, err)
	require.Equal(t, []string{
		"call tools/call cook round 0", "> middleware.Timeout", "> stove.Cook", "once pot false",
		"log DEBUG heats pot=pot 1 dish=[name=soup]", "progress 1/2 half",
		"< stove.Cook mcpkit: the question goes to the client; return this error", "< middleware.Timeout <nil>", "end *protocol.InputRequiredResult <nil>",
		"call tools/call cook round 1", "> middleware.Timeout", "> stove.Cook", "once pot true",
		"log DEBUG heats pot=pot 1 dish=[name=soup]", "progress 1/2 half",
		"< stove.Cook <nil>", "< middleware.Timeout <nil>", "end *protocol.CallToolResult <nil>",
	}, seen.take())

	_, err = c.CallTool(t.Context(), "burn", nil)
	require.Error(t, err)
	require.Equal(t, []string{
		"call tools/call burn round 0", "> middleware.Timeout", "> stove.Burn",
		"< stove.Burn the handler panicked", "< middleware.Timeout panic: fire", "end <nil> panic: fire",
	}, seen.take())

	_, err = c.CallTool(t.Context(), "bake", nil)
	require.Error(t, err)
	require.Equal(t, []string{
		"call tools/call bake round 0", "> middleware.Timeout",
		`< middleware.Timeout unknown tool "bake" (code -32602)`, `end <nil> unknown tool "bake" (code -32602)`,
	}, seen.take())

	stop()
	stop()
	_, err = c.CallTool(t.Context(), "burn", nil)
	require.Error(t, err)
	require.Empty(t, seen.take())
}

func TestAnObserverWithoutFunctionsChangesNothing(t *testing.T) {
	srv := newStove(t)
	defer srv.Observe(mcpkit.Observer{})()
	var seen watched
	defer srv.Observe(seen.observer())()
	_, err := dial(t, srv).CallTool(t.Context(), "burn", nil)
	require.Error(t, err)
	require.NotEmpty(t, seen.take())
}

func TestAnObserverSeesMiddlewareThatPanics(t *testing.T) {
	srv := newStove(t)
	c := dial(t, srv)
	srv.Use(each(func(*mcpkit.Call) { panic(errors.New("broken")) }))
	var seen watched
	defer srv.Observe(seen.observer())()
	_, err := c.CallTool(t.Context(), "burn", nil)
	require.Error(t, err)
	require.Contains(t, seen.take(), "end <nil> panic: broken")
}
