package protocol_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	. "github.com/mcpkit/mcpkit-go/protocol"
)

// The envelopes of the specification's examples. They only separate the members, so that their
// contents can be decoded and encoded again. Package jsonrpc has the real ones.
type (
	request[P any] struct {
		JSONRPC string          `json:"jsonrpc,omitzero"`
		ID      json.RawMessage `json:"id,omitzero"`
		Method  string          `json:"method"`
		Params  P               `json:"params,omitzero"`
	}
	response[R any] struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  outcome[R]      `json:"result"`
	}
	wireError[D any] struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    D      `json:"data,omitzero"`
	}
	errorResponse[D any] struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitzero"`
		Error   wireError[D]    `json:"error"`
	}
)

// An outcome is a result, or the InputRequiredResult returned instead of it.
type outcome[R any] struct {
	done  R
	input *InputRequiredResult
}

func (o *outcome[R]) UnmarshalJSON(data []byte) error {
	if jsonx.IsString(jsonx.Member(data, "resultType"), ResultInputRequired) {
		o.input = new(InputRequiredResult)
		return jsonx.Unmarshal(data, o.input)
	}
	return jsonx.Unmarshal(data, &o.done)
}

func (o outcome[R]) MarshalJSON() ([]byte, error) {
	if o.input != nil {
		return jsonx.Marshal(o.input)
	}
	return jsonx.Marshal(o.done)
}

// goTypes maps each type that has examples in the specification to its Go type.
var goTypes = map[string]any{
	"AudioContent":                          AudioContent{},
	"BlobResourceContents":                  ResourceContents{},
	"BooleanSchema":                         PrimitiveSchema{},
	"CallToolRequest":                       request[CallToolParams]{},
	"CallToolRequestParams":                 CallToolParams{},
	"CallToolResult":                        CallToolResult{},
	"CallToolResultResponse":                response[CallToolResult]{},
	"CancelledNotification":                 request[CancelledParams]{},
	"CancelledNotificationParams":           CancelledParams{},
	"ClientCapabilities":                    ClientCapabilities{},
	"CompleteRequest":                       request[CompleteParams]{},
	"CompleteRequestParams":                 CompleteParams{},
	"CompleteResult":                        CompleteResult{},
	"CompleteResultResponse":                response[CompleteResult]{},
	"CreateMessageRequest":                  request[CreateMessageParams]{},
	"CreateMessageRequestParams":            CreateMessageParams{},
	"CreateMessageResult":                   CreateMessageResult{},
	"DiscoverRequest":                       request[EmptyParams]{},
	"DiscoverResult":                        DiscoverResult{},
	"DiscoverResultResponse":                response[DiscoverResult]{},
	"ElicitRequest":                         request[ElicitParams]{},
	"ElicitRequestFormParams":               ElicitParams{},
	"ElicitRequestURLParams":                ElicitParams{},
	"ElicitResult":                          ElicitResult{},
	"EmbeddedResource":                      EmbeddedResource{},
	"GetPromptRequest":                      request[GetPromptParams]{},
	"GetPromptRequestParams":                GetPromptParams{},
	"GetPromptResult":                       GetPromptResult{},
	"GetPromptResultResponse":               response[GetPromptResult]{},
	"HeaderMismatchError":                   errorResponse[json.RawMessage]{},
	"ImageContent":                          ImageContent{},
	"InputRequests":                         InputRequests{},
	"InputRequiredResult":                   InputRequiredResult{},
	"InputResponses":                        InputResponses{},
	"InternalError":                         wireError[json.RawMessage]{},
	"InvalidParamsError":                    wireError[json.RawMessage]{},
	"ListPromptsRequest":                    request[ListParams]{},
	"ListPromptsResult":                     ListPromptsResult{},
	"ListPromptsResultResponse":             response[ListPromptsResult]{},
	"ListResourceTemplatesRequest":          request[ListParams]{},
	"ListResourceTemplatesResult":           ListResourceTemplatesResult{},
	"ListResourceTemplatesResultResponse":   response[ListResourceTemplatesResult]{},
	"ListResourcesRequest":                  request[ListParams]{},
	"ListResourcesResult":                   ListResourcesResult{},
	"ListResourcesResultResponse":           response[ListResourcesResult]{},
	"ListRootsRequest":                      request[EmptyParams]{},
	"ListRootsResult":                       ListRootsResult{},
	"ListToolsRequest":                      request[ListParams]{},
	"ListToolsResult":                       ListToolsResult{},
	"ListToolsResultResponse":               response[ListToolsResult]{},
	"LoggingMessageNotification":            request[LoggingMessageParams]{},
	"LoggingMessageNotificationParams":      LoggingMessageParams{},
	"MethodNotFoundError":                   wireError[json.RawMessage]{},
	"MissingRequiredClientCapabilityError":  errorResponse[MissingClientCapabilityData]{},
	"ModelPreferences":                      ModelPreferences{},
	"NumberSchema":                          PrimitiveSchema{},
	"PaginatedRequestParams":                ListParams{},
	"ParseError":                            wireError[json.RawMessage]{},
	"ProgressNotification":                  request[ProgressParams]{},
	"ProgressNotificationParams":            ProgressParams{},
	"PromptListChangedNotification":         request[EmptyParams]{},
	"ReadResourceRequest":                   request[ReadResourceParams]{},
	"ReadResourceResult":                    ReadResourceResult{},
	"ReadResourceResultResponse":            response[ReadResourceResult]{},
	"Resource":                              Resource{},
	"ResourceLink":                          ResourceLink{},
	"ResourceListChangedNotification":       request[EmptyParams]{},
	"ResourceUpdatedNotification":           request[ResourceUpdatedParams]{},
	"ResourceUpdatedNotificationParams":     ResourceUpdatedParams{},
	"Root":                                  Root{},
	"SamplingMessage":                       SamplingMessage{},
	"ServerCapabilities":                    ServerCapabilities{},
	"StringSchema":                          PrimitiveSchema{},
	"SubscriptionsAcknowledgedNotification": request[SubscriptionsAcknowledgedParams]{},
	"SubscriptionsListenRequest":            request[SubscriptionsListenParams]{},
	"SubscriptionsListenResult":             SubscriptionsListenResult{},
	"SubscriptionsListenResultResponse":     response[SubscriptionsListenResult]{},
	"TextContent":                           TextContent{},
	"TextResourceContents":                  ResourceContents{},
	"TitledMultiSelectEnumSchema":           PrimitiveSchema{},
	"TitledSingleSelectEnumSchema":          PrimitiveSchema{},
	"Tool":                                  Tool{},
	"ToolListChangedNotification":           request[EmptyParams]{},
	"ToolResultContent":                     ToolResultContent{},
	"ToolUseContent":                        ToolUseContent{},
	"UnsupportedProtocolVersionError":       errorResponse[UnsupportedProtocolVersionData]{},
	"UntitledMultiSelectEnumSchema":         PrimitiveSchema{},
	"UntitledSingleSelectEnumSchema":        PrimitiveSchema{},
}

