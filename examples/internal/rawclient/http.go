package rawclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// HTTP returns a client for the server at url, with a version such as [Legacy] or [Modern].
func HTTP(t testing.TB, version, url string) *Client {
	return Unopened(t, version, url).begin()
}

// Answering is like [HTTP], for a client that answers server requests.
func Answering(t testing.TB, version, url string, answer Answerer) *Client {
	c := Unopened(t, version, url)
	c.answer = answer
	c.via.(*httpBinding).answer = answer
	return c.begin()
}

// Unopened is like [HTTP], but does not send the handshake of a legacy client.
func Unopened(t testing.TB, version, url string) *Client {
	b := &httpBinding{version: version, url: url, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(b.http.CloseIdleConnections)
	return &Client{t: t, version: version, via: b}
}

type httpBinding struct {
	version, url string
	http         *http.Client
	answer       Answerer
	session      atomic.Pointer[string]
}

func (b *httpBinding) exchange(ctx context.Context, m outgoing) ([]message, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if m.method != "initialize" {
		req.Header.Set("MCP-Protocol-Version", b.version)
	}
	if b.version == Modern {
		req.Header.Set("Mcp-Method", m.method)
		if m.name != "" {
			req.Header.Set("Mcp-Name", protocol.EncodeHeader(m.name))
		}
	}
	if id := b.session.Load(); id != nil {
		req.Header.Set("Mcp-Session-Id", *id)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		b.session.Store(&id)
	}
	if m.id == "" {
		return nil, nil
	}
	return b.readReply(ctx, resp)
}

// readReply reads JSON or an event stream.
func (b *httpBinding) readReply(ctx context.Context, resp *http.Response) ([]message, error) {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return b.readEvents(ctx, resp.Body)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("status %d: %q is not a message: %w", resp.StatusCode, body, err)
	}
	m.raw = body
	return []message{m}, nil
}

// readEvents reads events with one data line each until the stream ends, and answers the requests
// among them.
func (b *httpBinding) readEvents(ctx context.Context, r io.Reader) ([]message, error) {
	var messages []message
	for scanner := bufio.NewScanner(r); ; {
		if !scanner.Scan() {
			return messages, scanner.Err()
		}
		data, ok := strings.CutPrefix(scanner.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		var m message
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return nil, err
		}
		m.raw = []byte(data)
		if m.Method != "" && m.ID != nil {
			body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, b.answer(m.Method, m.Params))
			if _, err := b.exchange(ctx, outgoing{body: body}); err != nil {
				return nil, err
			}
			continue
		}
		messages = append(messages, m)
	}
}
