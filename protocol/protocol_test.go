package protocol_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	. "github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Required members are written even if they are not set; optional ones are left out.
func TestZeroValuesKeepRequiredMembers(t *testing.T) {
	for _, test := range []struct {
		v    any
		want string
	}{
		{ListToolsResult{}, `{"tools":[]}`},
		{ListPromptsResult{}, `{"prompts":[]}`},
		{ListResourcesResult{}, `{"resources":[]}`},
		{ListResourceTemplatesResult{}, `{"resourceTemplates":[]}`},
		{ReadResourceResult{}, `{"contents":[]}`},
		{GetPromptResult{}, `{"messages":[]}`},
		{CallToolResult{}, `{"content":[]}`},
		{CompleteResult{}, `{"completion":{"values":[]}}`},
		{ListRootsResult{}, `{"roots":[]}`},
		{CreateMessageParams{}, `{"messages":[],"maxTokens":0}`},
		{CreateMessageResult{}, `{"role":"","content":[],"model":""}`},
		{DiscoverResult{}, `{"supportedVersions":[],"capabilities":{}}`},
		{InputRequiredResult{}, `{"resultType":"input_required"}`},
		{EmptyResult{}, `{}`},
		{EmptyResult{ResultType: ResultComplete}, `{"resultType":"complete"}`},
		{Tool{}, `{"name":"","inputSchema":{"type":"object","properties":{}}}`},
		{Resource{}, `{"uri":"","name":""}`},
		{ResourceTemplate{}, `{"uriTemplate":"","name":""}`},
		{ResourceContents{}, `{"uri":"","text":""}`},
		{Prompt{}, `{"name":""}`},
		{Root{}, `{"uri":""}`},
		{Implementation{}, `{"name":"","version":""}`},
		{Icon{}, `{"src":""}`},
		{InitializeParams{}, `{"protocolVersion":"","capabilities":{},"clientInfo":{"name":"","version":""}}`},
		{InitializeResult{}, `{"protocolVersion":"","capabilities":{},"serverInfo":{"name":"","version":""}}`},
		{CallToolParams{}, `{"name":""}`},
		{GetPromptParams{}, `{"name":""}`},
		{ReadResourceParams{}, `{"uri":""}`},
		{ListParams{}, `{}`},
		{CompleteParams{}, `{"ref":{"type":""},"argument":{"name":"","value":""}}`},
		{CompletionRef{Type: RefPrompt}, `{"type":"ref/prompt","name":""}`},
		{CompletionRef{Type: RefResource}, `{"type":"ref/resource","uri":""}`},
		{ProgressParams{}, `{"progressToken":null,"progress":0}`},
		{LoggingMessageParams{}, `{"level":"","data":null}`},
		{SetLevelParams{}, `{"level":""}`},
		{CancelledParams{}, `{}`},
		{ElicitParams{}, `{"message":""}`},
		{ElicitResult{}, `{"action":""}`},
		{SubscriptionsListenParams{}, `{"notifications":{}}`},
		{SubscriptionsAcknowledgedParams{}, `{"notifications":{}}`},
		{TextContent{}, `{"type":"text","text":""}`},
		{ImageContent{}, `{"type":"image","data":"","mimeType":""}`},
		{AudioContent{}, `{"type":"audio","data":"","mimeType":""}`},
		{ResourceLink{}, `{"type":"resource_link","uri":"","name":""}`},
		{EmbeddedResource{}, `{"type":"resource","resource":{"uri":"","text":""}}`},
		{ToolUseContent{}, `{"type":"tool_use","id":"","name":"","input":{}}`},
		{ToolResultContent{}, `{"type":"tool_result","toolUseId":"","content":[]}`},
		{Contents(nil), `[]`},
		{SamplingContents(nil), `[]`},
		{Cache{TTLMs: new(int64), CacheScope: CachePrivate}, `{"ttlMs":0,"cacheScope":"private"}`},
	} {
		got, err := jsonx.Marshal(test.v)
		require.NoError(t, err)
		require.Equal(t, test.want, string(got), "%T by jsonx", test.v)
		got, err = json.Marshal(test.v)
		require.NoError(t, err)
		require.Equal(t, test.want, string(got), "%T by encoding/json", test.v)
	}
}

