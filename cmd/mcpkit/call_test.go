package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Notes keeps notes.
type Notes struct {
	_ mcpkit.Info `name:"notes" version:"1.0.0"`
	_ struct {
		Search    mcpkit.Tool     `hints:"readonly" desc:"Finds notes."`
		Note      mcpkit.Resource `uri:"note://{id}" mime:"text/markdown" desc:"A note."`
		Summarize mcpkit.Prompt   `params:"id" desc:"Asks for a summary."`
	}
	text map[string]string // by id
}

func newNotes() *Notes {
	return &Notes{text: map[string]string{"welcome": "# Welcome\n\nThis is your first note."}}
}

type searchInput struct {
	Query string `json:"query" validate:"min=2"`
	Limit int    `json:"limit,omitempty" default:"10" validate:"min=1,max=50"`
}

type hit struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func (n *Notes) Search(in searchInput) []hit {
	hits := []hit{}
	for id, text := range n.text {
		if strings.Contains(text, in.Query) {
			hits = append(hits, hit{id, text})
		}
	}
	return hits[:min(len(hits), in.Limit)]
}

func (n *Notes) Note(id string) (string, error) {
	text, ok := n.text[id]
	if !ok {
		return "", mcpkit.ErrNotFound
	}
	return text, nil
}

func (*Notes) Summarize(id string) string { return "Summarize the note " + id + "." }

func TestServersAreCalled(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	notes := self + " " + asServer
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		stdout string
	}{
		{"tool", []string{"call", notes, "search", "query=first", "limit:=5"}, exitOK, "[{\"id\":\"welcome\",\"text\":\"# Welcome\\n\\nThis is your first note.\"}]\n"},
		{"text for a number", []string{"call", notes, "search", "query=first", "limit=5"}, exitOK, "[{\"id\":\"welcome\",\"text\":\"# Welcome\\n\\nThis is your first note.\"}]\n"},
		{"tool with JSON", []string{"call", "--json", `{"query":"nothing"}`, notes, "--", "search"}, exitOK, "[]\n"},
		{"version", []string{"call", "--protocol-version", "2024-11-05", notes, "search", "query=nothing"}, exitOK, "[]\n"},
		{"tool error", []string{"call", notes, "search", "query=f"}, exitFault, ""},
		{"no tool", []string{"call", notes}, exitUsage, ""},
		{"no program", []string{"call", self + "-none", "search"}, exitConnection, ""},
		{"unknown resource", []string{"read", notes, "note://none"}, exitProtocol, ""},
		{"resource", []string{"read", notes, "note://welcome"}, exitOK, "# Welcome\n\nThis is your first note.\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, _ := said(t, test.code, test.args...)
			require.Equal(t, test.stdout, out)
		})
	}

	t.Run("list as JSON", func(t *testing.T) {
		out, _ := said(t, exitOK, "list", notes, "-o", "json")
		var l struct{ Tools, Prompts, ResourceTemplates []any }
		require.NoError(t, json.Unmarshal([]byte(out), &l))
		require.Len(t, l.Tools, 1)
		require.Len(t, l.Prompts, 1)
		require.Len(t, l.ResourceTemplates, 1)
	})
}

// The value of a flag that does not exist may be a token.
func TestUnknownFlagsAreRefusedWithoutTheirValues(t *testing.T) {
	for _, flags := range [][]string{
		{"--haeder=Authorization: Bearer secret", "search"},
		{"search", "--haeder", "Authorization: Bearer secret"},
		{"search", "-haeder=Authorization: Bearer secret"},
	} {
		_, errs := said(t, exitUsage, append([]string{"call", "http://127.0.0.1:1/mcp"}, flags...)...)
		require.Contains(t, errs, "mcpkit call: unknown flag: -")
		require.NotContains(t, errs, "secret")
	}
}

