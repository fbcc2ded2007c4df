package mcpkit_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

type benchAdd struct {
	A int `json:"a" validate:"required"`
	B int `json:"b" validate:"required"`
}

type benchSum struct {
	Sum int `json:"sum"`
}

type benchSearch struct {
	Query  string   `json:"query" validate:"required,min=1"`
	Limit  int      `json:"limit,omitempty" default:"10" validate:"min=1,max=100"`
	Tags   []string `json:"tags,omitempty"`
	Filter *struct {
		Field string `json:"field" validate:"required"`
		Op    string `json:"op" validate:"required,oneof=eq ne lt gt"`
		Value string `json:"value" validate:"required"`
	} `json:"filter,omitempty"`
}

type benchHit struct {
	ID      int      `json:"id"`
	Title   string   `json:"title"`
	URL     string   `json:"url"`
	Score   float64  `json:"score"`
	Tags    []string `json:"tags"`
	Snippet string   `json:"snippet"`
}

type benchHits struct {
	Hits []benchHit `json:"hits"`
}

type benchService struct {
	_ mcpkit.Info `name:"bench" version:"1"`
	_ struct {
		Page  mcpkit.Resource `uri:"bench://page/{id}" mime:"text/plain"`
		Raw   mcpkit.Resource `uri:"bench://raw"`
		Greet mcpkit.Prompt   `params:"name"`
	}
	hits []benchHit
	text string
}

func (*benchService) Add(in benchAdd) benchSum { return benchSum{in.A + in.B} }

func (s *benchService) Search(in benchSearch) benchHits { return benchHits{s.hits[:in.Limit]} }

func (s *benchService) Blob(context.Context) string { return s.text }

func (s *benchService) Page(_ context.Context, id string) string { return s.text[:1<<10] + id }

func (s *benchService) Raw() []byte { return []byte(s.text) }

func (*benchService) Greet(name string) string { return "Say hello to " + name + "." }

// benchPeer is a client without a session (2025-03-26, stateless) or one of a modern request on a
// transport without headers.
type benchPeer struct{ session *transport.Session }

func (benchPeer) Notify(context.Context, *jsonrpc.Request) error { return nil }

func (benchPeer) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}

func (p benchPeer) Session() *transport.Session { return p.session }

func (benchPeer) Header() transport.Header { return nil }

func newBenchServer(b testing.TB, opts ...mcpkit.Option) *mcpkit.Server {
	b.Helper()
	service := &benchService{}
	for i := range 100 {
		service.hits = append(service.hits, benchHit{
			ID: 1000 + i, Title: "A note about benchmarks", URL: "https://example.com/notes/xxxxxxxx", Score: 0.5 + float64(i)/256,
			Tags: []string{"go", "speed"}, Snippet: `What is measured is what "every server" must do, and what it does beside.`,
		})
	}
	for len(service.text) < 64<<10 {
		service.text += "All work and no play makes a benchmark dull.\n"
	}
	s, err := mcpkit.New(service, opts...)
	require.NoError(b, err)
	return s
}

// benchFamilies are the two families of versions.
var benchFamilies = []struct {
	name string
	meta string
}{
	{"legacy", ""},
	{"modern", `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`},
}

