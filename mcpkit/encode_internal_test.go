package mcpkit

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestResultsThatAreMetOftenEncodeAsAnyOther(t *testing.T) {
	s := MustNew(nil, Name("test", "1"))
	text, ttl := "a \"text\"\nof ü", int64(0)
	meta := protocol.Meta{"a.example/b": json.RawMessage(`{"c":1}`), protocol.MetaServerInfo: json.RawMessage(`{"name":"own"}`)}
	for _, test := range []struct {
		name   string
		result any
		err    string // of both ways; empty when there is none
	}{
		{name: "no contents", result: &protocol.ReadResourceResult{}},
		{name: "contents", result: &protocol.ReadResourceResult{Contents: []protocol.ResourceContents{
			{URI: "note://1", MIMEType: "text/plain", Text: &text}, {URI: "note://2", Blob: []byte("bytes")}, {URI: "note://\x01", Meta: meta},
		}}},
		{name: "cached contents", result: &protocol.ReadResourceResult{Cache: protocol.Cache{TTLMs: &ttl, CacheScope: protocol.CachePublic}, Meta: meta}},
		{name: "contents of a type", result: &protocol.ReadResourceResult{ResultType: "partial", Meta: meta}},
		{name: "nil contents", result: (*protocol.ReadResourceResult)(nil), err: "a result is an object, not null"},
		{name: "no messages", result: &protocol.GetPromptResult{}},
		{name: "messages", result: &protocol.GetPromptResult{Description: text, Meta: meta, Messages: []protocol.PromptMessage{User(text), Assistant("ok")}}},
		{name: "messages of a type", result: &protocol.GetPromptResult{ResultType: "partial"}},
		{name: "nil messages", result: (*protocol.GetPromptResult)(nil), err: "a result is an object, not null"},
	} {
		for _, version := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			t.Run(test.name+", "+string(version), func(t *testing.T) {
				call := &Call{server: s, version: version}
				want, wantErr := s.encodeAny(call, test.result)
				got, err := s.encode(call, test.result)
				if test.err != "" {
					require.EqualError(t, wantErr, test.err)
					require.EqualError(t, err, test.err)
					return
				}
				require.NoError(t, wantErr)
				require.NoError(t, err)
				require.Equal(t, string(want), string(got))
			})
		}
	}
}