func TestToolArgumentsAreRead(t *testing.T) {
	for _, test := range []struct {
		words []string
		want  string
		err   string
	}{
		{words: nil, want: `{}`},
		{words: []string{"a=1", "b:=1", "c=x=y"}, want: `{"a":"1","b":1,"c":"x=y"}`},
		{words: []string{"a"}, err: `"a" is not an argument; write name=text or name:=json`},
		{words: []string{"a=1", "a=2"}, err: `the argument "a" is given twice`},
		{words: []string{"a:=x"}, err: `argument "a": "x" is not valid JSON; write a=x to send it as text`},
	} {
		got, err := toolArguments(test.words)
		if test.err != "" {
			require.EqualError(t, err, test.err)
			continue
		}
		require.NoError(t, err)
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, test.want, string(raw))
	}
}

func TestControlCharactersOfServersAreShown(t *testing.T) {
	require.Equal(t, `a\x1b[31m`+"\n\t"+`\r\u202e é`, clean("a\x1b[31m\n\t\r\u202e é"))
}

func TestControlCharactersOfServersAreEscapedInJSON(t *testing.T) {
	hostile := map[string]string{"a\u009b31m": "\x1b[31m\u202e\x7f\U000e0041 é\n"}
	var out bytes.Buffer
	r := &remote{out: newScreen(&out), err: newScreen(io.Discard), asJSON: true}
	require.NoError(t, r.write(hostile, nil))
	require.Equal(t, "{\n  \"a\\u009b31m\": \"\\u001b[31m\\u202e\\u007f\\udb40\\udc41 é\\n\"\n}\n", out.String())
	var got map[string]string
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, hostile, got)
}

func TestTextIsSentAsTheToolWantsIt(t *testing.T) {
	tool := &protocol.Tool{Name: "set", InputSchema: json.RawMessage(`{"type":"object","properties":{
		"text":{"type":"string"},"count":{"type":"integer"},"share":{"type":"number"},"on":{"type":"boolean"},"any":{},
		"entities":{"type":"array"},"where":{"type":"object"}}}`)}
	for _, test := range []struct{ words, want string }{
		{`count=3 share=-0.5 on=true`, `{"count":3,"share":-0.5,"on":true}`},
		{`text=3 any=3`, `{"text":"3","any":"3"}`},
		{`count=three on=1 share=true`, `{"count":"three","on":"1","share":"true"}`},
		{`unknown=3`, `{"unknown":"3"}`},
		{`entities=[{"a":1}] where={"b":[2]}`, `{"entities":[{"a":1}],"where":{"b":[2]}}`},
		{`entities={"a":1} where=[2]`, `{"entities":"{\"a\":1}","where":"[2]"}`},
		{`entities=[1 where={b:2} text=[1] any={}`, `{"entities":"[1","where":"{b:2}","text":"[1]","any":"{}"}`},
	} {
		args, err := toolArguments(strings.Fields(test.words))
		require.NoError(t, err)
		require.NoError(t, asWanted(args, "set", func(yield func(*protocol.Tool, error) bool) { yield(tool, nil) }))
		raw, err := json.Marshal(args)
		require.NoError(t, err)
		require.JSONEq(t, test.want, string(raw))
	}
	require.NoError(t, asWanted(map[string]any{"text": "three"}, "set", nil), "asks for the tools only if a text is JSON")
}

func TestCommandLinesHaveTimeToCompile(t *testing.T) {
	for target, want := range map[string]time.Duration{
		"go run ./server":           5 * time.Minute,
		"http://127.0.0.1:8080/mcp": 30 * time.Second,
		"unix:/run/notes.sock":      30 * time.Second,
	} {
		timeout := func(args ...string) (got time.Duration) {
			cmd := remoteCommand(streams{out: io.Discard, err: io.Discard}, &cobra.Command{Use: "x SERVER"}, func(_ context.Context, r *remote) error {
				got = r.timeout
				return nil
			})
			cmd.SetArgs(append(args, target))
			require.NoError(t, cmd.Execute())
			return got
		}
		require.Equal(t, want, timeout(), target)
		require.Zero(t, timeout("--timeout", "0"), target)
	}
}

