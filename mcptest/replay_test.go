package mcptest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcptest"
)

// ticket matches the numbers of tickets.
var ticket = regexp.MustCompile(`ticket (\d+)`)

// docs:begin replay

func TestTheServerAnswersAsBefore(t *testing.T) {
	mcptest.New(t, &Desk{}).Replay("testdata/desk.txtar", ticket)
}

// docs:end replay

// Another run has other states, references, tickets, times and UUIDs.
func TestReplayPutsPlaceholdersForWhatDiffers(t *testing.T) {
	desk := &Desk{}
	desk.stamps.Store(41)
	mcptest.New(t, desk).Replay("testdata/desk.txtar", ticket)
}

func TestReplayAnswersQuestionsOfLegacyServers(t *testing.T) {
	mcptest.New(t, &Desk{}).Replay("testdata/legacy.txtar")
}

const (
	meta   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	call   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who",` + meta + `}}`
	answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"nobody"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"desk","version":"1.0.0"}}}}`
)

func TestReplayWritesTheServersSide(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.txtar")
	require.NoError(t, os.WriteFile(file, []byte("Asking.\n\n-- client --\n"+call+"\n"), 0o600))
	update(t, func() { mcptest.New(t, &Desk{}).Replay(file) })
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "Asking.\n\n-- client --\n"+call+"\n-- server --\n"+answer+"\n", string(raw))
}

// The response to a subscription comes at its end. Until then the client sends further messages.
func TestSubscriptionsAreReplayed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.txtar")
	require.NoError(t, os.WriteFile(file, []byte("-- client --\n"+
		`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+"}}\n"+call+"\n"), 0o600))
	update(t, func() { mcptest.New(t, &Desk{}).Replay(file) })
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(raw), "-- server --\n"+`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"`)
	require.True(t, strings.HasSuffix(string(raw), "-- client --\n"+call+"\n-- server --\n"+answer+"\n"), string(raw))
	for range 3 {
		mcptest.New(t, &Desk{}).Replay(file)
	}
}

func TestConversationsThatDifferFail(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"the same, with white space", "-- client --\n" + call + "\n-- server --\n" + strings.ReplaceAll(answer, `":`, `" : `) + "\n", nil},
		{"another text", "-- client --\n" + call + "\n-- server --\n" + strings.Replace(answer, "nobody", "ann", 1) + "\n",
			[]string{"mcptest: the server differs from FILE; -update writes it", `-        "text": "ann"`, `+        "text": "nobody"`}},
		{"no answer", "-- client --\n" + call + "\n", []string{"+-- server --\n"}},
		{"more answers", "-- client --\n" + call + "\n-- server --\n" + answer + "\n" + answer + "\n", []string{"mcptest: the server differs from FILE", `-  "id"`}},
		{"nothing asked", "-- client --\n{\"jsonrpc\":\"2.0\",\"id\":\"server-1\",\"result\":{}}\n", []string{"(the server has not sent a request)"}},
		{"another section", "-- golden --\n", []string{"mcptest: FILE: a transcript has only the sections client and server, not \"golden\""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "talk.txtar")
			require.NoError(t, os.WriteFile(file, []byte(test.file), 0o600))
			said := failures(t, func(t testing.TB) { mcptest.New(t, &Desk{}).Replay(file) })
			require.Len(t, said, min(1, len(test.want)))
			for _, want := range test.want {
				require.Contains(t, said[0], strings.ReplaceAll(want, "FILE", file))
			}
		})
	}
}
