package result

import (
	"io"
	"iter"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestTypesThatMakeNoResult(t *testing.T) {
	for want, test := range map[string]struct {
		kind  annotation.Kind
		types []reflect.Type
	}{
		"a result of type func() cannot be sent; return data, an io.Reader or an iter.Seq":                                                              {annotation.Tool, types[func()]()},
		"a result of type chan int cannot be sent; return data, an io.Reader or an iter.Seq":                                                            {annotation.Tool, types[chan int]()},
		"a result of the interface type io.Writer says too little; return any, or a concrete type":                                                      {annotation.Tool, types[io.Writer]()},
		"several results want to be the structured output; put them into one struct":                                                                    {annotation.Tool, append(types[[]int](), types[map[string]int]()...)},
		"*protocol.CallToolResult is the whole result; return nothing beside it but an error":                                                           {annotation.Tool, append(types[*protocol.CallToolResult](), types[string]()...)},
		"a prompt cannot return int; return a string, mcpkit.User(…), messages or content":                                                              {annotation.Prompt, types[int]()},
		"a prompt cannot return iter.Seq[string]; return a string, mcpkit.User(…), messages or content":                                                 {annotation.Prompt, types[iter.Seq[string]]()},
		"a prompt returns its messages: string, protocol.PromptMessage (mcpkit.User, mcpkit.Assistant), several, content, or *protocol.GetPromptResult": {annotation.Prompt, nil},
		"*protocol.TextContent is content, which is for tools and prompts; a resource returns string, []byte, mcpkit.Blob, io.Reader or any data":       {annotation.Resource, types[*protocol.TextContent]()},
		"a resource returns its contents: string, []byte, mcpkit.Blob, io.Reader, any data, or *protocol.ReadResourceResult":                            {annotation.Resource, nil},
	} {
		_, err := New(test.kind, test.types)
		require.EqualError(t, err, want)
	}
}

func types[T any]() []reflect.Type { return []reflect.Type{reflect.TypeFor[T]()} }
