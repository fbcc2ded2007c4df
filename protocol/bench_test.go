package protocol_test

import (
	"encoding/json"
	"testing"

	. "github.com/mcpkit/mcpkit-go/protocol"
)

func BenchmarkAppendTextResult(b *testing.B) {
	r := &CallToolResult{Content: []Content{&TextContent{Text: "The sum is 42.\nAll is well."}}}
	benchmarkAppend(b, r)
}

func BenchmarkAppendStructuredResult(b *testing.B) {
	r := &CallToolResult{Content: []Content{&TextContent{Text: `{"sum":42,"words":["a","b"]}`}}, StructuredContent: json.RawMessage(`{"sum":42,"words":["a","b"]}`)}
	benchmarkAppend(b, r)
}

func benchmarkAppend(b *testing.B, r *CallToolResult) {
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = r.AppendMembers(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
