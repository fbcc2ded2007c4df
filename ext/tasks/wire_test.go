package tasks_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// send is a transport: it sends a request as a user, "" for nobody, and returns the first message
// that comes back.
type send func(user, method, name, params string) string

func overHTTP(t *testing.T, srv *mcpkit.Server) send {
	handler := streamable.NewHandler(srv, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("User"); user != "" {
			r = r.WithContext(oauth.NewContext(r.Context(), &oauth.Principal{Subject: user}))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return func(user, method, name, params string) string {
		ctx, cancel := context.WithCancel(t.Context()) // ends subscriptions
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(message(method, params)))
		require.NoError(t, err)
		for key, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "User": user,
		} {
			req.Header.Set(key, value)
		}
		if name != "" {
			req.Header.Set("Mcp-Name", name)
		}
		resp, err := server.Client().Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if line := strings.TrimPrefix(lines.Text(), "data:"); strings.Contains(line, `"jsonrpc"`) {
				return line
			}
		}
		require.Fail(t, "no message came", "%v", lines.Err())
		return ""
	}
}

func overStdio(t *testing.T, srv *mcpkit.Server) send {
	return func(user, method, _, params string) string {
		in, client := io.Pipe()
		answers, out := io.Pipe()
		ctx := t.Context()
		if user != "" {
			ctx = oauth.NewContext(ctx, &oauth.Principal{Subject: user})
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = stdio.NewIO(in, out, nil).Serve(ctx, srv)
		}()
		_, err := io.WriteString(client, message(method, params)+"\n")
		require.NoError(t, err)
		line, err := bufio.NewReader(answers).ReadString('\n')
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, answers) }() // ends with out
		require.NoError(t, client.Close())
		<-done
		require.NoError(t, out.Close())
		return line
	}
}

// message returns a request of 2026-07-28 that declares the extension.
func message(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s}}`, method, params, declared)
}

func TestTasksOfOthersDoNotExistOnAnyTransport(t *testing.T) {
	for name, over := range map[string]func(*testing.T, *mcpkit.Server) send{"HTTP": overHTTP, "stdio": overStdio} {
		t.Run(name, func(t *testing.T) {
			o := openWith(t, tasks.New(tasks.PollInterval(time.Millisecond)))
			send := over(t, o.srv)
			id := text(t, send("ann", "tools/call", "trip", `"name":"trip"`), "result", "taskId")
			mine := func() string { return send("ann", "tasks/get", id, fmt.Sprintf(`"taskId":%q`, id)) }
			require.Eventually(t, func() bool { return strings.Contains(mine(), `"input_required"`) }, time.Minute, 5*time.Millisecond)
			for _, other := range []string{"eve", ""} {
				for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
					got := send(other, method, id, fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, id, accept("where", `{"place":"x"}`)))
					unknown := send(other, method, strings.Repeat("0", 32), fmt.Sprintf(`"taskId":"%032d","inputResponses":{}`, 0))
					require.Equal(t, unknown, strings.ReplaceAll(got, id, strings.Repeat("0", 32)), "it is like a task that does not exist")
					require.Contains(t, got, `"code":-32602`)
				}
				ack := send(other, "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, id))
				require.Contains(t, ack, `"taskIds":[]`)
			}
			require.Contains(t, send("ann", "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, id)), fmt.Sprintf(`"taskIds":[%q]`, id))
			require.Contains(t, mine(), `"where":`, "nothing has changed")
		})
	}
}
