package mcpkit_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
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
