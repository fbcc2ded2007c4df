package middleware

import (
	"reflect"

	"github.com/mcpkit/mcpkit-go/internal/memo"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// SizeOf is how many bytes of content a result has, before it is encoded: texts, data and structured content. Questions to
// the client have none. It is false where that is not known: the content is read while it is sent, or the result is
// of a type of the program's own.
func SizeOf(result any) (int, bool) {
	n := 0
	switch r := result.(type) {
	case nil:
		return 0, false
	case *protocol.CallToolResult:
		return memo.Size(r), true
	case *protocol.GetPromptResult:
		for _, m := range r.Messages {
			n += memo.ContentSize(m.Content)
		}
		return n, true
	case *protocol.ReadResourceResult:
		for i := range r.Contents {
			n += memo.ContentsSize(&r.Contents[i])
		}
		return n, true
	case *protocol.InputRequiredResult:
		return 0, true
	}
	// Lists are bytes already.
	if v := reflect.ValueOf(result); v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return v.Len(), true
	}
	return 0, false
}