// Wrong arguments are reported before a server is started or called.
func TestWrongArgumentsAreReported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--protocol-version", "2025", "true"}, exitUsage,
			`mcpkit list: --protocol-version "2025" is not a version of MCP; write one of [2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05]` + "\n"},
		{[]string{"ftp://x"}, exitUsage, `mcpkit list: "ftp://x": the scheme must be http, https, ws or wss` + "\n"},
		{[]string{"--header", "a: b", "true"}, exitUsage, `mcpkit list: --header needs a server at an http, https, ws or wss URL; "true" is not one` + "\n"},
		{[]string{"no-such-host.invalid:18090"}, exitConnection,
			`mcpkit list: client: the server does not start: exec: "no-such-host.invalid:18090": executable file not found in $PATH` + "\n" +
				"mcpkit list: write the path of the server's program, or the URL of a server over HTTP, such as http://localhost:8080/mcp\n"},
		// A server that does not respond takes no longer than the timeout, plus the time to end it.
		{[]string{"--timeout", "200ms", "sleep 1000"}, exitConnection, "mcpkit list: client: no response within 200ms; raise --timeout if the server is slow to start\n"},
	} {
		out, errs := said(t, test.code, append([]string{"list"}, test.args...)...)
		require.Equal(t, test.want, errs)
		require.Empty(t, out)
	}
}

