package protocol_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	. "github.com/mcpkit/mcpkit-go/protocol"
)

// peerTypes are the types that are decoded from messages of a peer.
var peerTypes = []any{
	CallToolParams{}, CancelledParams{}, CompleteParams{}, CreateMessageParams{}, EmptyParams{}, ElicitParams{},
	ElicitationCompleteParams{}, GetPromptParams{}, InitializeParams{}, ListParams{},
	LoggingMessageParams{}, ProgressParams{}, ReadResourceParams{}, ResourceUpdatedParams{}, SetLevelParams{}, SubscribeParams{},
	SubscriptionsAcknowledgedParams{}, SubscriptionsListenParams{},
	CallToolResult{}, CompleteResult{}, CreateMessageResult{}, DiscoverResult{}, ElicitResult{}, EmptyResult{}, GetPromptResult{},
	InitializeResult{}, InputRequiredResult{}, ListPromptsResult{}, ListResourceTemplatesResult{}, ListResourcesResult{}, ListRootsResult{},
	ListToolsResult{}, ReadResourceResult{}, SubscriptionsListenResult{},
	ClientCapabilities{}, ServerCapabilities{}, Contents{}, SamplingContents{}, PrimitiveSchema{},
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `[null]`, `{}`, `0`, `""`, `{"_meta":null}`, `{"_meta":{}}`, `{"_meta":[null]}`, `{"_meta":{"a":null}}`,
		`{"content":[null]}`, `{"content":{}}`, `{"content":null}`, `{"content":[{"type":"resource"}]}`, `{"content":[{"type":"x"}]}`,
		`{"messages":[null]}`, `{"messages":[{}]}`, `{"messages":[{"role":"user","content":[null]}]}`, `{"tools":[null]}`, `{"tools":null}`,
		`{"contents":[null]}`, `{"contents":[{"blob":"="}]}`, `{"ref":null}`, `{"ref":{"type":"ref/prompt"}}`, `{"arguments":[null]}`,
		`{"inputResponses":null}`, `{"inputResponses":[null]}`, `{"inputRequests":{"a":null}}`, `{"capabilities":null}`, `{"capabilities":{"tools":null}}`,
		`{"elicitation":{"form":null}}`, `{"experimental":{"a":null}}`, `{"progressToken":{}}`, `{"structuredContent":null}`, `{"resource":null}`,
	} {
		f.Add([]byte(seed))
	}
	files, err := filepath.Glob(filepath.Join("testdata", "examples", "*", "*.json"))
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, zero := range peerTypes {
			v := reflect.New(reflect.TypeOf(zero))
			if jsonx.Unmarshal(data, v.Interface()) != nil {
				continue
			}
			// A decoded value can be encoded, and decodes to the same value again.
			once, err := jsonx.Marshal(v.Interface())
			require.NoError(t, err, "%T", zero)
			require.True(t, jsonx.Valid(once), "%T: %s", zero, once)
			w := reflect.New(reflect.TypeOf(zero))
			require.NoError(t, jsonx.Unmarshal(once, w.Interface()), "%T: %s", zero, once)
			twice, err := jsonx.Marshal(w.Interface())
			require.NoError(t, err)
			require.Equal(t, string(once), string(twice), "%T", zero)
		}
	})
}

func FuzzUnmarshalContent(f *testing.F) {
	for _, seed := range []string{`null`, `[null]`, `{}`, `{"type":null}`, `{"type":"text","text":"a"}`, `{"type":"resource","resource":{"uri":"a","blob":""}}`,
		`{"type":"tool_result","content":[{"type":"tool_result","content":[null]}]}`, `{"type":"x","a":"\ud800"}`, ` {"type":"x"} `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := UnmarshalContent(data)
		if err != nil {
			require.Nil(t, c)
			return
		}
		once, err := c.AppendJSON(nil)
		require.NoError(t, err)
		again, err := UnmarshalContent(once)
		require.NoError(t, err)
		require.Equal(t, ContentType(c), ContentType(again))
		twice, err := again.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}
