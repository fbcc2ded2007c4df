package tasks_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A web is a fleet that is served over HTTP. A client posts to one replica after the other.
type web struct {
	t    *testing.T
	urls []string
	next int
	http *http.Client
}

func openWeb(t *testing.T, all []*branch) *web {
	t.Helper()
	w := &web{t: t, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(w.http.CloseIdleConnections)
	for _, b := range all {
		h := streamable.NewHandler(b.srv, nil)
		server := httptest.NewServer(h)
		t.Cleanup(func() {
			h.Close()
			server.CloseClientConnections()
			server.Close()
		})
		w.urls = append(w.urls, server.URL)
	}
	return w
}

// send posts a message to the next replica.
func (w *web) send(message string, fields ...string) *http.Response {
	w.t.Helper()
	w.next++
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.urls[w.next%len(w.urls)], strings.NewReader(message))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := w.http.Do(req)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// modern sends a request of version 2026-07-28. It names what the header Mcp-Name says.
func (w *web) modern(method, name, params string) *http.Response {
	w.t.Helper()
	params = strings.Replace(strings.TrimSuffix(params, "}")+","+declared+"}", "{,", "{", 1)
	fields := []string{"MCP-Protocol-Version", string(protocol.V20260728), "Mcp-Method", method}
	if name != "" {
		fields = append(fields, "Mcp-Name", name)
	}
	resp := w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params), fields...)
	return resp
}

// result returns the result of a response.
func (w *web) result(resp *http.Response) string {
	w.t.Helper()
	body, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, resp.StatusCode, "%s", body)
	text := string(body)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_, text, _ = strings.Cut(text[strings.LastIndex(text, "data: {"):], "data: ")
	}
	result := member(w.t, text, "result")
	require.NotEmpty(w.t, result, "%s", body)
	return result
}

// get asks the next replica for a task.
func (w *web) get(id string) string {
	w.t.Helper()
	return w.result(w.modern("tasks/get", id, fmt.Sprintf(`{"taskId":%q}`, id)))
}

// TestTasksOverHTTPWorkAtAnyReplica makes each request at another replica than the one before.
func TestTasksOverHTTPWorkAtAnyReplica(t *testing.T) {
	all := branches(t, 3)
	w := openWeb(t, all)
	id := text(t, w.result(w.modern("tools/call", "trip", `{"name":"trip","arguments":{}}`)), "taskId")

	stream := w.modern("subscriptions/listen", "", fmt.Sprintf(`{"notifications":{"taskIds":[%q]}}`, id))
	require.Equal(t, http.StatusOK, stream.StatusCode)
	events := bufio.NewScanner(stream.Body)
	require.True(t, events.Scan())
	// await asks for the task, again with each notification, until it has the status.
	await := func(status string, seen string) string {
		t.Helper()
		for {
			if got := w.get(id); text(t, got, "status") == status && strings.Contains(got, seen) {
				return got
			}
			for events.Scan() && !strings.Contains(events.Text(), `"notifications/tasks"`) {
			}
			require.NotEmpty(t, events.Text(), "the stream has ended")
		}
	}
	await("input_required", "Where to?")
	w.result(w.modern("tasks/update", id, fmt.Sprintf(`{"taskId":%q,"inputResponses":%s}`, id, accept("where", `{"place":"Oslo"}`))))
	await("input_required", "Pay for Oslo?")
	w.result(w.modern("tasks/update", id, fmt.Sprintf(`{"taskId":%q,"inputResponses":%s}`, id, accept("pay", `{"confirm":true}`))))
	require.Contains(t, await("completed", ""), "ticket 7 to Oslo, paid true")

	id = text(t, w.result(w.modern("tools/call", "work", `{"name":"work","arguments":{"seconds":600}}`)), "taskId")
	w.result(w.modern("tasks/cancel", id, fmt.Sprintf(`{"taskId":%q}`, id)))
	require.Equal(t, "cancelled", text(t, w.get(id), "status"))
	require.Eventually(t, func() bool {
		causes := 0
		for _, b := range all {
			causes += len(noted(b.office, &b.office.causes))
		}
		return causes == 1
	}, time.Minute, 10*time.Millisecond, "the method ends")
}

// TestLegacyTasksOverHTTPWorkAtAnyReplica asks for the result at one replica, gets the question
// there, and answers at the next one.
func TestLegacyTasksOverHTTPWorkAtAnyReplica(t *testing.T) {
	w := openWeb(t, branches(t, 3))
	version := string(protocol.V20251125)
	opened := w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}`, version))
	w.result(opened)
	session := []string{"Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", version}
	require.Equal(t, http.StatusAccepted, w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...).StatusCode)

	made := w.result(w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"trip","arguments":{},"task":{}}}`, session...))
	id := text(t, made, "task", "taskId")
	stream := w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":%q}}`, id), session...)
	require.Equal(t, http.StatusOK, stream.StatusCode)
	events := bufio.NewScanner(stream.Body)
	next := func() string {
		t.Helper()
		for events.Scan() {
			if data, ok := strings.CutPrefix(events.Text(), "data: {"); ok {
				return "{" + data
			}
		}
		require.Fail(t, "the stream has ended")
		return ""
	}
	for _, content := range []string{`{"place":"Oslo"}`, `{"confirm":true}`} {
		question := next()
		require.Equal(t, "elicitation/create", text(t, question, "method"))
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":%s}}`, member(t, question, "id"), content)
		require.Equal(t, http.StatusAccepted, w.send(answer, session...).StatusCode)
	}
	require.Contains(t, next(), "ticket 7 to Oslo, paid true")
	require.Equal(t, "completed", text(t, w.result(w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":%q}}`, id), session...)), "status"))
}