// Each error says what is wrong and what to write instead.
func TestMistakesOfCallersAreExplained(t *testing.T) {
	url := desk(t, bare)
	mux := http.NewServeMux()
	mux.HandleFunc("/", http.NotFound)
	mux.HandleFunc("/html", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>Welcome</html>")
	})
	mux.HandleFunc("/closed", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/failing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	web := httptest.NewServer(mux)
	defer web.Close()
	private := httptest.NewUnstartedServer(mux)
	private.Config.ErrorLog = log.New(io.Discard, "", 0) // the failed handshake
	private.StartTLS()
	defer private.Close()
	gone := httptest.NewServer(mux)
	gone.Close()
	for _, test := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"unknown command", []string{"cal", url}, exitUsage, []string{"mcpkit: unknown command \"cal\" for \"mcpkit\"\n\nDid you mean this?\n\tcall\n"}},
		{"no server", []string{"call"}, exitUsage, []string{"mcpkit call: requires at least 1 arg(s), only received 0\nusage: mcpkit call SERVER TOOL [name=text | name:=json ...] [flags]"}},
		{"no tool", []string{"call", url}, exitUsage, []string{"the name of the tool is missing; mcpkit list " + url + " shows all tools"}},
		{"no prompt", []string{"prompt", url}, exitUsage, []string{"the name of the prompt is missing; mcpkit list " + url + " shows all prompts"}},
		{"no resource", []string{"read", url}, exitUsage, []string{"write one URI after the server; mcpkit list " + url + " shows the resources"}},
		{"unknown flag", []string{"list", url, "-timeout", "1s"}, exitUsage, []string{"mcpkit list: unknown flag: -timeout; names of flags begin with two dashes\n"}},
		{"misspelt flag", []string{"list", url, "--timout", "1s"}, exitUsage, []string{"mcpkit list: unknown flag: --timout; did you mean \"timeout\"?\n"}},
		{"nobody listens", []string{"list", gone.URL}, exitConnection, []string{"nothing listens at this address; start the server, or correct the address\n"}},
		{"wrong timeout", []string{"list", url, "--timeout", "9"}, exitUsage, []string{`mcpkit list: invalid argument "9" for "--timeout" flag: write for example 90s or 2m` + "\n"}},
		{"variable that is not set", []string{"list", "true", "--env", "MCPKIT_NO_SUCH"}, exitUsage, []string{"MCPKIT_NO_SUCH is not set; write MCPKIT_NO_SUCH=value\n"}},
		{"variable for a URL", []string{"list", url, "--env", "A=b"}, exitUsage, []string{"mcpkit list: --env and --inherit-env need a command line as the server; \"" + url + "\" is not one\n"}},
		{"arguments twice", []string{"call", "--json", "{}", url, "count", "to:=1"}, exitUsage, []string{"use --json or arguments after the tool, not both"}},
		{"not an object", []string{"call", "--json", "[1]", url, "count"}, exitUsage, []string{`--json "[1]" is not a JSON object; write for example {"name": "value"}`}},
		{"a server that fails", []string{"list", web.URL + "/failing"}, exitProtocol, []string{"500 Internal Server Error"}},
		{"a tool that takes too long", []string{"call", "--timeout", "50ms", url, "wait"}, exitConnection, []string{"50ms"}},
		{"questions and nobody to answer", []string{"call", "--protocol-version", "2026-07-28", url, "order"}, exitProtocol,
			[]string{"mcpkit call: questions need a terminal as standard input, or the answers: write --answer name=value for each field; --yes alone answers only a question of yes or no\n"}},
		{"wrong format", []string{"list", "--output", "xml", url}, exitUsage, []string{`invalid argument "xml" for "-o, --output" flag: write text or json`}},
		{"wrong path", []string{"list", web.URL + "/mpc"}, exitProtocol, []string{"404 Not Found", "the server has no MCP endpoint at this URL; the usual path is /mcp\n"}},
		{"private authority", []string{"list", private.URL}, exitConnection, []string{"x509: certificate signed by unknown authority",
			"to trust the authority that signed the certificate, set the environment variable SSL_CERT_FILE to a PEM file with the authority's certificate"}},
		{"not an MCP server", []string{"list", web.URL + "/html"}, exitProtocol, []string{"text/html"}},
		{"no challenge", []string{"list", web.URL + "/closed"}, exitProtocol,
			[]string{"401 Unauthorized", "the server requires authentication and does not say of what kind; with a token write --header 'Authorization: Bearer TOKEN', or try --login"}},
		{"wrong token", []string{"list", "--header", "Authorization: Bearer x", web.URL + "/closed"}, exitProtocol,
			[]string{"the server refuses the Authorization header that you gave; check the token and its expiry"}},
		{"a program that ends", []string{"list", "go nonsense"}, exitConnection, []string{"go nonsense: unknown command", "exit status 2"}},
		{"a program that is not a server", []string{"list", "go version"}, exitConnection, []string{"exit status 0", "the program ended before it responded; run it by itself to see whether it serves MCP on standard input and output"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, errs := said(t, test.code, test.args...)
			for _, want := range test.want {
				require.Contains(t, errs, want)
			}
			require.Empty(t, out)
		})
	}
}

func TestOneFailingListDoesNotHideTheOthers(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := func(text string) {
			w.Header().Set("Content-Type", "application/json")
			id := bytes.TrimSuffix(bytes.SplitN(bytes.SplitN(body, []byte(`"id":`), 2)[1], []byte(","), 2)[0], []byte("}"))
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(id)+`,`+text+`}`)
		}
		switch {
		case bytes.Contains(body, []byte("server/discover")):
			answer(`"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"ttlMs":0,"cacheScope":"public"}`)
		case bytes.Contains(body, []byte("tools/list")):
			answer(`"error":{"code":-32603,"message":"the tools are away"}`)
		case bytes.Contains(body, []byte("prompts/list")):
			answer(`"result":{"prompts":[{"name":"greet"}]}`)
		case bytes.Contains(body, []byte("templates/list")):
			answer(`"result":{"resourceTemplates":[]}`)
		default:
			answer(`"result":{"resources":[{"name":"a","uri":"x://a"}]}`)
		}
	}))
	defer web.Close()
	for _, command := range []string{"list", "inspect"} {
		out, errs := said(t, exitProtocol, command, web.URL)
		require.Contains(t, out, "greet")
		require.Contains(t, out, "x://a")
		require.Equal(t, "mcpkit "+command+": client: tools/list: the tools are away (code -32603)\n", errs)
	}
}
