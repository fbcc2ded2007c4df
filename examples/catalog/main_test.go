package main

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// start returns the server for an environment.
func start(t *testing.T, environ ...string) *mcpkit.Server {
	env := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	srv, err := newServer(func(name string) string { return env[name] }, environ)
	require.NoError(t, err)
	return srv
}

func all(t *testing.T) *mcptest.Server { return mcptest.New(t, start(t)) }

type object = map[string]any

const (
	public = "list_issues list_pull_requests list_repositories search_issues whoami"
	ofAnn  = "create_issue create_repository list_issues list_pull_requests list_repositories merge_pull_request search_issues whoami"
	ofBob  = "create_issue create_repository list_issues list_pull_requests list_repositories list_users search_issues whoami"
)

func TestCallersSeeWhatTheirScopesAllow(t *testing.T) {
	mcptest.EachVersion(t, all, func(t *testing.T, s *mcptest.Server) {
		ann, bob := s.As(principals[0]), s.As(principals[1])
		require.Equal(t, public, strings.Join(s.As(nil).List(), " "))
		require.Equal(t, ofAnn, strings.Join(ann.List(), " "))
		require.Equal(t, ofBob, strings.Join(bob.List(), " "))
		require.Equal(t, "This forge has issues, pulls, repositories, users.", bob.Client().Instructions())
		bob.Call("open_issue", object{"repository": "tea", "title": "Tea is cold"}).JSON(`3`)
		ann.Call("search_issues", object{"words": "COLD tea"}).JSON(`[{"number":3,"repository":"tea","title":"Tea is cold","open":true}]`)
		ann.Call("merge_pull_request", object{"number": 1}).OK()
		ann.Call("get_pull_requests", object{"repository": "tea"}).JSON(`[{"number":1,"repository":"tea","title":"Brew at 80 degrees","merged":true}]`)
		bob.Call("merge_pull_request", object{"number": 1}).ErrorContains(`unknown tool "merge_pull_request"`)
		ann.Call("close_issue", object{"number": 3, "reason": "Warm."}).ErrorContains(`unknown tool "close_issue"`)
		s.Read("forge://tea/readme").Text("# tea\n\nBrews tea.\n")
		s.Prompt("triage", map[string]string{"repository": "tea"}).TextContains("List the issues of tea")
	})
}

func TestRequestsSelect(t *testing.T) {
	app, handler := newApp(start(t), map[string]*oauth.Principal{"secret": principals[1]})
	web := httptest.NewServer(app)
	defer web.Close()
	defer handler.Close()
	for _, version := range protocol.Supported[1:] {
		for _, test := range []struct{ path, header, value, want string }{
			{"", "Authorization", "Bearer secret", ofBob},
			{"/users", "Authorization", "Bearer secret", "list_users whoami"},
			{"/issues,pulls/readonly", "Authorization", "Bearer secret", "list_issues list_pull_requests search_issues whoami"},
			{"", "X-MCP-Toolsets", "pulls", "list_pull_requests"},
			{"/repositories", "X-MCP-Toolsets", "pulls", ""},
			{"", "X-MCP-Exclude-Tools", "list_*", "search_issues whoami"},
			{"/wiki", "X-MCP-Readonly", "false", ""},
		} {
			c, err := client.Dial(t.Context(), web.URL+"/mcp"+test.path, client.Version(version), client.Header(test.header, test.value))
			require.NoError(t, err)
			var names []string
			for tool, err := range c.Tools(t.Context()) {
				require.NoError(t, err)
				names = append(names, tool.Name)
			}
			require.Equal(t, test.want, strings.Join(names, " "), "%s %v", version, test)
			require.NoError(t, c.Close())
		}
		c, err := client.Dial(t.Context(), web.URL+"/mcp", client.Version(version), client.Header("X-Forge-Features", "fields"))
		require.NoError(t, err)
		found, err := client.Call[[]Issue](t.Context(), c, "search_issues", object{"state": "closed"})
		require.NoError(t, err)
		require.Empty(t, found)
		require.NoError(t, c.Close())
	}
	_, err := client.Dial(t.Context(), web.URL+"/mcp", client.Header("Authorization", "Bearer guess"))
	require.ErrorContains(t, err, "401")
}

func TestTheEnvironmentSelects(t *testing.T) {
	s := mcptest.New(t, start(t, "FORGE_TOOLSETS=issues", "FORGE_READONLY=1", "MCPKIT_TOOL_WHOAMI_NAME=me")).As(principals[0])
	require.Equal(t, []string{"list_issues", "me", "search_issues"}, s.List())
	require.Equal(t, "This forge has issues, users.", s.Client().Instructions(), "whoami is in both")
	err := start(t, "FORGE_TOOLSETS=isues").Start(t.Context())
	require.ErrorContains(t, err, `there is no toolset "isues"; did you mean "issues"?`)
}

func TestModelsEnableToolsets(t *testing.T) {
	s := mcptest.New(t, start(t, "FORGE_DYNAMIC=1"))
	require.Equal(t, []string{"enable_toolset", "get_toolset_tools", "list_toolsets"}, s.List())
	s.Call("enable_toolset", object{"toolset": "issues"}).OK()
	require.Equal(t, []string{"enable_toolset", "get_toolset_tools", "list_issues", "list_toolsets", "search_issues", "whoami"}, s.List())
}

// describes returns all descriptions of tools and their arguments that bob sees.
func describes(t *testing.T, environ ...string) (texts []string) {
	for tool, err := range mcptest.New(t, start(t, environ...)).As(principals[1]).Client().Tools(t.Context()) {
		require.NoError(t, err)
		var schema struct {
			Properties map[string]struct{ Description string }
		}
		require.NoError(t, json.Unmarshal(tool.InputSchema, &schema))
		texts = append(texts, tool.Description)
		for _, property := range schema.Properties {
			texts = append(texts, property.Description)
		}
	}
	return texts
}

func TestEveryTextIsTranslated(t *testing.T) {
	english := slices.DeleteFunc(describes(t), func(text string) bool { return text == "" })
	for _, text := range describes(t, "FORGE_LANGUAGE=de") {
		require.NotContains(t, english, text)
	}
}
