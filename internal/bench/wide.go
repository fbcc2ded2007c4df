package main

import (
	"context"
	"iter"
	"slices"
	"strconv"

	gomcp "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A wideTool registers a tool with each SDK, which derives the schemas from types that no other tool
// has, so that caching types does not help.
type wideTool struct {
	mcpkit func(s *mcpkit.Server, name string)
	goSDK  func(s *mcp.Server, name string)
	mcpGo  func(s *server.MCPServer, name string)
}

type wideInput[K any] struct {
	Query  string       `json:"query" validate:"required,min=1"`
	Limit  int          `json:"limit,omitempty" default:"10" validate:"min=1,max=100"`
	Tags   []string     `json:"tags,omitempty"`
	Filter *work.Filter `json:"filter,omitempty"`
}

type wideOutput[K any] struct {
	Hits []work.Hit `json:"hits"`
}

func wide[K any](wideInput[K]) (out wideOutput[K], err error) { return out, nil }

// more returns the tools beyond the first four.
func more(tools int) iter.Seq2[string, wideTool] {
	return func(yield func(string, wideTool) bool) {
		for i, t := range thousand()[:tools-4] {
			if !yield("tool"+strconv.Itoa(i), t) {
				return
			}
		}
	}
}

func thousand() []wideTool {
	return slices.Concat(hundred[int](), hundred[int8](), hundred[int16](), hundred[int32](), hundred[int64](),
		hundred[uint](), hundred[uint8](), hundred[uint16](), hundred[uint32](), hundred[uint64]())
}

func hundred[K any]() []wideTool {
	return slices.Concat(ten[[0]K](), ten[[1]K](), ten[[2]K](), ten[[3]K](), ten[[4]K](),
		ten[[5]K](), ten[[6]K](), ten[[7]K](), ten[[8]K](), ten[[9]K]())
}

func ten[K any]() []wideTool {
	return []wideTool{one[*[0]K](), one[*[1]K](), one[*[2]K](), one[*[3]K](), one[*[4]K](),
		one[*[5]K](), one[*[6]K](), one[*[7]K](), one[*[8]K](), one[*[9]K]()}
}

func one[K any]() wideTool {
	type in = wideInput[K]
	type out = wideOutput[K]
	return wideTool{
		mcpkit: func(s *mcpkit.Server, name string) { must(s.Add(mcpkit.NewTool(name, wide[K]))) },
		goSDK: func(s *mcp.Server, name string) {
			mcp.AddTool(s, &mcp.Tool{Name: name},
				func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, out, error) {
					out, err := wide(in)
					return nil, out, err
				})
		},
		mcpGo: func(s *server.MCPServer, name string) {
			tool := gomcp.NewTool(name, gomcp.WithInputSchema[in](), gomcp.WithOutputSchema[out]())
			s.AddTool(tool, gomcp.NewStructuredToolHandler(
				func(_ context.Context, _ gomcp.CallToolRequest, in in) (out, error) { return wide(in) }))
		},
	}
}
