// Package rawclient is what the tests of the examples talk to servers with: JSON as it stands on
// the wire, of a legacy or a modern client, over HTTP or over the standard streams of a child
// process.
//
// It knows nothing of the packages that it tests but for how a value is written in a header.
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

// The newest version of each family. Clients support the earlier ones as well.
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

// A Reply is what a request was answered with.
type Reply struct {
	Result        json.RawMessage
	Error         *RPCError
	Notifications []string // the methods of the notifications that came before the answer
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

// Text is the text of the first content.
func (r ToolResult) Text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// A wire carries one message and returns all that comes back until the answer; nothing for a
// notification.
type wire interface {
	exchange(ctx context.Context, m outgoing) ([]message, error)
}

// An outgoing message, and what the headers of HTTP say of it.
type outgoing struct {
	id           string // "" for a notification
	method, name string
	body         []byte
}

// A Client is one client. Its methods may be called concurrently.
type Client struct {
	t       testing.TB
	version string
	via     wire
	lastID  atomic.Int64
	answer  Answerer // nil for a client that cannot be asked
}

// An Answerer answers what a server asks the client: it returns the result, an object.
type Answerer func(method string, params json.RawMessage) string

// capabilities are what the client declares.
func (c *Client) capabilities() string {
	if c.answer == nil {
		return "{}"
	}
	return `{"elicitation":{},"sampling":{},"roots":{}}`
}

// begin opens the session of a legacy client; a modern one has none.
func (c *Client) begin() *Client {
	if c.version == Modern {
		return c
	}
	reply := c.Request("initialize", `{"protocolVersion":"`+c.version+`","capabilities":`+c.capabilities()+`,"clientInfo":{"name":"test","version":"1"}}`)
	require.Nil(c.t, reply.Error)
	c.Notify("notifications/initialized", "{}")
	return c
}

// Request sends a request and fails the test if no answer comes. To the params, an object, a modern
// client adds the _meta that every request of it has.
func (c *Client) Request(method, params string) Reply {
	c.t.Helper()
	reply, err := c.Try(c.t.Context(), fmt.Sprint(c.lastID.Add(1)), method, params)
	require.NoError(c.t, err)
	return reply
}

// Try is Request with a context and an id, and with the error of the transport.
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

// Send sends a message as it is and returns the answer as it is; "" for a notification.
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

// CallTool calls a tool, which must not fail as a protocol error. Args is an object. When a modern
// server asks something, it is answered and the call repeated, as often as need be.
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

// An inputRequired is the result by which a modern server asks.
type inputRequired struct {
	ResultType    string `json:"resultType"`
	RequestState  string `json:"requestState"`
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	} `json:"inputRequests"`
}

// answers are the members that the repeated call has besides.
func (c *Client) answers(asked inputRequired) string {
	responses := map[string]json.RawMessage{}
	for key, q := range asked.InputRequests {
		responses[key] = json.RawMessage(c.answer(q.Method, q.Params))
	}
	encoded, err := json.Marshal(responses)
	require.NoError(c.t, err)
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, asked.RequestState, encoded)
}

// CallInto calls a tool that must succeed and decodes its structured content.
func (c *Client) CallInto(v any, name, args string) {
	c.t.Helper()
	result := c.CallTool(name, args)
	require.False(c.t, result.IsError, result.Text())
	require.NoError(c.t, json.Unmarshal(result.StructuredContent, v))
}

// withMeta adds to an object what the _meta of a modern request needs.
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

// nameOf is what the header Mcp-Name mirrors.
func nameOf(params string) string {
	var p struct{ Name, URI string }
	_ = json.NewDecoder(bytes.NewReader([]byte(params))).Decode(&p)
	if p.URI != "" {
		return p.URI
	}
	return p.Name
}