func TestStructuredContentDistinguishesNullFromAbsent(t *testing.T) {
	for _, test := range []struct {
		wire string
		want json.RawMessage
	}{
		{`{"content":[]}`, nil},
		{`{"content":[],"structuredContent":null}`, json.RawMessage(`null`)},
		{`{"content":[],"structuredContent":false}`, json.RawMessage(`false`)},
		{`{"content":[],"structuredContent":{"b":1,"a":1.50}}`, json.RawMessage(`{"b":1,"a":1.50}`)},
	} {
		var r CallToolResult
		require.NoError(t, json.Unmarshal([]byte(test.wire), &r))
		require.Equal(t, test.want, r.StructuredContent)
		got, err := r.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, test.wire, string(got))
	}
}

func TestAppendMembersLeavesRoomForMore(t *testing.T) {
	r := CallToolResult{Content: []Content{&TextContent{Text: "a\n<b>"}}, StructuredContent: json.RawMessage("{\n  \"a\": [1, 2]\n}")}
	got, err := r.AppendMembers([]byte(`{"x":1,`))
	require.NoError(t, err)
	require.Equal(t, `{"x":1,"content":[{"type":"text","text":"a\n<b>"}],"structuredContent":{"a":[1,2]}`, string(got))
}

func TestBrokenRawJSONIsRefused(t *testing.T) {
	bad := json.RawMessage(`{"a":`)
	for _, test := range []struct {
		r   CallToolResult
		err string
	}{
		{CallToolResult{StructuredContent: bad}, "structuredContent: not valid JSON"},
		{CallToolResult{StructuredContent: json.RawMessage{}}, "structuredContent: not valid JSON"},
		{CallToolResult{StructuredContent: json.RawMessage(`1,"isError":true`)}, "structuredContent: not valid JSON"},
		{CallToolResult{StructuredContent: json.RawMessage(`{"a":1,"a":2}`)}, "structuredContent: not valid JSON"},
		{CallToolResult{Meta: Meta{"k": bad}}, "_meta: k: not valid JSON"},
		{CallToolResult{Content: []Content{&TextContent{}, nil}}, "content 1: content is nil"},
		{CallToolResult{Content: []Content{&TextContent{Meta: Meta{"k": bad}}}}, "content 0: _meta: k: not valid JSON"},
		{CallToolResult{Content: []Content{&ToolUseContent{Input: bad}}}, "content 0: input: not valid JSON"},
		{CallToolResult{Content: []Content{&UnknownContent{}}}, "content 0: content of an unknown type is not a JSON object"},
		{CallToolResult{Content: []Content{&ToolResultContent{Content: Contents{nil}}}}, "content 0: content 0: content is nil"},
	} {
		_, err := test.r.AppendJSON(nil)
		require.EqualError(t, err, test.err)
	}
}

func TestContentIsReadByItsType(t *testing.T) {
	for _, test := range []struct {
		wire string
		want Content
		err  string
	}{
		{wire: ` {"text":"a","type":"text"} `, want: &TextContent{Text: "a"}},
		{wire: `{"type":"image","data":"AQI=","mimeType":"image/gif"}`, want: &ImageContent{Data: []byte{1, 2}, MIMEType: "image/gif"}},
		{wire: `{"type":"new","x":[1,2]}`, want: &UnknownContent{Type: "new", Raw: json.RawMessage(`{"type":"new","x":[1,2]}`)}},
		{wire: `{"type":"Text","text":"a"}`, want: &UnknownContent{Type: "Text", Raw: json.RawMessage(`{"type":"Text","text":"a"}`)}},
		{wire: `{"text":"a"}`, err: `content has no "type"`},
		{wire: `{"type":null}`, err: `content has no "type"`},
		{wire: `null`, err: `content must be an object`},
		{wire: `[]`, err: `content must be an object`},
		{wire: `{"type":"text","type":"text"}`, err: `content is not valid JSON`},
		{wire: `{"type":"text"`, err: `content is not valid JSON`},
		{wire: ``, err: `content is not valid JSON`},
	} {
		got, err := UnmarshalContent([]byte(test.wire))
		if test.err != "" {
			require.EqualError(t, err, test.err, test.wire)
			require.Nil(t, got)
			continue
		}
		require.NoError(t, err, test.wire)
		require.Equal(t, test.want, got)
	}
	_, err := UnmarshalContent([]byte(`{"type":"image","data":"not base64","mimeType":"image/gif"}`))
	require.Error(t, err)
}

