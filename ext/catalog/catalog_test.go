package catalog_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/catalog"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A forge has two toolsets, and a tool in none.
type forge struct {
	_ struct {
		ListIssues mcpkit.Tool     `toolset:"issues" hints:"readonly" tags:"cheap" desc:"Lists issues."`
		CloseIssue mcpkit.Tool     `toolset:"issues" params:"id"`
		ListUsers  mcpkit.Tool     `toolset:"users" hints:"readonly" scopes:"admin"`
		Whoami     mcpkit.Tool     `hints:"readonly" tags:"cheap"`
		Triage     mcpkit.Prompt   `toolset:"issues"`
		User       mcpkit.Resource `toolset:"users" uri:"user://{name}"`
	}
}

func (*forge) ListIssues() string       { return "1" }
func (*forge) CloseIssue(id int) string { return "closed" }
func (*forge) ListUsers() string        { return "ann" }
func (*forge) Whoami() string           { return "ann" }
func (*forge) Triage() string           { return "sort them" }
func (*forge) User(name string) string  { return name }

var admin = &oauth.Principal{Subject: "ann", Scopes: []string{"admin"}}

func serve(t *testing.T, opts ...mcpkit.Option) *mcptest.Server {
	return mcptest.New(t, &forge{}, append(opts, mcpkit.Authenticated())...).As(admin)
}

func TestSelect(t *testing.T) {
	for name, test := range map[string]struct {
		of   catalog.Selection
		want string
	}{
		"all":        {catalog.Selection{}, "close_issue list_issues list_users whoami"},
		"a toolset":  {catalog.Selection{Toolsets: []string{"users"}}, "list_users whoami"},
		"no toolset": {catalog.Selection{Toolsets: []string{}}, "whoami"},
		"a tag":      {catalog.Selection{Tags: []string{"cheap"}}, "list_issues whoami"},
		"read only":  {catalog.Selection{ReadOnly: true}, "list_issues list_users whoami"},
		"patterns":   {catalog.Selection{Tools: []string{"list_*", "whoami"}, Except: []string{"*_users"}}, "list_issues whoami"},
	} {
		require.Equal(t, test.want, strings.Join(serve(t, catalog.Select(test.of)).List(), " "), name)
	}
	s := serve(t, catalog.Select(catalog.Selection{Toolsets: []string{"users"}}))
	s.Prompt("triage", nil).ErrorContains(`unknown prompt "triage"`)
	s.Call("close_issue", map[string]int{"id": 1}).ErrorContains(`unknown tool "close_issue"`)
	s.Read("user://bob").Text("bob")
}

func TestWhatIsSelectedExists(t *testing.T) {
	srv := mcpkit.MustNew(nil, catalog.Select(catalog.Selection{
		Toolsets: []string{"isues"}, Tags: []string{"free"}, Tools: []string{"x_list_*", "x_lost_*"}, Except: []string{"x_whoam"},
	}), mcpkit.Authenticated())
	srv.MustMount("x", mcpkit.MustNew(&forge{}, mcpkit.Authenticated()))
	require.EqualError(t, srv.Start(t.Context()), `mcpkit: *catalog.parts does not start: catalog: Select: there is no toolset "isues"; did you mean "issues"?
catalog: Select: there is no tag "free"
catalog: Select: there is no tool "x_lost_*"
catalog: Select: there is no tool "x_whoam"; did you mean "x_whoami"?`)
}

const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
	"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

func TestSelectionsOfRequests(t *testing.T) {
	srv := mcpkit.MustNew(&forge{}, catalog.Narrow(catalog.Headers), catalog.Narrow(catalog.Path("/mcp")), mcpkit.Authenticated())
	h := streamable.NewHandler(srv, nil)
	defer h.Close()
	for _, test := range []struct {
		path, want string
		header     http.Header
	}{
		{"/mcp", "close_issue list_issues whoami", nil},
		{"/mcp/users", "whoami", nil},
		{"/mcp/users,issues/readonly", "list_issues whoami", nil},
		{"/mcp/lost", "whoami", nil},
		{"/mcp", "whoami", http.Header{"X-Mcp-Toolsets": {"users"}}},
		{"/mcp", "list_issues whoami", http.Header{"X-Mcp-Readonly": {"true"}}},
		{"/mcp", "list_issues whoami", http.Header{"X-Mcp-Readonly": {"si"}}},
		{"/mcp", "close_issue list_issues whoami", http.Header{"X-Mcp-Readonly": {"false"}}},
		{"/mcp", "close_issue", http.Header{"X-Mcp-Tools": {"close_issue, list_*"}, "X-Mcp-Exclude-Tools": {"*issues"}}},
		{"/mcp", "", http.Header{"X-Mcp-Exclude-Tools": {strings.Repeat("x", 5<<10)}, "X-Mcp-Tools": {"*"}}},
		{"/mcp/" + strings.Repeat("issues,", 1<<10), "", nil},
		{"/mcp/readonly", "whoami", http.Header{"X-Mcp-Exclude-Tools": {"list_issues"}, "X-Mcp-Tags": {"cheap"}}},
	} {
		r := httptest.NewRequest("POST", test.path, strings.NewReader(list))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}}
		for name, value := range test.header {
			r.Header[name] = value
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var reply struct {
			Result struct{ Tools []struct{ Name string } }
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply), w.Body)
		var names []string
		for _, tool := range reply.Result.Tools {
			names = append(names, tool.Name)
		}
		require.Equal(t, test.want, strings.Join(names, " "), "%s %v", test.path, test.header)
	}
}

