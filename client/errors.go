package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// ErrRejected is what a method of [Handlers] returns when a person refused what the server asked
// for.
var ErrRejected = errors.New("client: rejected by the user")

// A ToolError is the failure of a tool, told by the tool itself and meant for the model.
type ToolError struct {
	Tool   string
	Result *protocol.CallToolResult
}

// Error returns the text of the result.
func (e *ToolError) Error() string {
	text := resultText(e.Result)
	if text == "" {
		text = "the tool failed without saying why"
	}
	return fmt.Sprintf("tool %q: %s", e.Tool, text)
}

// resultText joins the text blocks of a result.
func resultText(r *protocol.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*protocol.TextContent); ok {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// A StatusError is an HTTP status that answers in place of the protocol: one that no JSON-RPC
// response came with, or one that is about the caller or about what stands in front of the server,
// whatever came with it (401, 403, 407, 429, 502, 503, 504).
type StatusError struct {
	Code   int
	Header http.Header
	Body   string         // its first 64 KiB
	RPC    *jsonrpc.Error // the error in the body; nil when the body is not a JSON-RPC error response
}

// Error names the status and what came with it.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server answered with HTTP status %d %s", e.Code, http.StatusText(e.Code))
	if e.RPC != nil {
		return text + ": " + e.RPC.Error()
	}
	if body := strings.TrimSpace(e.Body); body != "" {
		text += fmt.Sprintf(": %.200q", body)
	}
	return text
}

// Unwrap returns RPC.
func (e *StatusError) Unwrap() error {
	if e.RPC == nil {
		return nil
	}
	return e.RPC
}

// statusError reads the body of resp, which is not a success, and closes it.
func statusError(resp *http.Response) *StatusError {
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as much as there is
	e := &StatusError{Code: resp.StatusCode, Header: resp.Header, Body: string(body)}
	if m, bad := jsonrpc.Decode(body); bad == nil && m.Response != nil {
		e.RPC = m.Response.Error
	}
	return e
}

// aboutCaller reports whether the status is about the caller or about what stands in front of the
// server, not about the request.
func (e *StatusError) aboutCaller() bool {
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// An InvalidResponseError says that the server's answer is none that the protocol knows.
type InvalidResponseError struct {
	Method string
	Fault  string
}

// Error says what is wrong.
func (e *InvalidResponseError) Error() string {
	return fmt.Sprintf("%s: the server's answer is invalid: %s", e.Method, e.Fault)
}

func invalid(method, format string, args ...any) error {
	return &InvalidResponseError{Method: method, Fault: fmt.Sprintf(format, args...)}
}

// decodeResult decodes the result of method.
func decodeResult(method string, raw []byte, v any) error {
	if err := jsonx.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("client: %w", invalid(method, "%v", err))
	}
	return nil
}
