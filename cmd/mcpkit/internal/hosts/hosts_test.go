package hosts

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	notes  = Server{Name: "notes", Command: []string{"/opt/notes", "-db", "a \"b\"\\c"}, Env: []string{"KEY=x=y"}}
	orders = Server{Name: "orders", URL: "https://orders.example.com/mcp", Headers: []string{"Authorization: Bearer x:y"}}
)

// Each host has its own shape (https://www.npmjs.com/package/@gleanwork/mcp-config-schema, 5.2.0).
func TestEntriesHaveTheShapeOfTheHost(t *testing.T) {
	const args = `"args":["-db","a \"b\"\\c"]`
	for _, test := range []struct{ host, program, url string }{
		{"claude-desktop", `{"mcpServers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`, ""},
		{"claude-code", `{"mcpServers":{"notes":{"type":"stdio","command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"mcpServers":{"orders":{"type":"http","url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"vscode", `{"servers":{"notes":{"type":"stdio","command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"servers":{"orders":{"type":"http","url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"cursor", `{"mcpServers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"mcpServers":{"orders":{"url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"windsurf", `{"mcpServers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"mcpServers":{"orders":{"serverUrl":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"zed", `{"context_servers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"context_servers":{"orders":{"url":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
		{"codex", `{"mcp_servers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"mcp_servers":{"orders":{"url":"https://orders.example.com/mcp","http_headers":{"Authorization":"Bearer x:y"}}}}`},
		{"gemini", `{"mcpServers":{"notes":{"command":"/opt/notes",` + args + `,"env":{"KEY":"x=y"}}}}`,
			`{"mcpServers":{"orders":{"httpUrl":"https://orders.example.com/mcp","headers":{"Authorization":"Bearer x:y"}}}}`},
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
			all, err := h.format.decode(out)
			require.NoError(t, err)
			got, err := json.Marshal(all)
			require.NoError(t, err)
			require.JSONEq(t, want, string(got), test.host)

			again, err := h.Add("f", out, *server, false)
			require.NoError(t, err)
			require.Nil(t, again, "the same entry changes nothing")
			entries, err := h.servers(out)
			require.NoError(t, err)
			require.Len(t, entries, 1)
		}
	}
	require.Len(t, All, 9)
	require.Nil(t, Find("emacs"))
}

// Comments, order, foreign entries and the style of the file stay.
func TestJSONFilesKeepTheRest(t *testing.T) {
	const entry = `{
      "command": "/opt/notes",
      "args": ["-db", "a \"b\"\\c"],
      "env": {
        "KEY": "x=y"
      }
    }`
	for _, test := range []struct{ name, src, want string }{
		{"empty", "", "{\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}\n"},
		{"empty object", "{}", "{\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}"},
		{"other keys", "{\n  // theme\n  \"theme\": \"dark\" // mine\n}\n",
			"{\n  // theme\n  \"theme\": \"dark\", // mine\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}\n"},
		{"no servers", "{\n  \"mcpServers\": {},\n  \"a\": 1\n}\n", "{\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  },\n  \"a\": 1\n}\n"},
		{"foreign server", "{\n  \"mcpServers\": {\n    /* \"notes\": {} */\n    \"x\": {\"url\": \"http://a//b\"} // x\n    // last\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    /* \"notes\": {} */\n    \"x\": {\"url\": \"http://a//b\"}, // x\n    // last\n    \"notes\": " + entry + "\n  }\n}\n"},
		{"trailing comma", "{\n  \"mcpServers\": {\n    \"x\": {\"n\": 1.50,},\n  },\n}\n",
			"{\n  \"mcpServers\": {\n    \"x\": {\"n\": 1.50,},\n    \"notes\": " + entry + "\n  },\n}\n"},
		{"byte order mark", "\xef\xbb\xbf{\n  \"a\": 1\n}", "\xef\xbb\xbf{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}"},
		{"line ends of Windows", "{\r\n  \"a\": 1\r\n}\r\n", strings.ReplaceAll("{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"notes\": "+entry+"\n  }\n}\n", "\n", "\r\n")},
		{"key in another place", "{\n  \"x\": {\"mcpServers\": {}},\n  \"s\": \"// \\\"mcpServers\\\": {\"\n}",
			"{\n  \"x\": {\"mcpServers\": {}},\n  \"s\": \"// \\\"mcpServers\\\": {\",\n  \"mcpServers\": {\n    \"notes\": " + entry + "\n  }\n}"},
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
		{"first", "{\"mcpServers\": {\n  // a\n  \"a\": {},\n  \"b\": {}\n}}", "{\"mcpServers\": {\n  // a\n  \"b\": {}\n}}"},
		{"first on one line", `{"mcpServers": {"a": {}, "b": {}}}`, `{"mcpServers": { "b": {}}}`},
		{"last", "{\"mcpServers\": {\n  \"b\": {}, // b\n  \"a\": {} // a\n}}", "{\"mcpServers\": {\n  \"b\": {} // b\n   // a\n}}"},
		{"trailing comma", "{\"mcpServers\": {\n  \"b\": {},\n  \"a\": {},\n}}", "{\"mcpServers\": {\n  \"b\": {},\n}}"},
		{"only", "{\"mcpServers\": {\n  \"a\": {\n    \"x\": [1]\n  }\n}}\n", "{\"mcpServers\": {\n}}\n"},
		{"comment before the comma", "{\"mcpServers\": {\n  \"a\": {} /* a */,\n  \"b\": {}\n}}", "{\"mcpServers\": {\n   /* a */\n  \"b\": {}\n}}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := h.Remove("f", []byte(test.src), "a")
			require.NoError(t, err)
			require.Equal(t, test.want, string(out))
		})
	}
}

func TestTOMLFilesKeepTheRest(t *testing.T) {
	h := Find("codex")
	const src = `# my settings
model = "gpt" # the best

[mcp_servers.x] # foreign
command = "x"
text = """
[mcp_servers.notes]
"""

# about profiles
[profiles.a]
n = 1
`
	const entry = `
[mcp_servers.notes]
command = "/opt/notes"
args = ["-db", "a \"b\"\\c"]

[mcp_servers.notes.env]
KEY = "x=y"
`
	_, err := h.Add("f", []byte(src), notes, false)
	require.NoError(t, err)
	out, err := h.Add("f", []byte(src), notes, false)
	require.NoError(t, err)
	require.Equal(t, src+entry, string(out))

	// The text in the foreign entry looks like the table. The file cannot be edited safely.
	_, err = h.Remove("f", out, "notes")
	require.EqualError(t, err, `f is written in a way that cannot be edited safely; edit the entry under "mcp_servers" by hand`)

	plainSrc := strings.Replace(src, "\n[mcp_servers.notes]\n", "\ntext\n", 1)
	out, err = h.Add("f", []byte(plainSrc), notes, false)
	require.NoError(t, err)
	more := string(out) + "\n# the end\n[z]\n"
	out, err = h.Remove("f", []byte(more), "notes")
	require.NoError(t, err)
	require.Equal(t, plainSrc+"\n\n# the end\n[z]\n", string(out))

	changed := notes
	changed.Command = []string{"/opt/other"}
	out, err = h.Add("f", []byte(more), changed, true)
	require.NoError(t, err)
	require.Contains(t, string(out), "[z]\n\n[mcp_servers.notes]\ncommand = \"/opt/other\"\nargs = []\n")
	require.Equal(t, 1, strings.Count(string(out), "[mcp_servers.notes]"))
}

func TestAnEmptyListOfServersMayBeNull(t *testing.T) {
	for _, src := range []string{`{"mcpServers": null}`, `{"mcpServers": null, "b": 1} // c`, "{\n  \"a\": 1,\n  \"mcpServers\": null // none\n}\n"} {
		h := Find("cursor")
		out, err := h.Add("f", []byte(src), notes, false)
		require.NoError(t, err, src)
		entries, err := h.servers(out)
		require.NoError(t, err)
		require.Contains(t, entries, "notes")
		before, after, _ := strings.Cut(src, "null")
		require.True(t, strings.HasPrefix(string(out), before) && strings.HasSuffix(string(out), after), "%s", out)
	}
}

// Editors on Windows write a byte order mark, also into an empty file.
func TestAByteOrderMarkIsNotContent(t *testing.T) {
	for _, host := range []string{"cursor", "codex"} {
		out, err := Find(host).Add("f", []byte("\xef\xbb\xbf\r\n"), notes, false)
		require.NoError(t, err, host)
		entries, err := Find(host).servers(out)
		require.NoError(t, err)
		require.Contains(t, entries, "notes")
	}
}

func TestOtherEntriesAreNotReplacedUnasked(t *testing.T) {
	for _, src := range []struct{ host, text string }{
		{"cursor", `{"mcpServers": {"notes": {"command": "/theirs"}, "b": {}}}`},
		{"codex", "[mcp_servers.notes]\ncommand = \"/theirs\"\n[mcp_servers.b]\n"},
	} {
		h := Find(src.host)
		_, err := h.Add("f", []byte(src.text), notes, false)
		require.EqualError(t, err, `f has another server named "notes"; choose another name with --name, or replace it with --force`)
		out, err := h.Add("f", []byte(src.text), notes, true)
		require.NoError(t, err)
		entries, err := h.servers(out)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"notes": plain(h.entry(notes)), "b": map[string]any{}}, entries)
	}
}

func TestFilesThatAreNotUnderstoodStay(t *testing.T) {
	for _, test := range []struct{ host, src, err string }{
		{"cursor", `{"mcpServers": `, "f: the file is not a JSON object with comments; correct it first"},
		{"cursor", `[]`, "f: the file is not a JSON object with comments; correct it first"},
		{"cursor", `{"a": 1, "a": 2}`, "f: the file is not a JSON object with comments; correct it first"},
		{"cursor", `{} /* `, "f: a comment does not end"},
		{"cursor", "// nothing", "f: the file has only comments"},
		{"cursor", `{"mcpServers": []}`, `f: the value of "mcpServers" is not an object`},
		{"codex", "a = ", "f: line 1 is not valid TOML"},
		{"codex", "mcp_servers = 1", `f: the value of "mcp_servers" is not an object or a table`},
		{"codex", "mcp_servers = {a = {}}", `f is written in a way that cannot be edited safely; edit the entry under "mcp_servers" by hand`},
	} {
		out, err := Find(test.host).Add("f", []byte(test.src), notes, false)
		require.ErrorContains(t, err, test.err)
		require.Nil(t, out)
	}
	_, err := Find("cursor").Remove("f", nil, "notes")
	require.True(t, errors.Is(err, ErrNotInstalled))
	require.EqualError(t, err, `f: the server "notes" is not installed`)
	_, err = Find("cursor").Remove("f", []byte(`{"mcpServers": {"b": {}, "a": {}}}`), "notes")
	require.EqualError(t, err, `f: the server "notes" is not installed; there are a, b`)
}

// Adding and removing a server gives back what the file said.
func TestAnyFileSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "\t", " // c\n", "/* \"x\": 1, */", "\r\n"})
		value := rapid.SampledFrom([]string{"1", `"a//b"`, `{}`, `[1, 2 ,]`, `{"n": [{}], }`, `"\\\""`, "null", "1e5"})
		object := func(names []string, values func() string) string {
			text := "{" + space.Draw(t, "space")
			for i, name := range names {
				text += `"` + name + `"` + space.Draw(t, "space") + ":" + space.Draw(t, "space") + values() + space.Draw(t, "space")
				if i < len(names)-1 || rapid.Bool().Draw(t, "trailing") {
					text += "," + space.Draw(t, "space")
				}
			}
			return text + "}"
		}
		some := func() []string {
			return rapid.SampledFrom([][]string{{}, {"a"}, {"a", "b"}, {"b", "c", "a"}}).Draw(t, "names")
		}
		keys := append(some(), "mcpServers")
		if rapid.Bool().Draw(t, "none") {
			keys = keys[:len(keys)-1]
		}
		at := 0
		src := []byte(space.Draw(t, "space") + object(keys, func() string {
			at++
			if keys[at-1] == "mcpServers" {
				return object(some(), func() string { return value.Draw(t, "value") })
			}
			return value.Draw(t, "value")
		}) + space.Draw(t, "space"))
		h := Find("cursor")
		want, err := h.format.decode(src)
		require.NoError(t, err, "%q", src)
		out, err := h.Add("f", src, notes, false)
		require.NoError(t, err, "%q", src)
		back, err := h.Remove("f", out, "notes")
		require.NoError(t, err, "%q", out)
		got, err := h.format.decode(back)
		require.NoError(t, err)
		if want["mcpServers"] == nil {
			want["mcpServers"] = map[string]any{}
		}
		require.Equal(t, want, got)
		for _, name := range []string{"a", "b", "c"} {
			if servers := want["mcpServers"].(map[string]any); servers[name] != nil {
				_, err := h.Remove("f", out, name)
				require.NoError(t, err, "%q", out)
			}
		}
	})
}