func TestSelectionOfTheEnvironment(t *testing.T) {
	env := map[string]string{"APP_TOOLSETS": "issues, users,", "APP_TAGS": "read only", "APP_READONLY": "1", "APP_EXCLUDE_TOOLS": "x"}
	require.Equal(t, catalog.Selection{Toolsets: []string{"issues", "users"}, Tags: []string{"read only"}, ReadOnly: true, Except: []string{"x"}},
		catalog.FromEnv("APP_", func(name string) string { return env[name] }))
}

func TestToolsetsAreEnabledByTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, catalog.Dynamic(time.Hour))
		bob := s.As(&oauth.Principal{Subject: "bob"})
		tools := protocol.SubscriptionFilter{ToolsListChanged: true}
		own, err := s.Client().Listen(t.Context(), tools)
		require.NoError(t, err)
		others, err := bob.Client().Listen(t.Context(), tools)
		require.NoError(t, err)
		require.Equal(t, []string{"enable_toolset", "get_toolset_tools", "list_toolsets", "whoami"}, s.List())
		s.Call("list_issues", nil).ErrorContains(`unknown tool "list_issues"`)
		s.Call("list_toolsets", nil).JSON(`[{"name":"issues","items":3,"enabled":false},{"name":"users","items":2,"enabled":false}]`)
		bob.Call("list_toolsets", nil).JSON(`[{"name":"issues","items":3,"enabled":false},{"name":"users","items":1,"enabled":false}]`)
		s.Call("get_toolset_tools", map[string]string{"toolset": "issues"}).JSON(
			`[{"kind":"tool","name":"close_issue"},{"kind":"tool","name":"list_issues","description":"Lists issues."},{"kind":"prompt","name":"triage"}]`)
		s.Call("enable_toolset", map[string]string{"toolset": "isues"}).ErrorContains(`there is no toolset "isues"; did you mean "issues"?`)
		s.Call("enable_toolset", map[string]string{"toolset": "issues"}).OK()
		require.Contains(t, s.List(), "list_issues")
		s.Call("list_issues", nil).Text("1")
		require.NotContains(t, bob.List(), "list_issues")
		time.Sleep(time.Hour)
		require.NotContains(t, s.List(), "list_issues")
		_, err = own.Next(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = others.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "only the caller is told")
	})
}

func TestOverrides(t *testing.T) {
	file := []byte(`{"tools":{"close_issue":{"name":"shut","description":"Shuts.","arguments":{"id":{"default":7}}},"whoami":{"hidden":true}},
		"prompts":{"triage":{"title":"Sort"}},"resources":{"user://{name}":{"description":"A user."}}}`)
	o, err := catalog.Overrides(file, []string{"MCPKIT_TOOL_LIST_ISSUES_DESCRIPTION=All of them.", "MCPKIT_TOOL_CLOSE_ISSUE_NAME=close", "HOME=/",
		"MCPKIT_TOOL_CLOSE_ISSUE_ARG_ID_DESCRIPTION=Which.", "MCPKIT_TOOL_LIST_USERS_HIDDEN=true", "MCPKIT_TOOL_WHOAMI_TITLE="})
	require.NoError(t, err)
	s := serve(t, o)
	require.Equal(t, []string{"close", "list_issues"}, s.List())
	s.Call("close", nil).Text("closed")
	for e := range s.Client().Tools(t.Context()) {
		require.Equal(t, e.Name == "close", strings.Contains(string(e.InputSchema), `"description":"Which."`))
		require.Contains(t, map[string]string{"close": "Shuts.", "list_issues": "All of them.", "list_users": ""}[e.Name], e.Description)
	}

	selected := serve(t, o, catalog.Select(catalog.Selection{Except: []string{"close"}}))
	require.Equal(t, []string{"list_issues"}, selected.List())

	_, err = catalog.Overrides([]byte(`{"tools":{"whoami":{"desc":"x"}}}`), nil)
	require.EqualError(t, err, `catalog: Overrides: json: unknown field "desc"`)
	o, err = catalog.Overrides([]byte(`{"tools":{"triage":{}},"prompts":{"triage":{}}}`), []string{"MCPKIT_TOOL_WHOAMI_DESC=x"})
	require.NoError(t, err)
	require.EqualError(t, mcpkit.MustNew(&forge{}, o, mcpkit.Authenticated()).Start(t.Context()), `mcpkit: *catalog.overrides does not start: catalog: Overrides: "MCPKIT_TOOL_WHOAMI_DESC" fits nothing that the server has
catalog: Overrides: "tools triage" fits nothing that the server has`)
	o, err = catalog.Overrides([]byte(`{"tools":{"close_issue":{"arguments":{"nr":{}}}}}`), nil)
	require.NoError(t, err)
	_, err = mcpkit.New(&forge{}, o, mcpkit.Authenticated())
	require.ErrorContains(t, err, `Describe: there is no argument "nr"`)
}

func TestToolsetsWithBlanksShareNoList(t *testing.T) {
	srv := mcpkit.MustNew(nil, catalog.Dynamic(time.Hour))
	for _, set := range []string{"a", "b", "a b,"} {
		require.NoError(t, srv.Add(mcpkit.NewTool("of_"+strings.Trim(strings.ReplaceAll(set, " ", "_"), ","), func() {}).Tag("toolset", set)))
	}
	s := mcptest.New(t, srv)
	for who, sets := range map[string][]string{"ann": {"a b"}, "bob": {"a", "b"}} {
		caller := s.As(&oauth.Principal{Subject: who})
		for _, set := range sets {
			caller.Call("enable_toolset", map[string]string{"toolset": set}).OK()
		}
		for _, tool := range []string{"of_a", "of_b", "of_a_b"} {
			require.Equal(t, (tool == "of_a_b") == (who == "ann"), slices.Contains(caller.List(), tool), "%s %s", who, tool)
		}
	}
}