func TestContentTypeIsTheWireName(t *testing.T) {
	for want, c := range map[string]Content{
		"text": &TextContent{}, "image": &ImageContent{}, "audio": &AudioContent{}, "resource_link": &ResourceLink{},
		"resource": &EmbeddedResource{}, "tool_use": &ToolUseContent{}, "tool_result": &ToolResultContent{}, "x": &UnknownContent{Type: "x"},
	} {
		require.Equal(t, want, ContentType(c))
	}
}

func TestPromptMessageNeedsContent(t *testing.T) {
	var m PromptMessage
	require.ErrorContains(t, json.Unmarshal([]byte(`{"role":"user"}`), &m), "message has no content")
	_, err := json.Marshal(PromptMessage{Role: RoleUser})
	require.ErrorContains(t, err, "content is nil")
}

func TestMetaKeepsUnknownKeys(t *testing.T) {
	wire := `{"_meta":{"a":{"b":[1.0,null]},"progressToken":7,"z":"\u00e9"}}`
	var p ListParams
	require.NoError(t, json.Unmarshal([]byte(wire), &p))
	require.Equal(t, `"\u00e9"`, string(p.Meta["z"]))

	var token int
	ok, err := p.Meta.Decode(MetaProgressToken, &token)
	require.True(t, ok)
	require.NoError(t, err)
	require.Equal(t, 7, token)
	ok, err = p.Meta.Decode("absent", &token)
	require.False(t, ok)
	require.NoError(t, err)

	require.NoError(t, p.Meta.Set(MetaServerInfo, Implementation{Name: "a", Version: "1"}))
	got, err := p.Meta.AppendJSON(nil)
	require.NoError(t, err)
	require.Equal(t, `{"a":{"b":[1.0,null]},"io.modelcontextprotocol/serverInfo":{"name":"a","version":"1"},"progressToken":7,"z":"\u00e9"}`, string(got))
}

func TestVersionsAreLegacyOrModern(t *testing.T) {
	for _, test := range []struct {
		v                     Version
		known, modern, legacy bool
	}{
		{V20241105, true, false, true},
		{V20250326, true, false, true},
		{V20250618, true, false, true},
		{V20251125, true, false, true},
		{V20260728, true, true, false},
		{"2027-01-01", false, true, false},
		{"2026-07-27", false, false, false},
		{"v999", false, false, false},
		{"9999-9a-99", false, false, false},
		{"9999x99-99", false, false, false},
		{"", false, false, false},
	} {
		require.Equal(t, test.known, test.v.Known(), test.v)
		require.Equal(t, test.modern, test.v.Modern(), test.v)
		require.Equal(t, test.legacy, test.v.Legacy(), test.v)
	}
	require.Equal(t, Latest, Supported[0])
	require.Equal(t, LatestLegacy, SupportedLegacy[0])
}

func TestLevelsAreOrdered(t *testing.T) {
	levels := []LoggingLevel{LevelDebug, LevelInfo, LevelNotice, LevelWarning, LevelError, LevelCritical, LevelAlert, LevelEmergency}
	for i, l := range levels {
		require.Equal(t, i+1, l.Severity())
		require.True(t, l.Valid())
	}
	for _, l := range []LoggingLevel{"", "Debug", "warn"} {
		require.Zero(t, l.Severity())
		require.False(t, l.Valid())
	}
}

