package mcpkit

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestResultsEncodeAsPackageProtocolEncodesThem(t *testing.T) {
	s := MustNew(nil, Name("test", "1"))
	text, ttl := "a \"text\"\nof ü", int64(0)
	meta := protocol.Meta{"a.example/b": json.RawMessage(`{"c":1}`), protocol.MetaServerInfo: json.RawMessage(`{"name":"own"}`)}
	for _, test := range []struct {
		name     string
		result   Result
		protocol any
		modern   bool // only: legacy results do not have all of its members
	}{
		{name: "no result", result: nil, protocol: &protocol.EmptyResult{}},
		{name: "no contents", result: &ResourceResult{}, protocol: &protocol.ReadResourceResult{}},
		{name: "contents", result: &ResourceResult{Contents: []protocol.ResourceContents{
			{URI: "note://1", MIMEType: "text/plain", Text: &text}, {URI: "note://2", Blob: []byte("bytes")}, {URI: "note://\x01", Meta: meta},
		}}, protocol: &protocol.ReadResourceResult{Contents: []protocol.ResourceContents{
			{URI: "note://1", MIMEType: "text/plain", Text: &text}, {URI: "note://2", Blob: []byte("bytes")}, {URI: "note://\x01", Meta: meta},
		}}},
		{name: "cached contents", modern: true,
			result:   &ResourceResult{Cache: protocol.Cache{TTLMs: &ttl, CacheScope: protocol.CachePublic}, Meta: meta},
			protocol: &protocol.ReadResourceResult{Cache: protocol.Cache{TTLMs: &ttl, CacheScope: protocol.CachePublic}, Meta: meta}},
		{name: "no messages", result: &PromptResult{}, protocol: &protocol.GetPromptResult{}},
		{name: "messages",
			result:   &PromptResult{Description: text, Meta: meta, Messages: []protocol.PromptMessage{User(text), Assistant("ok")}},
			protocol: &protocol.GetPromptResult{Description: text, Meta: meta, Messages: []protocol.PromptMessage{User(text), Assistant("ok")}}},
		{name: "tool result", result: &ToolResult{Content: []protocol.Content{Text(text)}, StructuredContent: JSON{`{"a":1}`}, Meta: meta},
			protocol: &protocol.CallToolResult{Content: []protocol.Content{Text(text)}, StructuredContent: json.RawMessage(`{"a":1}`), Meta: meta}},
		{name: "tool error", result: &ToolResult{Content: []protocol.Content{Text(text)}, IsError: true},
			protocol: &protocol.CallToolResult{Content: []protocol.Content{Text(text)}, IsError: true}},
	} {
		for _, version := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			if test.modern && !version.Modern() {
				continue
			}
			t.Run(test.name+", "+string(version), func(t *testing.T) {
				call := &Call{version: version, server: s}
				object, err := jsonx.Marshal(test.protocol)
				require.NoError(t, err)
				want, err := call.wire().appendObject(nil, object, protocol.ResultComplete)
				require.NoError(t, err)
				got, err := appendResult(nil, test.result, call.wire())
				require.NoError(t, err)
				require.Equal(t, string(want), string(got))
			})
		}
	}
}

func TestNilResultsDoNotEncode(t *testing.T) {
	call := &Call{version: protocol.V20260728, server: MustNew(nil)}
	for _, result := range []Result{(*ToolResult)(nil), (*PromptResult)(nil), (*ResourceResult)(nil), (*ObjectResult)(nil), (*InputRequiredResult)(nil)} {
		_, err := appendResult(nil, result, call.wire())
		require.EqualError(t, err, "the result is a nil pointer", "%T", result)
		_, known := result.Size()
		require.True(t, known)
	}
}
