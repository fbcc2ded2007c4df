package mcpgo

import (
	"context"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/wide"
)

// A registrar registers ten tools.
type registrar func(each func(func(name string)), s *server.MCPServer)

func ten[K any](each func(func(name string)), s *server.MCPServer) {
	var w wide.Tools[K]
	each(func(name string) { add(s, name, w.M0) })
	each(func(name string) { add(s, name, w.M1) })
	each(func(name string) { add(s, name, w.M2) })
	each(func(name string) { add(s, name, w.M3) })
	each(func(name string) { add(s, name, w.M4) })
	each(func(name string) { add(s, name, w.M5) })
	each(func(name string) { add(s, name, w.M6) })
	each(func(name string) { add(s, name, w.M7) })
	each(func(name string) { add(s, name, w.M8) })
	each(func(name string) { add(s, name, w.M9) })
}

func hundred[K any]() []registrar {
	return []registrar{ten[[10]K], ten[[11]K], ten[[12]K], ten[[13]K], ten[[14]K], ten[[15]K], ten[[16]K], ten[[17]K], ten[[18]K], ten[[19]K]}
}

// Wide adds n tools, at most 1,000, each with its own types of arguments and results.
func Wide(s *server.MCPServer, n int) {
	i := 0
	for _, some := range [][]registrar{
		hundred[int](), hundred[int8](), hundred[int16](), hundred[int32](), hundred[int64](),
		hundred[uint](), hundred[uint8](), hundred[uint16](), hundred[uint32](), hundred[uint64](),
	} {
		for _, register := range some {
			register(func(add func(name string)) {
				if i++; i <= n {
					add("tool" + strconv.Itoa(i))
				}
			}, s)
		}
	}
}

// add lets mcp-go derive the schemas.
func add[In, Out any](s *server.MCPServer, name string, f func(In) Out) {
	s.AddTool(mcp.NewTool(name, mcp.WithInputSchema[In](), mcp.WithOutputSchema[Out]()), mcp.NewStructuredToolHandler(
		func(_ context.Context, _ mcp.CallToolRequest, in In) (Out, error) { return f(in), nil }))
}