func TestElicitationModes(t *testing.T) {
	for _, test := range []struct {
		c         *ElicitationCapability
		form, url bool
	}{
		{nil, false, false},
		{&ElicitationCapability{}, true, false},
		{&ElicitationCapability{Form: Object{}}, true, false},
		{&ElicitationCapability{URL: Object{}}, false, true},
		{&ElicitationCapability{Form: Object{}, URL: Object{}}, true, true},
	} {
		require.Equal(t, test.form, test.c.SupportsForm())
		require.Equal(t, test.url, test.c.SupportsURL())
	}
}

func TestErrorsHaveTheDataOfTheSchema(t *testing.T) {
	for _, test := range []struct {
		got  *jsonrpc.Error
		want *jsonrpc.Error
	}{
		{HeaderMismatch("header %s is missing", HeaderMethod), &jsonrpc.Error{Code: -32020, Message: "header Mcp-Method is missing"}},
		{MissingClientCapability(ClientCapabilities{Sampling: &SamplingCapability{}}, "tool %q needs sampling", "a"),
			&jsonrpc.Error{Code: -32021, Message: `tool "a" needs sampling`, Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}},
		{UnsupportedProtocolVersion(`v"9`, Supported),
			&jsonrpc.Error{Code: -32022, Message: `unsupported protocol version "v\"9"`, Data: json.RawMessage(`{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"v\"9"}`)}},
		{UnsupportedProtocolVersion("x", []Version{Latest}),
			&jsonrpc.Error{Code: -32022, Message: `unsupported protocol version "x"`, Data: json.RawMessage(`{"supported":["2026-07-28"],"requested":"x"}`)}},
		{ResourceNotFound(V20251125, "a:b"), &jsonrpc.Error{Code: -32002, Message: `resource "a:b" not found`, Data: json.RawMessage(`{"uri":"a:b"}`)}},
		{ResourceNotFound(V20260728, "a:b"), &jsonrpc.Error{Code: -32602, Message: `resource "a:b" not found`, Data: json.RawMessage(`{"uri":"a:b"}`)}},
		{MissingClientCapability(ClientCapabilities{Tasks: json.RawMessage(`{`)}, "x"), nil},
	} {
		if test.want == nil {
			require.Equal(t, jsonrpc.CodeInternalError, test.got.Code)
			continue
		}
		require.Equal(t, test.want, test.got)
	}
	require.True(t, IsResourceNotFound(ResourceNotFound(V20241105, "a:b")))
	require.True(t, IsResourceNotFound(ResourceNotFound(V20260728, "a:b")))
	require.True(t, IsResourceNotFound(fmt.Errorf("client: %w", ResourceNotFound(V20260728, "a:b"))))
	require.False(t, IsResourceNotFound((*jsonrpc.Error)(nil)))
	require.False(t, IsResourceNotFound(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown tool")))
	require.False(t, IsResourceNotFound(nil))
}

func TestStructuredContentThatReplacesValidOneIsChecked(t *testing.T) {
	var r CallToolResult
	r.SetValid(json.RawMessage(`{}`))
	r.StructuredContent = json.RawMessage(`{`)
	_, err := r.AppendJSON(nil)
	require.EqualError(t, err, "structuredContent: not valid JSON")
}

func TestToolResultsKeepUnknownMembers(t *testing.T) {
	const wire = `{"content":[],"structuredContent":{"a":1},"isError":true,"a":[1, 2],"com.example/cost":{"tokens":7},"_meta":{"k":1}}`
	var r CallToolResult
	require.NoError(t, json.Unmarshal([]byte(wire), &r))
	require.Len(t, r.Extra, 2)
	out, err := r.AppendJSON(nil)
	require.NoError(t, err)
	require.JSONEq(t, wire, string(out))
	require.NoError(t, json.Unmarshal([]byte(`{"content":[]}`), &r))
	require.Nil(t, r.Extra)
	out, err = (&CallToolResult{Extra: map[string]json.RawMessage{"isError": json.RawMessage("true")}}).AppendJSON(nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"content":[]}`, string(out), "what the protocol has is not said in another way")
}

func TestModernRequestsAreRecognized(t *testing.T) {
	const key = `"io.modelcontextprotocol/protocolVersion"`
	for _, test := range []struct {
		name, header, params string
		want                 bool
	}{
		{name: "nothing said", params: `{}`},
		{name: "no params"},
		{name: "version in _meta", params: `{"_meta":{` + key + `:"2026-07-28"}}`, want: true},
		{name: "unknown version in _meta", params: `{"_meta":{` + key + `:"v999"}}`, want: true},
		{name: "legacy version in _meta", params: `{"_meta":{` + key + `:"2025-11-25"}}`, want: true},
		{name: "mistyped version in _meta", params: `{"_meta":{` + key + `:7}}`, want: true},
		{name: "escaped key", params: `{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}}`, want: true},
		{name: "other _meta", params: `{"_meta":{"progressToken":1}}`},
		{name: "key beside _meta", params: `{` + key + `:"2026-07-28"}`},
		{name: "key deeper in _meta", params: `{"_meta":{"a":{` + key + `:"2026-07-28"}}}`},
		{name: "_meta is not an object", params: `{"_meta":[` + key + `]}`},
		{name: "_meta is null", params: `{"_meta":null}`},
		{name: "legacy header", header: "2025-06-18", params: `{}`},
		{name: "legacy header, modern _meta", header: "2025-06-18", params: `{"_meta":{` + key + `:"2026-07-28"}}`, want: true},
		{name: "modern header", header: "2026-07-28", params: `{}`, want: true},
		{name: "unknown header", header: "v999", want: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			wire := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
			if test.params != "" {
				wire = `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + test.params + `}`
			}
			m, bad := jsonrpc.Decode([]byte(wire))
			require.Nil(t, bad)
			require.Equal(t, test.want, IsModern(test.header, m.Request.Param("_meta")))
		})
	}
}

