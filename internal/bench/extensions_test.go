package bench

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/answer"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/load"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/ours"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// extended are servers whose extensions the calls of the benchmark do not use.
var extended = []struct {
	name string
	opts func() []mcpkit.Option
}{
	{"none", func() []mcpkit.Option { return nil }},
	{"intercept", func() []mcpkit.Option {
		return []mcpkit.Option{mcpkit.Extend(mcpkit.Extension{ID: "com.example/nothing", Intercept: func(next mcpkit.Handler) mcpkit.Handler { return next }})}
	}},
	{"skills", func() []mcpkit.Option {
		return []mcpkit.Option{skills.FS(fstest.MapFS{"a/SKILL.md": {Data: []byte("---\nname: a\ndescription: b\n---\nc\n")}})}
	}},
	{"tasks", func() []mcpkit.Option { return []mcpkit.Option{tasks.New()} }},
}

// nobody is a peer without a transport.
type nobody struct{ session *transport.Session }

func (nobody) Notify(context.Context, *jsonrpc.Request) error { return nil }
func (nobody) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}
func (n nobody) Session() *transport.Session { return n.session }
func (nobody) Header() transport.Header      { return nil }

// early is a peer that can be answered while a method runs, as on stdio. Methods then have no
// goroutine of their own, unless an extension or a middleware may wait for them.
type early struct{ nobody }

func (early) RespondEarly(*jsonrpc.Response) {}

// newExtended returns a server with the extensions, without a transport.
func newExtended(tb testing.TB, peer transport.Peer, opts []mcpkit.Option) answer.Func {
	s, err := mcpkit.New(&ours.Bench{}, opts...)
	require.NoError(tb, err)
	require.NoError(tb, s.Start(tb.Context()))
	tb.Cleanup(func() { _ = s.Close() })
	return func(dst, msg []byte) []byte {
		m, bad := jsonrpc.Decode(msg)
		require.Nil(tb, bad)
		if resp := s.ServeRPC(tb.Context(), m.Request, peer); resp != nil {
			dst = jsonrpc.AppendResponse(dst, resp)
		}
		return dst
	}
}

// calling returns a function that calls the tool add.
func calling(tb testing.TB, peer transport.Peer, opts []mcpkit.Option) func() {
	respond := newExtended(tb, peer, opts)
	respond(nil, []byte(load.Initialize))
	respond(nil, []byte(load.Initialized))
	job := load.Jobs[0]
	msg, _ := job.Body(false)
	out := respond(nil, msg)
	require.NoError(tb, job.Check(out))
	return func() { out = respond(out[:0], msg) }
}

// BenchmarkExtensions measures tools/call (2025-11-25) on servers with extensions that the call does
// not use.
func BenchmarkExtensions(b *testing.B) {
	for name, peer := range peers {
		for _, ext := range extended {
			b.Run(name+"/"+ext.name, func(b *testing.B) {
				call := calling(b, peer(), ext.opts())
				b.ReportAllocs()
				for b.Loop() {
					call()
				}
			})
		}
	}
}

var peers = map[string]func() transport.Peer{
	"memory": func() transport.Peer { return &nobody{transport.NewSession("", nil)} },
	"stdio":  func() transport.Peer { return &early{nobody{transport.NewSession("", nil)}} },
}

// The seam for extensions costs a server without them nothing, and one whose extensions a call does
// not use at most the goroutine that middleware costs, too.
func TestExtensionsThatACallDoesNotUseHardlyAllocate(t *testing.T) {
	for name, peer := range peers {
		allocs := map[string]float64{}
		for _, ext := range extended {
			allocs[ext.name] = testing.AllocsPerRun(1000, calling(t, peer(), ext.opts()))
		}
		t.Log(name, allocs)
		require.InDelta(t, allocs["none"], allocs["skills"], 0.5, "%s: it intercepts nothing", name)
		require.LessOrEqual(t, allocs["intercept"], allocs["none"]+2.5, name)
		require.LessOrEqual(t, allocs["tasks"], allocs["intercept"]+1.5, name)
	}
}
