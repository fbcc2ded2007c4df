package hosts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	notes  = Server{Name: "notes", Command: []string{"/opt/notes", "-db", "a \"b\"\\c"}, Env: []string{"KEY=x=y"}}
	orders = Server{Name: "orders", URL: "https://orders.example.com/mcp", Headers: []string{"Authorization: Bearer x:y"}}
)

// decoded returns the content of a file as JSON without comments.
func decoded(t require.TestingT, src []byte) string {
	doc, err := parse(src)
	require.NoError(t, err)
	doc.Minimize()
	return string(doc.Pack())
}

// Each host has its own shape (https://www.npmjs.com/package/@gleanwork/mcp-config-schema, 5.2.0).
func TestEntriesHaveTheShapeOfTheHost(t *testing.T) {
	const args = `"args":["-db","a \"b\"\\c"]`
	for _, test := range []struct{ host, program, url string }{
		{"claude-desktop", `{"mcpServers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`, ""},
		{"vscode", `{"servers":{"notes":{"type":"stdio","command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"servers":{"orders":{"type":"http","url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"cursor", `{"mcpServers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"mcpServers":{"orders":{"url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"windsurf", `{"mcpServers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"mcpServers":{"orders":{"serverUrl":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"zed", `{"context_servers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"context_servers":{"orders":{"url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"opencode", `{"mcp":{"notes":{"type":"local","command":["/opt/notes","-db","a \"b\"\\c"],"environment":{"KEY":"x=y"},"enabled":true}}}`,
			`{"mcp":{"orders":{"type":"remote","url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"},"enabled":true}}}`},
	} {
		h := Find(test.host)
		for server, want := range map[*Server]string{&notes: test.program, &orders: test.url} {
			out, err := h.Add("f", nil, *server, false)
			if want == "" {
				require.EqualError(t, err, "Claude Desktop reads only programs from its file; add the URL in Claude Desktop, under Settings > Connectors")
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, decoded(t, out), test.host)
			again, err := h.Add("f", out, *server, false)
			require.NoError(t, err)
			require.Nil(t, again, "the same entry changes nothing")
		}
	}
	require.Len(t, All, 9)
	require.Nil(t, Find("emacs"))
}

// The commands of Claude Code, Codex and Gemini CLI were run with these words.
func TestHostsAreToldByTheirOwnCommands(t *testing.T) {
	const noHeaders = "the command of Codex takes no headers; leave out --header"
	for _, test := range []struct{ host, program, url, remove string }{
		{"claude-code", `claude mcp add --scope user notes --env KEY=x=y -- /opt/notes -db a "b"\c`,
			"claude mcp add --scope user --transport http orders https://orders.example.com/mcp --header Authorization: Bearer x:y", "claude mcp remove --scope user notes"},
		{"codex", `codex mcp add notes --env KEY=x=y -- /opt/notes -db a "b"\c`, noHeaders, "codex mcp remove notes"},
		{"gemini", `gemini mcp add --env KEY=x=y --scope user notes /opt/notes -- -db a "b"\c`,
			"gemini mcp add --header Authorization: Bearer x:y --scope user --transport http orders https://orders.example.com/mcp", "gemini mcp remove --scope user notes"},
		{"vscode", `code --add-mcp {"name":"notes","type":"stdio","command":"/opt/notes","args":["-db","a \"b\"\\c"],"env":{"KEY":"x=y"}}`,
			`code --add-mcp {"name":"orders","type":"http","url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}`,
			"VS Code has no command that removes a server; remove it there"},
	} {
		h := Find(test.host)
		require.True(t, h.HasCommand(false))
		text := func(command []string, err error) string {
			if err != nil {
				return err.Error()
			}
			return strings.Join(command, " ")
		}
		require.Equal(t, test.program, text(h.AddCommand(notes, false)))
		require.Equal(t, test.url, text(h.AddCommand(orders, false)))
		require.Equal(t, test.remove, text(h.RemoveCommand("notes", false)))
	}
	command, err := Find("codex").AddCommand(Server{Name: "orders", URL: orders.URL}, false)
	require.NoError(t, err)
	require.Equal(t, []string{"codex", "mcp", "add", "orders", "--url", orders.URL}, command)
	command, err = Find("claude-code").AddCommand(Server{Name: "a", Command: []string{"b"}}, true)
	require.NoError(t, err)
	require.Equal(t, []string{"claude", "mcp", "add", "--scope", "project", "a", "--", "b"}, command)
	for host, project := range map[string]bool{"claude-code": true, "gemini": true, "codex": false, "vscode": false, "cursor": false} {
		require.Equal(t, project, Find(host).HasCommand(true), host)
	}
	_, err = Find("gemini").Add("f", nil, notes, false)
	require.EqualError(t, err, "only the command of Gemini CLI changes its configuration; leave out --file")
}

// Comments, order and foreign entries of the file stay.
func TestJSONFilesKeepTheRest(t *testing.T) {
	const entry = `{
      "command": "/opt/notes",
      "args": [
        "-db",
        "a \"b\"\\c"
      ],
      "env": {
        "KEY": "x=y"
      }
    }`
	for _, test := range []struct{ name, src, want string }{
		{"empty", "", "{\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}\n"},
		{"empty object", "{}", "{\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}\n"},
		{"other keys", "{\n  // theme\n  \"theme\": \"dark\" // mine\n}\n",
			"{\n  // theme\n  \"theme\": \"dark\", // mine\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}\n"},
		{"no servers", "{\n  \"mcpServers\": {},\n  \"a\": 1\n}\n", "{\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  },\n  \"a\": 1\n}\n"},
		{"foreign server", "{\n  \"mcpServers\": {\n    /* \"notes\": {} */\n    \"x\": {\"url\": \"http://a//b\"} // x\n    // last\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    /* \"notes\": {} */\n    \"x\": {\"url\": \"http://a//b\"}, // x\n    // last\n    \"notes\": " + entry + "\n  }\n}\n"},
		{"trailing comma", "{\n  \"mcpServers\": {\n    \"x\": {\"n\": 1.50,},\n  },\n}\n",
			"{\n  \"mcpServers\": {\n    \"x\": {\"n\": 1.50,},\n    \"notes\": " + entry + ",\n  },\n}\n"},
		{"byte order mark", "\xef\xbb\xbf{\n  \"a\": 1\n}", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}\n"},
		{"key in another place", "{\n  \"x\": {\"mcpServers\": {}},\n  \"s\": \"// \\\"mcpServers\\\": {\"\n}",
			"{\n  \"x\": {\"mcpServers\": {}},\n  \"s\": \"// \\\"mcpServers\\\": {\",\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := Find("cursor")
			out, err := h.Add("f", []byte(test.src), notes, false)
			require.NoError(t, err)
			require.Equal(t, test.want, string(out))

			back, err := h.Remove("f", out, "notes")
			require.NoError(t, err)
			require.NotContains(t, string(back), "/opt/notes")
			for _, kept := range []string{"// theme", "// mine", `/* "notes": {} */`, `"x": {"url": "http://a//b"}`, "// x", "// last", `"x": {"n": 1.50,}`} {
				require.Equal(t, strings.Contains(test.src, kept), strings.Contains(string(back), kept), kept)
			}
		})
	}
}

func TestJSONEntriesAreRemoved(t *testing.T) {
	h := Find("cursor")
	for _, test := range []struct{ name, src, want string }{
		{"first", "{\"mcpServers\": {\n  // a\n  \"a\": {},\n  \"b\": {}\n}}", "{\"mcpServers\": {\n  // a\n  \"b\": {}\n}}\n"},
		{"first on one line", `{"mcpServers": {"a": {}, "b": {}}}`, "{\"mcpServers\": { \"b\": {}}}\n"},
		{"last", "{\"mcpServers\": {\n  \"b\": {}, // b\n  \"a\": {} // a\n}}", "{\"mcpServers\": {\n  \"b\": {} // b\n // a\n}}\n"},
		{"last before the brace", "{\"mcpServers\": {\n  \"b\": {}, // b\n  \"a\": {}}}", "{\"mcpServers\": {\n  \"b\": {} // b\n}}\n"},
		{"trailing comma", "{\"mcpServers\": {\n  \"b\": {},\n  \"a\": {},\n}}", "{\"mcpServers\": {\n  \"b\": {}\n}}\n"},
		{"only", "{\"mcpServers\": {\n  \"a\": {\n    \"x\": [1]\n  }\n}}\n", "{\"mcpServers\": {\n}}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := h.Remove("f", []byte(test.src), "a")
			require.NoError(t, err)
			require.Equal(t, test.want, string(out))
		})
	}
}

