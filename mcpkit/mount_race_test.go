package mcpkit_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// TestMountedServersChangeWhileTheyAreUsed registers, removes, mounts and calls at the same time,
// in servers that are mounted in each other in two ways.
func TestMountedServersChangeWhileTheyAreUsed(t *testing.T) {
	shared, left, right, top := newServer(t, nil), newServer(t, nil), newServer(t, nil), newServer(t, nil)
	require.NoError(t, shared.Add(mcpkit.NewTool("stays", func() string { return "here" })))
	left.MustMount("l", shared)
	right.MustMount("r", shared)
	top.MustMount("a", left)
	top.MustMount("b", right)
	const each = 30
	var all sync.WaitGroup
	for i, s := range []*mcpkit.Server{shared, left, right, top} {
		all.Go(func() {
			for n := range each {
				name := fmt.Sprintf("t%d_%d", i, n)
				if err := s.Add(mcpkit.NewTool(name, func() {})); err != nil {
					t.Error(err)
				}
				if n%2 == 0 && !s.RemoveTools(name) {
					t.Error(name + " was not there")
				}
			}
		})
	}
	all.Go(func() {
		for n := range each {
			top.MustMount(fmt.Sprintf("m%d", n), newServer(t, nil))
		}
	})
	all.Go(func() {
		for range each {
			shared.Use(func(next mcpkit.Handler) mcpkit.Handler { return next })
		}
	})
	all.Go(func() {
		p := modern(t, top)
		for range each {
			for _, name := range []string{"a_l_stays", "b_r_stays"} {
				resp := p.rpc(t.Context(), p.request("tools/call", fmt.Sprintf(`{"name":%q}`, name)))
				if resp.Error != nil {
					t.Error(resp.Error)
				}
			}
			p.rpc(t.Context(), p.request("tools/list", "{}"))
		}
	})
	all.Wait()
	// One tool stays, and half of those that each goroutine added: 15 of the shared server, twice.
	require.Len(t, names(t, modern(t, newTop(t, top)), "tools/list", "tools", "name"), 2+2*15+3*15)
}

// newTop mounts a server in one with larger pages.
func newTop(t *testing.T, s *mcpkit.Server) *mcpkit.Server {
	all := newServer(t, nil, mcpkit.PageSize(1000))
	all.MustMount("", s)
	return all
}

// BenchmarkMounted calls a tool of the server itself and a tool of a mounted server.
func BenchmarkMounted(b *testing.B) {
	far, srv := newServer(b, nil), newServer(b, nil)
	require.NoError(b, far.Add(mcpkit.NewTool("tool", func() string { return "x" })))
	require.NoError(b, srv.Add(mcpkit.NewTool("own", func() string { return "x" })))
	srv.MustMount("far", far)
	for _, name := range []string{"own", "far_tool"} {
		b.Run(name, func(b *testing.B) {
			p := modern(b, srv)
			msg, _ := jsonrpc.Decode([]byte(p.request("tools/call", `{"name":"`+name+`"}`)))
			b.ReportAllocs()
			for b.Loop() {
				srv.ServeRPC(b.Context(), msg.Request, p)
			}
		})
	}
}
