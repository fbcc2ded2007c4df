package gosdk

import (
	"context"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/wide"
)

// A registrar registers ten tools.
type registrar func(each func(func(name string)), s *mcp.Server)

func ten[K any](each func(func(name string)), s *mcp.Server) {
	var w wide.Tools[K]
	each(func(name string) { addTyped(s, name, w.M0) })
	each(func(name string) { addTyped(s, name, w.M1) })
	each(func(name string) { addTyped(s, name, w.M2) })
	each(func(name string) { addTyped(s, name, w.M3) })
	each(func(name string) { addTyped(s, name, w.M4) })
	each(func(name string) { addTyped(s, name, w.M5) })
	each(func(name string) { addTyped(s, name, w.M6) })
	each(func(name string) { addTyped(s, name, w.M7) })
	each(func(name string) { addTyped(s, name, w.M8) })
	each(func(name string) { addTyped(s, name, w.M9) })
}

func hundred[K any]() []registrar {
	return []registrar{ten[[10]K], ten[[11]K], ten[[12]K], ten[[13]K], ten[[14]K], ten[[15]K], ten[[16]K], ten[[17]K], ten[[18]K], ten[[19]K]}
}

// Wide adds n tools, at most 1,000, each with its own types of arguments and results.
func Wide(s *mcp.Server, n int) {
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

// addTyped lets go-sdk derive the schemas, as it does for tools without schemas.
func addTyped[In, Out any](s *mcp.Server, name string, f func(In) Out) {
	mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		return nil, f(in), nil
	})
}
