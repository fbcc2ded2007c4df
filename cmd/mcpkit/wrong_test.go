package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

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