func TestExamplesRoundTrip(t *testing.T) {
	seen := roundTripFolder(t, filepath.Join("testdata", "examples"))
	for name := range goTypes {
		require.Contains(t, seen, name, "testdata/examples has no example of this type")
	}
}

// roundTripFolder runs dir/TYPE/*.json and returns the number of examples of each type.
func roundTripFolder(t *testing.T, dir string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	require.NoError(t, err)
	sort.Strings(files)
	seen := make(map[string]int)
	for _, file := range files {
		typeName := filepath.Base(filepath.Dir(file))
		seen[typeName]++
		t.Run(typeName+"/"+filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			zero, ok := goTypes[typeName]
			require.True(t, ok, "no Go type stands for %s", typeName)

			// Encode with this module's encoder and with encoding/json.
			v := reflect.New(reflect.TypeOf(zero))
			require.NoError(t, jsonx.Unmarshal(want, v.Interface()))
			got, err := jsonx.Marshal(v.Interface())
			require.NoError(t, err)
			requireSameJSON(t, want, got)

			std := reflect.New(reflect.TypeOf(zero))
			require.NoError(t, json.Unmarshal(want, std.Interface()))
			require.Equal(t, v.Interface(), std.Interface())
			got, err = json.Marshal(std.Elem().Interface())
			require.NoError(t, err)
			requireSameJSON(t, want, got)
		})
	}
	return seen
}

// requireSameJSON is like require.JSONEq, but compares numbers digit by digit.
func requireSameJSON(t *testing.T, want, got []byte) {
	t.Helper()
	var w, g any
	for _, side := range []struct {
		data []byte
		v    *any
	}{{want, &w}, {got, &g}} {
		d := json.NewDecoder(bytes.NewReader(side.data))
		d.UseNumber()
		require.NoError(t, d.Decode(side.v))
	}
	require.Equal(t, w, g)
}