func TestTasksAreFlatOnTheWire(t *testing.T) {
	at := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	task := Task{TaskID: "7", Status: TaskWorking, CreatedAt: at, LastUpdatedAt: at}
	const common = `"taskId":"7","createdAt":"2026-11-22T18:00:00Z","lastUpdatedAt":"2026-11-22T18:00:00Z"`
	interval, ttl := int64(200), int64(60_000)
	slow := task
	slow.StatusMessage, slow.PollIntervalMs, slow.TTLMs = "half", &interval, &ttl
	asks, failed, done := task, task, task
	asks.Status, failed.Status, done.Status = TaskInputRequired, TaskFailed, TaskCompleted
	for _, test := range []struct {
		value any
		want  string
	}{
		{&CreateTaskResult{Task: task, ResultType: ResultTask}, `{` + common + `,"status":"working","ttlMs":null,"resultType":"task"}`},
		{&CreateTaskResult{Task: slow, ResultType: ResultTask}, `{` + common + `,"status":"working","statusMessage":"half","ttlMs":60000,"pollIntervalMs":200,"resultType":"task"}`},
		{&DetailedTask{Task: asks, ResultType: ResultComplete, InputRequests: InputRequests{"a": {Method: MethodRootsList}}},
			`{` + common + `,"status":"input_required","ttlMs":null,"inputRequests":{"a":{"method":"roots/list"}},"resultType":"complete"}`},
		{&DetailedTask{Task: failed, Error: jsonrpc.Errorf(-32603, "the server restarted")},
			`{` + common + `,"status":"failed","ttlMs":null,"error":{"code":-32603,"message":"the server restarted"}}`},
		{&DetailedTask{Task: done, Result: []byte(`{"content":[]}`)}, `{` + common + `,"status":"completed","ttlMs":null,"result":{"content":[]}}`},
		{&UpdateTaskParams{TaskID: "7", InputResponses: InputResponses{"a": []byte(`{"roots":[]}`)}}, `{"taskId":"7","inputResponses":{"a":{"roots":[]}}}`},
	} {
		text, err := jsonx.Marshal(test.value)
		require.NoError(t, err)
		require.JSONEq(t, test.want, string(text))
	}
	var back DetailedTask
	require.NoError(t, jsonx.Unmarshal([]byte(`{`+common+`,"status":"failed","ttlMs":null,"error":{"code":-1,"message":"m","data":[1]},"resultType":"complete"}`), &back))
	require.Equal(t, &jsonrpc.Error{Code: -1, Message: "m", Data: []byte("[1]")}, back.Error)
}

