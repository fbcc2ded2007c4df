package main

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// openVersions serves one replica of each version of the program. The proxy passes each request to
// the other one than the request before.
func openVersions(t *testing.T) *shop {
	t.Helper()
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	s := &shop{proxy: newProxy(2), books: newBooks()}
	ledger := httptest.NewServer(s.books)
	t.Cleanup(ledger.Close)
	for i, next := range []bool{false, true} {
		desk := &Desk{books: ledger.URL}
		quiet := slog.New(slog.DiscardHandler)
		srv, err := version(next, desk, []mcpkit.Option{
			mcpkit.StateKeys([]byte(strings.Repeat("k", 32))), mcpkit.Fleet(engine.Open()), mcpkit.Logger(quiet), tasks.New(tasks.PollInterval(taskInterval)),
		})
		require.NoError(t, err)
		desk.changed = srv.ResourceUpdated
		require.NoError(t, srv.Start(t.Context()))
		mcp, old := streamable.NewHandler(srv, &streamable.Options{Logger: quiet}), sse.NewHandler(srv, &sse.Options{Logger: quiet})
		mux := http.NewServeMux()
		mux.Handle("/mcp", mcp)
		mux.Handle("/sse", old)
		web := httptest.NewServer(mux)
		t.Cleanup(func() {
			mcp.Close()
			old.Close()
			web.CloseClientConnections()
			web.Close()
			require.NoError(t, srv.Close())
		})
		s.proxy.set(i, web.Listener.Addr().String())
	}
	front := httptest.NewServer(s.proxy)
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	s.url = front.URL
	return s
}

// TestSessionsWorkAtBothVersionsOfAProgram deploys a program step by step: its replicas differ in
// their tools, in the order in which they register them, and in the size of the pages of lists.
func TestSessionsWorkAtBothVersionsOfAProgram(t *testing.T) {
	for _, v := range protocol.Supported {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			s := openVersions(t)
			c := &customer{shop: s, r: &report{}, version: v, name: "one"}
			require.NoError(t, c.connect(t.Context()))
			defer c.close()
			for range 3 { // three pages or four, so each list begins at another replica
				require.True(t, c.list(t.Context()))
				require.NoError(t, c.client.Ping(t.Context()))
			}
			calls := []kind{{tool: "describe", args: map[string]string{"city": "Oslo"}, want: "cold"}, {tool: "order", args: map[string]string{"id": "1"}, want: "ordered 1"}}
			if v >= protocol.V20250618 {
				calls = append(calls, kind{tool: "colour", want: "red"})
			}
			for _, k := range append(calls, calls...) {
				text, err := client.Call[string](t.Context(), c.client, k.tool, k.args)
				require.NoError(t, err, k.tool)
				require.Equal(t, k.want, text)
			}
			if v >= protocol.V20251125 {
				c.deliver(t.Context())
				require.Equal(t, 1, c.r.Tasks)
			}
			require.Empty(t, c.r.Failed)

			// A tool that only the next version has is there or unknown.
			answers := map[string]int{}
			for range 20 {
				text, err := client.Call[string](t.Context(), c.client, "hours", nil)
				if err != nil {
					require.ErrorContains(t, err, `unknown tool "hours"`)
					text = "unknown"
				}
				answers[text]++
			}
			want := 2
			if c.overSSE() {
				want = 1 // the replica of the stream runs all calls
			}
			require.Len(t, answers, want, "%v", answers)
		})
	}
}

// TestCursorsOfOneVersionContinueAtTheOther uses each cursor of one version at the other one.
func TestCursorsOfOneVersionContinueAtTheOther(t *testing.T) {
	servers := map[bool]*client.Client{}
	for _, next := range []bool{false, true} {
		srv, err := version(next, &Desk{}, []mcpkit.Option{mcpkit.Logger(slog.New(slog.DiscardHandler)), tasks.New()})
		require.NoError(t, err)
		defer srv.Close()
		servers[next], err = client.Dial(t.Context(), srv, client.NoCache())
		require.NoError(t, err)
		defer servers[next].Close()
	}
	page := func(next bool, cursor *string) (names []string, after *string) {
		var p protocol.ListToolsResult
		require.NoError(t, servers[next].Request(t.Context(), protocol.MethodToolsList, protocol.ListParams{Cursor: cursor}, &p))
		for _, tool := range p.Tools {
			names = append(names, tool.Name)
		}
		return names, p.NextCursor
	}
	all := map[bool][]string{
		false: commonTools,
		true:  {"colour", "count", "deliver", "describe", "hours", "order", "pin", "where"},
	}
	for _, next := range []bool{false, true} {
		var seen []string
		var cursor *string
		for {
			names, after := page(next, cursor)
			seen = append(seen, names...)
			if after == nil {
				break
			}
			// The rest of the list, from the other version.
			rest, then := page(!next, after)
			for then != nil {
				var more []string
				more, then = page(!next, then)
				rest = append(rest, more...)
			}
			last := seen[len(seen)-1]
			want := []string{}
			for _, name := range all[!next] {
				if name > last {
					want = append(want, name)
				}
			}
			require.Equal(t, want, rest, "after %s", last)
			cursor = after
		}
		require.Equal(t, all[next], seen)
		bad := base64.RawURLEncoding.EncodeToString([]byte("page 2"))
		err := servers[next].Request(t.Context(), protocol.MethodToolsList, protocol.ListParams{Cursor: &bad}, nil)
		var refused *jsonrpc.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, jsonrpc.CodeInvalidParams, refused.Code)
		require.Contains(t, refused.Message, "is not one that this server gave")
	}
}
