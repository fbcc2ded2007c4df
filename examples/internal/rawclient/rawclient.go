// Package rawclient is a client for the tests of the examples. It sends JSON as a legacy or a
// modern client does, over HTTP or over the standard streams of a child process.
//
// It does not use the packages under test, except to encode header values.
package rawclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// The newest version of each family. Clients support the earlier ones, too.
const (
	Legacy = "2025-11-25"
	Modern = "2026-07-28"
)

// A message is any message of JSON-RPC.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *RPCError       `json:"error"`
	raw    []byte
}

// An RPCError is a protocol error.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// A Reply is the response to a request.
type Reply struct {
	Result        json.RawMessage
	Error         *RPCError
	Notifications []string // the methods of the notifications before the response
}

// A ToolResult is the result of tools/call.
type ToolResult struct {
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		MIMEType string `json:"mimeType"`
		Resource struct {
			URI      string `json:"uri"`
			MIMEType string `json:"mimeType"`
			Blob     []byte `json:"blob"`
		} `json:"resource"`
	} `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
}

// Text returns the text of the first content.
func (r ToolResult) Text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// A wire sends one message and returns everything received up to the response. For a notification
// it returns nothing.
type wire interface {
	exchange(ctx context.Context, m outgoing) ([]message, error)
}

// An outgoing message with the values of its HTTP headers.
type outgoing struct {
	id           string // "" for a notification
	method, name string
	body         []byte
}

// A Client is safe for concurrent use.
type Client struct {
	t       testing.TB
	version string
	via     wire
	lastID  atomic.Int64
	answer  Answerer // nil if the client does not answer server requests
}

// An Answerer answers a server request. It returns the result, a JSON object.
type Answerer func(method string, params json.RawMessage) string

// capabilities returns the capabilities that the client declares.
func (c *Client) capabilities() string {
	if c.answer == nil {
		return "{}"
	}
	return `{"elicitation":{},"sampling":{},"roots":{}}`
}

// begin opens the session of a legacy client. Modern clients have none.
func (c *Client) begin() *Client {
	if c.version == Modern {
		return c
	}
	reply := c.Request("initialize", `{"protocolVersion":"`+c.version+`","capabilities":`+c.capabilities()+`,"clientInfo":{"name":"test","version":"1"}}`)
	require.Nil(c.t, reply.Error)
	c.Notify("notifications/initialized", "{}")
	return c
}

// Request sends a request and fails the test if it gets no response. Params is an object, to which
// a modern client adds its _meta.
func (c *Client) Request(method, params string) Reply {
	c.t.Helper()
	reply, err := c.Try(c.t.Context(), fmt.Sprint(c.lastID.Add(1)), method, params)
	require.NoError(c.t, err)
	return reply
}

// Try is like Request, with a context and an ID. It returns the error of the transport.
func (c *Client) Try(ctx context.Context, id, method, params string) (Reply, error) {
	m := outgoing{id: id, method: method, name: nameOf(params)}
	if c.version == Modern {
		params = withMeta(params, c.capabilities())
	}
	m.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	messages, err := c.via.exchange(ctx, m)
	var reply Reply
	for _, in := range messages {
		if in.Method != "" {
			reply.Notifications = append(reply.Notifications, in.Method)
			continue
		}
		reply.Result, reply.Error = in.Result, in.Error
	}
	return reply, err
}

// Notify sends a notification.
func (c *Client) Notify(method, params string) {
	c.t.Helper()
	_, err := c.via.exchange(c.t.Context(), outgoing{method: method, body: fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)})
	require.NoError(c.t, err)
}

// Send sends a message unchanged and returns the response unchanged, or "" for a notification.
func (c *Client) Send(body string) string {
	c.t.Helper()
	var m message
	require.NoError(c.t, json.Unmarshal([]byte(body), &m), body)
	messages, err := c.via.exchange(c.t.Context(), outgoing{id: string(m.ID), method: m.Method, name: nameOf(string(m.Params)), body: []byte(body)})
	require.NoError(c.t, err)
	if len(messages) == 0 {
		return ""
	}
	return string(messages[len(messages)-1].raw)
}

// CallTool calls a tool and fails the test on a protocol error. Args is an object. When a modern
// server asks questions, CallTool answers them and repeats the call.
func (c *Client) CallTool(name, args string) ToolResult {
	c.t.Helper()
	call := fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)
	for more := ""; ; {
		reply := c.Request("tools/call", strings.TrimSuffix(call, "}")+more+"}")
		require.Nil(c.t, reply.Error)
		var asked inputRequired
		require.NoError(c.t, json.Unmarshal(reply.Result, &asked))
		if asked.ResultType == "input_required" {
			more = c.answers(asked)
			continue
		}
		var result ToolResult
		require.NoError(c.t, json.Unmarshal(reply.Result, &result))
		return result
	}
}

// An inputRequired is the result with which a modern server asks questions.
type inputRequired struct {
	ResultType    string `json:"resultType"`
	RequestState  string `json:"requestState"`
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	} `json:"inputRequests"`
}

// answers returns the members that the repeated call adds.
func (c *Client) answers(asked inputRequired) string {
	responses := map[string]json.RawMessage{}
	for key, q := range asked.InputRequests {
		responses[key] = json.RawMessage(c.answer(q.Method, q.Params))
	}
	encoded, err := json.Marshal(responses)
	require.NoError(c.t, err)
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, asked.RequestState, encoded)
}

// CallInto calls a tool, fails the test on an error, and decodes the structured content.
func (c *Client) CallInto(v any, name, args string) {
	c.t.Helper()
	result := c.CallTool(name, args)
	require.False(c.t, result.IsError, result.Text())
	require.NoError(c.t, json.Unmarshal(result.StructuredContent, v))
}

// withMeta adds the _meta of a modern request to an object.
func withMeta(params, capabilities string) string {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + Modern + `","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
	if before, after, ok := strings.Cut(params, `"_meta":{`); ok {
		return before + strings.TrimSuffix(meta, "}") + "," + after
	}
	head := strings.TrimSuffix(strings.TrimSpace(params), "}")
	if strings.HasSuffix(head, "{") {
		return head + meta + "}"
	}
	return head + "," + meta + "}"
}

// nameOf returns the value that the header Mcp-Name mirrors.
func nameOf(params string) string {
	var p struct{ Name, URI string }
	_ = json.NewDecoder(bytes.NewReader([]byte(params))).Decode(&p)
	if p.URI != "" {
		return p.URI
	}
	return p.Name
}