func TestTaskStatusesAreTerminalOrNot(t *testing.T) {
	for status, terminal := range map[TaskStatus]bool{
		TaskWorking: false, TaskInputRequired: false, TaskCompleted: true, TaskFailed: true, TaskCancelled: true,
	} {
		require.Equal(t, terminal, status.Terminal(), status)
		require.True(t, status.Known(), status)
	}
	require.False(t, TaskStatus("done").Known())
	require.False(t, TaskStatus("").Terminal())
}

func TestServerCard(t *testing.T) {
	notes := Implementation{Name: "com.example/notes", Title: "Notes", Version: "1.2.0", Description: "Keeps."}
	card, err := ServerCard(notes, "https://example.com/mcp", []Version{V20260728})
	require.NoError(t, err)
	require.JSONEq(t, `{"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
		"name": "com.example/notes", "title": "Notes", "version": "1.2.0", "description": "Keeps.", "remotes": [
		{"type": "streamable-http", "url": "https://example.com/mcp", "supportedProtocolVersions": ["2026-07-28"]}]}`, string(card))
	for _, test := range []struct{ name, version, description, title, url, want string }{
		{"notes", "1", "d", "", "", "is not like com.example/notes"},
		{"com.example/a/b", "1", "d", "", "", "is not like com.example/notes"},
		{"com.example/my notes", "1", "d", "", "", "is not like com.example/notes"},
		{"a/" + strings.Repeat("b", 199), "1", "d", "", "", "is not like com.example/notes"},
		{"a/b", "^1.2.0", "d", "", "", "is not one version"},
		{"a/b", "1", "", "", "", "the description needs 1 to 100"},
		{"a/b", "1", strings.Repeat("ä", 101), "", "", "the description needs 1 to 100"},
		{"a/b", "1", "d", strings.Repeat("a", 101), "", "a title at most 100"},
		{"a/b", "1", strings.Repeat("ä", 100), "", "example.com/mcp", "does not begin with http"},
	} {
		info := Implementation{Name: test.name, Version: test.version, Description: test.description, Title: test.title}
		_, err := ServerCard(info, test.url, nil)
		require.ErrorContains(t, err, test.want)
	}
}

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

func TestHeaderValuesRoundTrip(t *testing.T) {
	for _, test := range []struct{ plain, header string }{
		{"", ""},
		{"a", "a"},
		{"a b  c", "a b  c"},
		{"~!@#$%^&*()_+{}|:\"<>?", "~!@#$%^&*()_+{}|:\"<>?"},
		{" a", "=?base64?IGE=?="},
		{"a ", "=?base64?YSA=?="},
		{" ", "=?base64?IA==?="},
		{"a\tb", "=?base64?YQli?="},
		{"\ta", "=?base64?CWE=?="},
		{"a\r\nb", "=?base64?YQ0KYg==?="},
		{"\x00", "=?base64?AA==?="},
		{"\x7f", "=?base64?fw==?="},
		{"é", "=?base64?w6k=?="},
		{"日本", "=?base64?5pel5pys?="},
		{"=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="},
		{"=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="},
		{"=?base64?YQ==", "=?base64?YQ=="},
		{"YQ==?=", "YQ==?="},
		{"=?BASE64?YQ==?=", "=?BASE64?YQ==?="},
	} {
		require.Equal(t, test.header, EncodeHeader(test.plain))
		got, err := DecodeHeader(test.header)
		require.NoError(t, err)
		require.Equal(t, test.plain, got)
	}
}

