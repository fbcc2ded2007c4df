package protocol

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// The fast reader returns the same result as the full one.
func FuzzToolResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[]}`, `{}`, ` { "content" : [ { "type" : "text" , "text" : "a\n\u00e9" } ] } `, `{"content":null}`, `{"content":[{"type":"text"}]}`,
		`{"content":[{"type":"text","text":"x","_meta":{}}],"isError":false}`, `{"content":[{"type":"text","text":null}]}`,
		`{"structuredContent":{"a":[1,2]},"isError":true,"resultType":"complete","_meta":{"k":{"a":1}}}`, `{"isError":null,"_meta":null,"resultType":null}`,
		`{"structuredContent":null}`, `{"x":1}`, `{"content":[{"type":"image","data":"","mimeType":""}]}`, `{"_meta":{"a\u0062":1}}`, `null`, `[]`,
		`{"content":[{"text":"x","type":"text"},{"type":"text","text":"y"}]}`, `{"content":[],"content":[]}`, `{"structuredContent":{"a":1,"a":2}}`,
		`{"content":[{"type":"text","type":"text","text":""}]}`, `{"content":[{"type":"text","text":""`, `{"content":[}`, `{"isError"`, `{"_meta":{"a":{"b":1,"b":1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The full reader refuses duplicate members.
		if !jsonx.Valid(data) && !(json.Valid(data) && utf8.Valid(data) && !bytes.Contains(data, []byte(`\u`))) {
			_, _ = readToolResult(data, true) // which ends
			return
		}
		fast, ok := readToolResult(data, true)
		if !ok {
			return
		}
		var slow CallToolResult
		require.NoError(t, slow.decode(data))
		require.Equal(t, slow, fast)
		out, ok := ReadToolOutput(data)
		require.Equal(t, fast.StructuredContent != nil && !fast.IsError, ok)
		if ok {
			fast.Content = nil
			require.Equal(t, &fast, out)
		}
	})
}

func TestReadToolOutputSkipsContent(t *testing.T) {
	out, ok := ReadToolOutput([]byte(`{"content":[{"type":"text","text":"{}"},{"type":"image"}],"structuredContent":{"a":[1]},"resultType":"complete"}`))
	require.True(t, ok)
	require.Equal(t, &CallToolResult{StructuredContent: []byte(`{"a":[1]}`), ResultType: "complete"}, out)
	for _, raw := range []string{
		`{"content":[]}`, `{"content":[],"structuredContent":{},"isError":true}`, `{"content":{},"structuredContent":{}}`,
		`{"structuredContent":{"a":1,"a":2}}`, `{"structuredContent":{},"structuredContent":{}}`, `{"structuredContent":{},"other":1}`, `{}`, `[]`,
	} {
		_, ok := ReadToolOutput([]byte(raw))
		require.False(t, ok, raw)
	}
}

func TestCommonToolResultsAreReadInOnePass(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"content":[{"type":"text","text":"{\"sum\":42}"}],"structuredContent":{"sum":42}}`: true,
		`{"content":[],"isError":false,"resultType":"complete","_meta":{"a":{"name":"x"}}}`:  true,
		`{"content":[{"type":"text","text":"x","annotations":{}}]}`:                          false,
		`{"content":[{"type":"image","data":"","mimeType":"image/png"}]}`:                    false,
		`{"content":[],"other":1}`:    false,
		`{"isError":"no"}`:            false,
		`{"resultType":1}`:            false,
		`{"_meta":[]}`:                false,
		`{"content":{}}`:              false,
		`[]`:                          false,
		`{"content":[],"content":[]}`: false,
		`{"content":[{"type":"text","text":"","text":""}]}`: false,
		`{"structuredContent":{"a":1,"a":2}}`:               false,
		`{"content":[]} 1`:                                  false,
	} {
		_, ok := readToolResult([]byte(raw), true)
		require.Equal(t, want, ok, raw)
	}
}
