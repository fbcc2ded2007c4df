package mcpkit

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// TestEveryMethodIsKnownToTheLeakTests fails when a method is added. A method that reaches code or
// data of the program belongs into the first list, and leak_test.go has to send it. All others
// belong into the second list. The tests of mounts (mountRequests) and of middleware (everyRequest)
// send requests of every method, too.
func TestEveryMethodIsKnownToTheLeakTests(t *testing.T) {
	reaching := []string{
		protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead, protocol.MethodCompletionComplete,
		protocol.MethodResourcesSubscribe, protocol.MethodSubscriptionsListen,
	}
	listing := []string{
		protocol.MethodToolsList, protocol.MethodPromptsList, protocol.MethodResourcesList, protocol.MethodResourcesTemplatesList,
	}
	inert := []string{
		protocol.MethodInitialize, protocol.MethodPing, protocol.MethodDiscover, protocol.MethodLoggingSetLevel,
		protocol.MethodResourcesUnsubscribe,
	}
	require.Equal(t, slices.Sorted(slices.Values(slices.Concat(reaching, listing, inert))), slices.Sorted(maps.Keys(coreMethods)),
		"add the method here, to mountRequests of mount_test.go, and to everyRequest of middleware/harness_test.go")
	for name, row := range coreMethods {
		if (row.prepare != nil || row.asks) && name != protocol.MethodResourcesUnsubscribe { // it forgets a URI
			require.Contains(t, reaching, name, "it is about something that may demand scopes")
		}
	}
}

// A server to which nothing was added shares the table of the protocol's methods with all others.
func TestServersShareTheTableOfMethods(t *testing.T) {
	plain, added := MustNew(nil), MustNew(nil)
	require.NoError(t, Handle(added, "example.com/reindex", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }))
	require.Contains(t, added.catalog.Load().methods, "example.com/reindex")
	require.NotContains(t, coreMethods, "example.com/reindex")
	require.Len(t, plain.catalog.Load().methods, len(coreMethods))
	for method, row := range coreMethods {
		require.Nil(t, row.load, "servers would share the count of %s", method)
	}
}

func bareTool(key string) *entry {
	return &entry{Annotation: &annotation.Annotation{Kind: annotation.Tool}, key: key, site: "site of " + key, definition: defined(key)}
}

func keysOf(c catalog) []string {
	keys := []string{}
	for _, e := range c.entries() {
		keys = append(keys, e.key)
	}
	return keys
}

func TestCatalogsNeverChange(t *testing.T) {
	var c catalog
	c.add([]*entry{bareTool("b"), bareTool("d")}, nil)
	before := c
	c.add([]*entry{bareTool("c"), bareTool("a")}, nil)
	require.True(t, c.remove(func(e *entry) bool { return e.key == "d" }))
	require.False(t, c.remove(func(e *entry) bool { return e.key == "e" }))
	require.Equal(t, []string{"a", "b", "c"}, keysOf(c))
	require.Equal(t, []string{"b", "d"}, keysOf(before))
}

func TestListsAreNotKeptForLongSelections(t *testing.T) {
	for length, kept := range map[int]int{100: 1, 100_000: 0} {
		s := MustNew(nil, Visible(func(context.Context, *Call) (func(Entry) bool, string) {
			return func(Entry) bool { return true }, strings.Repeat("x", length)
		}))
		require.NoError(t, s.Add(NewTool("a", func() {})))
		call := newCall(t.Context(), s, &jsonrpc.Request{}, runPeer{})
		call.version = protocol.V20260728
		l := &List{call: call, of: call.catalog.list(annotation.Tool), member: "tools"}
		text, err := l.encoded()
		require.NoError(t, err)
		require.Contains(t, string(text), `"name":"a"`)
		require.Equal(t, kept, l.of.first.Len())
	}
}

// TestServersMountedInOneAnotherAtTheSameTime mounts servers in one another from several
// goroutines. Some mounts are refused, nothing hangs, and each server has the tools of the servers
// in it.
func TestServersMountedInOneAnotherAtTheSameTime(t *testing.T) {
	const servers = 5
	all := make([]*Server, servers)
	for i := range all {
		all[i] = MustNew(nil)
		require.NoError(t, all[i].Add(NewTool(fmt.Sprintf("t%d", i), func() {})))
	}
	var wg sync.WaitGroup
	for worker := range servers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(worker)))
			for n := range 3 {
				from, to := rnd.IntN(servers), rnd.IntN(servers)
				_ = all[from].Mount(fmt.Sprintf("m%d_%d", worker, n), all[to]) // a circle is refused
				if err := all[worker].Add(NewTool(fmt.Sprintf("own%d", n), func() {})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, s := range all {
		want := 4 // its own
		for _, m := range s.catalog.Load().mounts {
			want += len(m.child.catalog.Load().list(annotation.Tool).sorted)
		}
		require.Len(t, s.catalog.Load().list(annotation.Tool).sorted, want, "server %d", i)
	}
}