func TestHeaderValuesOfOtherImplementationsAreRead(t *testing.T) {
	const (
		notBase64 = "header value is not valid base64"
		notPlain  = "header value has characters other than visible ASCII; encode it as =?base64?...?="
		notUTF8   = "header value is not UTF-8"
	)
	for _, test := range []struct{ header, want, err string }{
		{header: " a\t", want: "a"},
		{header: "=?base64?YQ==?=", want: "a"},
		{header: "=?base64??=", want: ""},
		{header: "=?base64?=", want: "=?base64?="}, // the marks overlap: literal
		{header: "=?base64?YQ==?", want: "=?base64?YQ==?"},
		{header: "?base64?YQ==?=", want: "?base64?YQ==?="},
		{header: "=?Base64?YQ==?=", want: "=?Base64?YQ==?="},
		{header: "=?base64?YQ=?=", err: notBase64},
		{header: "=?base64?YQ?=", err: notBase64},
		{header: "=?base64?YR==?=", err: notBase64}, // bits that say nothing must be zero
		{header: "=?base64?Y-_=?=", err: notBase64}, // the alphabet of URLs
		{header: "=?base64?Y Q==?=", err: notBase64},
		{header: "=?base64?Y\r\nQ==?=", err: notBase64},
		{header: "=?base64?/w==?=", err: notUTF8},
		{header: "é", err: notPlain},
		{header: "a\tb", err: notPlain},
		{header: "a\x7f", err: notPlain},
	} {
		got, err := DecodeHeader(test.header)
		if test.err != "" {
			require.EqualError(t, err, test.err, test.header)
			continue
		}
		require.NoError(t, err, test.header)
		require.Equal(t, test.want, got)
	}
}

func TestParamHeaderMirrorsArguments(t *testing.T) {
	for _, test := range []struct {
		raw, header string
		absent      bool
	}{
		{raw: `"eu"`, header: "eu"},
		{raw: `""`, header: ""},
		{raw: `"\u00e9"`, header: "=?base64?w6k=?="},
		{raw: `true`, header: "true"},
		{raw: `false`, header: "false"},
		{raw: `0`, header: "0"},
		{raw: `-0`, header: "0"},
		{raw: `-42`, header: "-42"},
		{raw: `42.0`, header: "42"},
		{raw: `4.2e1`, header: "42"},
		{raw: `9007199254740991`, header: "9007199254740991"},
		{raw: `9007199254740992`, absent: true},
		{raw: `99999999999999999999`, absent: true},
		{raw: `1e400`, absent: true},
		{raw: `1.5`, absent: true},
		{raw: `null`, absent: true},
		{raw: `{}`, absent: true},
		{raw: `[]`, absent: true},
		{raw: ``, absent: true},
	} {
		got, ok := ParamHeader(json.RawMessage(test.raw))
		require.Equal(t, !test.absent, ok, test.raw)
		require.Equal(t, test.header, got, test.raw)
		if ok {
			require.True(t, ParamHeaderMatches(got, json.RawMessage(test.raw)), test.raw)
		}
	}
}

func TestParamHeaderMatchesArguments(t *testing.T) {
	for _, test := range []struct {
		header, raw string
		want        bool
	}{
		{"eu", `"eu"`, true},
		{" eu ", `"eu"`, true},
		{"=?base64?ZXU=?=", `"eu"`, true},
		{"EU", `"eu"`, false},
		{"42", `42`, true},
		{"42.0", `42`, true},
		{"42", `42.0`, true},
		{"43", `42`, false},
		{"42", `"42"`, true},
		{"+42", `42`, false},
		{"0x2a", `42`, false},
		{"042", `42`, false},
		{"42 43", `42`, false},
		{"NaN", `42`, false},
		{"true", `true`, true},
		{"True", `true`, false},
		{"1", `true`, false},
		{"", `""`, true},
		{"", `null`, false},
		{"null", `null`, false},
		{"é", `"é"`, false},
	} {
		require.Equal(t, test.want, ParamHeaderMatches(test.header, json.RawMessage(test.raw)), "%q %s", test.header, test.raw)
	}
}

func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "a", " a", "é", "=?base64?YQ==?=", "=?base64?YR==?=", "\xff", "a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := EncodeHeader(s)
		for _, c := range []byte(encoded) {
			require.True(t, c >= ' ' && c <= '~')
		}
		if utf8.ValidString(s) {
			got, err := DecodeHeader(encoded)
			require.NoError(t, err)
			require.Equal(t, s, got)
		}
		if plain, err := DecodeHeader(s); err == nil {
			again, err := DecodeHeader(EncodeHeader(plain))
			require.NoError(t, err)
			require.Equal(t, plain, again)
		}
	})
}