func TestAnEmptyListOfServersMayBeNull(t *testing.T) {
	for _, src := range []string{`{"mcpServers": null}`, `{"mcpServers": null, "b": 1} // c`, "{\n  \"a\": 1,\n  \"mcpServers\": null // none\n}\n"} {
		h := Find("cursor")
		out, err := h.Add("f", []byte(src), notes, false)
		require.NoError(t, err, src)
		require.Contains(t, decoded(t, out), `"mcpServers":{"notes":{`)
		before, after, _ := strings.Cut(src, "null")
		require.True(t, strings.HasPrefix(string(out), before) && strings.HasSuffix(strings.TrimSpace(string(out)), strings.TrimSpace(after)), "%s", out)
	}
}

// Editors on Windows write a byte order mark, also into an empty file.
func TestAByteOrderMarkIsNotContent(t *testing.T) {
	out, err := Find("cursor").Add("f", []byte("\xef\xbb\xbf\r\n"), notes, false)
	require.NoError(t, err)
	require.Contains(t, decoded(t, out), `"notes":{`)
}

func TestAnotherServerIsReplacedOnlyByForce(t *testing.T) {
	h := Find("cursor")
	const text = `{"mcpServers": {"notes": {"command": "/theirs"}, "b": {}}}`
	_, err := h.Add("f", []byte(text), notes, false)
	require.EqualError(t, err, `f has another server named "notes"; choose another name with --name, or replace it with --force`)
	out, err := h.Add("f", []byte(text), notes, true)
	require.NoError(t, err)
	require.Equal(t, `{"mcpServers":{"notes":{"command":"/opt/notes","args":["-db","a \"b\"\\c"],"env":{"KEY":"x=y"}},"b":{}}}`, decoded(t, out))
}

func TestFilesThatAreNotUnderstoodStay(t *testing.T) {
	for src, want := range map[string]string{
		`{"mcpServers": `:    "correct the file first",
		`[]`:                 "f: the file is not a valid JSON object with comments; correct it first",
		`{"a": 1, "a": 2}`:   "f: the file is not a valid JSON object with comments; correct it first",
		`{} /* `:             "correct the file first",
		"// nothing":         "correct the file first",
		`{"mcpServers": []}`: `f: the value of "mcpServers" is not an object`,
	} {
		out, err := Find("cursor").Add("f", []byte(src), notes, false)
		require.ErrorContains(t, err, want)
		require.Nil(t, out)
	}
	_, err := Find("cursor").Remove("f", []byte(`{"mcpServers": {"note": {}, "a": {}}}`), "notes")
	require.EqualError(t, err, `f: the server "notes" is not installed; did you mean "note"?; it has ["note" "a"]`)
}
