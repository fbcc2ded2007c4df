package resource_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A desk has a tool with a page that runs as a task. All that it has needs a scope.
type desk struct {
	_ struct {
		Erase mcpkit.Tool `scopes:"notes:write" task:"optional" app:"ui://board"`
	}
}

func (*desk) Erase(ctx context.Context, in struct{ Note string }) (bool, error) {
	return mcpkit.Confirm(ctx, "Erase?", mcpkit.Key("sure"))
}

// extensions is a guarded server with tasks, skills and apps, and a task of ann.
type extensions struct {
	m       *matrix
	handler http.Handler
	task    string
}

func (m *matrix) newExtensions() *extensions {
	const skill = "---\nname: erasing\ndescription: hush\n---\nhush\n"
	srv, err := mcpkit.New(&desk{}, mcpkit.Authenticated(), mcpkit.Logger(m.logger), tasks.New(),
		skills.FS(fstest.MapFS{"erasing/SKILL.md": {Data: []byte(skill)}}, skills.Scopes("notes:write")),
		apps.Pages(apps.Page{URI: "ui://board", HTML: "<title>hush</title>"}))
	require.NoError(m.t, err)
	m.t.Cleanup(func() { require.NoError(m.t, srv.Close()) })
	transport := streamable.NewHandler(srv, &streamable.Options{Logger: m.logger})
	m.t.Cleanup(transport.Close)
	x := &extensions{m: m, handler: m.realGuard().Wrap(transport)}
	created := x.serve(x.ask("ann", "notes:write", "tools/call", "erase", `"name":"erase","arguments":{"Note":"hush"}`))
	x.task = jsonx.String(jsonx.Member(jsonx.Member([]byte(created), "result"), "taskId"))
	require.Len(m.t, x.task, 32, created)
	return x
}

// serve returns the body of a response that is not refused.
func (x *extensions) serve(r *http.Request) string {
	w := httptest.NewRecorder()
	x.handler.ServeHTTP(w, r)
	require.Equal(x.m.t, http.StatusOK, w.Code, w.Body.String())
	require.NotContains(x.m.t, w.Body.String(), `"error"`)
	return w.Body.String()
}

// ask returns a request of a subject with a scope, in version 2026-07-28. "" means no token.
func (x *extensions) ask(subject, scope, method, name, params string) *http.Request {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, params)
	var token claims
	if subject != "" {
		token = claims{"sub": subject, "scope": scope}
	}
	r := x.m.post(token, "", strings.Replace(body, "{,", "{", 1))
	for field, value := range map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		if value != "" {
			r.Header.Set(field, value)
		}
	}
	return r
}

// legacy returns a request of a subject with a scope in a session of version 2025-11-25.
func (x *extensions) legacy(subject, scope, method, params string) *http.Request {
	token := claims{"sub": subject, "scope": scope}
	return x.m.post(token, x.m.open(x.handler, token), fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{%s}}`, method, params))
}

// Methods of extensions.
func (m *matrix) extended() []row {
	x := m.extensions
	id := fmt.Sprintf(`"taskId":%q`, x.task)
	noTask := fmt.Sprintf("there is no task %q", x.task)
	rows := []row{
		{"a task of the principal", x.handler, x.ask("ann", "notes:write", "tasks/get", x.task, id), 200, "", ""},
		{"a tool that needs another scope", x.handler, x.ask("ann", "notes:read", "tools/call", "erase", `"name":"erase","arguments":{"Note":"hush"}`), 200, "-32602", `unknown tool "erase"`},
		{"a page that needs another scope", x.handler, x.ask("ann", "notes:read", "resources/read", "ui://board", `"uri":"ui://board"`), 200, "-32602", `resource "ui://board" not found`},
		{"a page without a token", x.handler, x.ask("", "", "resources/read", "ui://board", `"uri":"ui://board"`), 401, "", ""},
		{"a skill that needs another scope", x.handler, x.ask("ann", "notes:read", "skills/get", "skill://erasing/SKILL.md", `"uri":"skill://erasing/SKILL.md"`), 200, "-32602", `there is no skill "skill://erasing/SKILL.md"`},
		{"a skill without a token", x.handler, x.ask("", "", "skills/get", "skill://erasing/SKILL.md", `"uri":"skill://erasing/SKILL.md"`), 401, "", ""},
		{"the directory of a skill that needs another scope", x.handler, x.ask("ann", "notes:read", "resources/directory/read", "skill://erasing", `"uri":"skill://erasing"`), 200, "-32602", `"skill://erasing" is not a directory`},
		{"a file of a skill that needs another scope", x.handler, x.ask("ann", "notes:read", "resources/read", "skill://erasing/SKILL.md", `"uri":"skill://erasing/SKILL.md"`), 200, "-32602", `resource "skill://erasing/SKILL.md" not found`},
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		params := id + `,"inputResponses":{"sure":{"action":"accept","content":{"confirm":true}}}`
		rows = append(rows,
			row{method + " for a task of another principal", x.handler, x.ask("eve", "notes:write", method, x.task, params), 200, "-32602", noTask},
			row{method + " without the scope of the tool", x.handler, x.ask("ann", "notes:read", method, x.task, params), 200, "-32602", noTask},
			row{method + " without a token", x.handler, x.ask("", "", method, x.task, params), 401, "", ""},
		)
	}
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		rows = append(rows,
			row{"2025-11-25: " + method + " for a task of another principal", x.handler, x.legacy("eve", "notes:write", method, id), 200, "-32602", noTask},
			row{"2025-11-25: " + method + " without the scope of the tool", x.handler, x.legacy("ann", "notes:read", method, id), 200, "-32602", noTask},
		)
	}
	return rows
}

// What a caller may not have is not in lists either. The task of ann waits as before.
func TestListsHideWhatOthersHave(t *testing.T) {
	m := newMatrix(t)
	x := m.extensions
	for _, test := range []struct{ method, has string }{
		{"tools/list", "erase"}, {"resources/list", "ui://board"}, {"skills/list", "skill://erasing/SKILL.md"},
	} {
		require.Contains(t, x.serve(x.ask("ann", "notes:write", test.method, "", "")), test.has)
		hidden := x.serve(x.ask("ann", "notes:read", test.method, "", ""))
		for _, text := range []string{"erase", "erasing", "board", "hush"} {
			require.NotContains(t, hidden, text, test.method)
		}
	}
	require.Contains(t, x.serve(x.legacy("ann", "notes:write", "tasks/list", "")), x.task)
	require.Contains(t, x.serve(x.legacy("ann", "notes:read", "tasks/list", "")), `"tasks":[]`)
	require.Contains(t, x.serve(x.legacy("eve", "notes:write", "tasks/list", "")), `"tasks":[]`)
	for _, refused := range m.extended() {
		w := httptest.NewRecorder()
		refused.handler.ServeHTTP(w, refused.request)
	}
	require.Contains(t, x.serve(x.ask("ann", "notes:write", "tasks/get", x.task, fmt.Sprintf(`"taskId":%q`, x.task))), `"status":"input_required"`, "nobody else has answered or cancelled it")
	require.NotContains(t, m.log.String(), x.task, "an ID is a secret among callers without a principal")
}