// benchRPC measures one request from its bytes to its bytes, for legacy and modern clients.
func benchRPC(b *testing.B, s *mcpkit.Server, method, params string) {
	for _, family := range benchFamilies {
		b.Run(family.name, func(b *testing.B) {
			peer := newBenchPeer(b, s, family.meta != "")
			body := []byte(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + family.meta + `}}`)
			var out []byte
			call := func() {
				msg, bad := jsonrpc.Decode(body)
				if bad != nil {
					b.Fatal(bad.Error)
				}
				resp := s.ServeRPC(b.Context(), msg.Request, peer)
				if resp.Error != nil {
					b.Fatal(resp.Error)
				}
				out = jsonrpc.AppendResponse(out[:0], resp)
			}
			call()
			require.NotContains(b, string(out), `"isError":true`)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// newBenchPeer makes the peer; legacy peers have a session.
func newBenchPeer(b testing.TB, s *mcpkit.Server, modern bool) transport.Peer {
	b.Helper()
	if modern {
		return &benchPeer{}
	}
	peer := &benchPeer{transport.NewSession("bench", nil)}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		msg, bad := jsonrpc.Decode([]byte(body))
		require.Nil(b, bad)
		if resp := s.ServeRPC(b.Context(), msg.Request, peer); resp != nil {
			require.Nil(b, resp.Error)
		}
	}
	return peer
}

func BenchmarkToolsCallAdd(b *testing.B) {
	benchRPC(b, newBenchServer(b), "tools/call", `"name":"add","arguments":{"a":19,"b":23}`)
}

func BenchmarkToolsCallSearch(b *testing.B) {
	benchRPC(b, newBenchServer(b), "tools/call",
		`"name":"search","arguments":{"query":"fast servers","limit":10,"tags":["go","mcp"],"filter":{"field":"year","op":"gt","value":"2024"}}`)
}

func BenchmarkToolsCallBlob(b *testing.B) {
	benchRPC(b, newBenchServer(b), "tools/call", `"name":"blob"`)
}

func BenchmarkResourcesRead(b *testing.B) {
	s := newBenchServer(b)
	b.Run("1 kB, template", func(b *testing.B) { benchRPC(b, s, "resources/read", `"uri":"bench://page/7"`) })
	b.Run("64 kB", func(b *testing.B) { benchRPC(b, s, "resources/read", `"uri":"bench://raw"`) })
}

func BenchmarkPromptsGet(b *testing.B) {
	benchRPC(b, newBenchServer(b), "prompts/get", `"name":"greet","arguments":{"name":"you"}`)
}

func BenchmarkToolsCallBadArguments(b *testing.B) {
	s := newBenchServer(b)
	peer := newBenchPeer(b, s, false)
	body := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":"x","c":1}}}`)
	b.ReportAllocs()
	for b.Loop() {
		msg, _ := jsonrpc.Decode(body)
		if resp := s.ServeRPC(b.Context(), msg.Request, peer); resp.Error != nil {
			b.Fatal(resp.Error)
		}
	}
}

func BenchmarkToolsList(b *testing.B) {
	s := newBenchServer(b)
	for i := range 96 {
		err := s.Add(mcpkit.NewTool("extra_"+strconv.Itoa(i), func(_ context.Context, in benchSearch) (benchHits, error) { return benchHits{}, nil }))
		require.NoError(b, err)
	}
	benchRPC(b, s, "tools/list", `"x":1`)
}

func BenchmarkMiddleware(b *testing.B) {
	for _, n := range []int{0, 1, 10} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := newBenchServer(b)
			for range n {
				s.Use(func(next mcpkit.Handler) mcpkit.Handler {
					return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) { return next(ctx, call) }
				})
			}
			benchRPC(b, s, "tools/call", `"name":"add","arguments":{"a":19,"b":23}`)
		})
	}
}

// BenchmarkStart measures the time until a server with a thousand tools can list them, per tool.
func BenchmarkStart(b *testing.B) {
	const tools = 1000
	names := make([]string, tools)
	for i := range names {
		names[i] = "tool_" + strconv.Itoa(i)
	}
	for name, batch := range map[string]int{"together": tools, "one by one": 1} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := mcpkit.MustNew(nil)
				for at := 0; at < tools; at += batch {
					items := make([]mcpkit.Item, 0, batch)
					for _, name := range names[at : at+batch] {
						items = append(items, mcpkit.NewTool(name, func(_ context.Context, in benchSearch) (benchHits, error) { return benchHits{}, nil }))
					}
					require.NoError(b, s.Add(items...))
				}
				msg, _ := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
				require.Nil(b, s.ServeRPC(b.Context(), msg.Request, &benchPeer{}).Error)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/tools, "µs/tool")
		})
	}
}
