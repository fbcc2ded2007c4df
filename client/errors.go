package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// ErrRejected is the error that a method of [Handlers] returns if the user refuses the request.
var ErrRejected = errors.New("client: rejected by the user")

// A ToolError is an error that a tool reports in its result, meant for the model.
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
	var texts []string
	for _, c := range r.Content {
		if t, ok := c.(*protocol.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// A StatusError is an HTTP status in place of a result: one without a JSON-RPC response in the
// body, or one about the caller or a proxy, with any body (401, 403, 407, 429, 502, 503, 504).
type StatusError struct {
	Code   int
	Header http.Header
	Body   string         // its first 64 KiB
	RPC    *jsonrpc.Error // the error in the body; nil when the body is not a JSON-RPC error response
}

// Error returns the status and the error or the text of the body, unless that is HTML.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server responded with HTTP status %d %s", e.Code, http.StatusText(e.Code))
	if e.RPC != nil {
		return text + ": " + e.RPC.Error()
	}
	if mime, _, _ := strings.Cut(e.Header.Get("Content-Type"), ";"); strings.EqualFold(mime, "text/html") {
		return text // followed by a page for browsers
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

// statusError reads and closes the body of resp.
func statusError(resp *http.Response) *StatusError {
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // up to an error
	e := &StatusError{Code: resp.StatusCode, Header: resp.Header, Body: string(body)}
	if m, bad := jsonrpc.Decode(body); bad == nil && m.Response != nil {
		e.RPC = m.Response.Error
	}
	return e
}

// aboutCaller reports whether the status is about the caller or a proxy, not about the request.
func (e *StatusError) aboutCaller() bool {
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// An InvalidResponseError reports a response that violates the protocol.
type InvalidResponseError struct {
	Method string
	Name   string // of the tool, prompt or resource; may be empty
	Fault  string
}

// Error returns the method, the name and the fault.
func (e *InvalidResponseError) Error() string {
	return fmt.Sprintf("%s: the server's response is invalid: %s", called(e.Method, e.Name), e.Fault)
}

func invalid(method, format string, args ...any) error {
	return &InvalidResponseError{Method: method, Fault: fmt.Sprintf(format, args...)}
}

// decodeResult decodes the result of method for name, which may be empty.
func decodeResult(method, name string, raw []byte, v any) error {
	if err := jsonx.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("client: %w", &InvalidResponseError{method, name, err.Error()})
	}
	return nil
}
