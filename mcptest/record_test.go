package mcptest_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// ticket matches the numbers of tickets.
var ticket = regexp.MustCompile(`ticket (\d+)`)

// docs:begin record

func TestTheConversationIsTheOneThatWasReviewed(t *testing.T) {
	s := mcptest.New(t, &Desk{}).Answer("sure?", true).Record("testdata/desk.txtar", ticket)
	s.Call("add", map[string]int{"a": 2, "b": 3}).OK()
	s.Call("stamp", map[string]string{"From": "2026-01-01T00:00:00Z"}).OK() // times, UUIDs and tickets have names in the file
	s.Call("sure", nil).OK()
	s.Call("fail", nil).Error("no paper")
	s.Call("break", nil) // an internal error, with a ref that is another one each time
}

// docs:end record

// docs:begin replay

func TestTheServerStillAnswersWhatClientsSaid(t *testing.T) {
	mcptest.New(t, &Desk{}).Replay("testdata/desk.txtar", ticket)
}

// docs:end replay

// talk is a conversation with all sorts of messages.
func talk(s *mcptest.Server) {
	s.Call("work", nil).OK()
	s.Call("stamp", map[string]string{"From": "me"}).OK()
	s.Call("sure", nil).OK().Text("true")
	s.Prompt("greet", map[string]string{"name": "Ann"}).OK()
	s.Read("desk://rules").OK()
}

func TestWhatIsRecordedOnAnyBindingIsReplayed(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for name, on := range map[string]func(*mcptest.Server) *mcptest.Server{
			"memory": func(s *mcptest.Server) *mcptest.Server { return s },
			"stdio":  (*mcptest.Server).Stdio,
			"http":   (*mcptest.Server).HTTP,
		} {
			t.Run(name+"/"+revision, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "talk.txtar")
				update(t, func() {
					t.Run("record", func(t *testing.T) {
						s := on(mcptest.New(t, &Desk{})).Answer("sure?", true)
						talk(s.Version(protocol.Version(revision)).Record(file, ticket))
					})
				})
				raw, err := os.ReadFile(file)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(string(raw), "The messages of client and server in "+t.Name()+"/record.\n\n-- client --\n"), string(raw))
				require.Contains(t, string(raw), "me: ticket <value 1> at <time>, batch <uuid 1>")

				t.Run("compare", func(t *testing.T) {
					s := on(mcptest.New(t, &Desk{})).Answer("sure?", true)
					talk(s.Version(protocol.Version(revision)).Record(file, ticket))
				})
				desk := &Desk{}
				desk.stamps.Store(41) // other tickets, times and UUIDs
				mcptest.New(t, desk).Replay(file, ticket)
			})
		}
	}
}

func TestReplayWritesTheServersSide(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.txtar")
	said := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	require.NoError(t, os.WriteFile(file, []byte("Adding.\n\n-- client --\n"+said+"\n"), 0o600))
	update(t, func() { mcptest.New(t, &Desk{}).Replay(file) })
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(raw), "Adding.\n\n-- client --\n"+said+"\n-- server --\n{"), string(raw))
	require.Contains(t, string(raw), `"structuredContent":5`)
	mcptest.New(t, &Desk{}).Replay(file)
}

// The response to a subscription comes at its end. Until then the client sends further messages.
func TestSubscriptionsAreReplayed(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	file := filepath.Join(t.TempDir(), "talk.txtar")
	require.NoError(t, os.WriteFile(file, []byte("-- client --\n"+
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+"}}\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"who",`+meta+"}}\n"), 0o600))
	update(t, func() { mcptest.New(t, &Desk{}).Replay(file) })
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(raw), "-- server --\n"), string(raw))
	require.Contains(t, string(raw), "notifications/subscriptions/acknowledged")
	require.Contains(t, string(raw), `"text":"nobody"`)
	for range 3 {
		mcptest.New(t, &Desk{}).Replay(file)
	}
}

func TestConversationsThatDifferFail(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who",` + meta + `}}`
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"nobody"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"desk","version":"1.0.0"}}}}`
	for _, test := range []struct {
		name, file string
		want       string
	}{
		{"the same", "-- client --\n" + call + "\n-- server --\n" + answer + "\n", ""},
		{"another text", "-- client --\n" + call + "\n-- server --\n" + strings.Replace(answer, "nobody", "ann", 1) + "\n",
			"mcptest: the conversation differs from FILE; -update writes it\nline 2: the message of the server differs\nat \"/result/content/0/text\"\n  want: \"ann\"\n   got: \"nobody\""},
		{"no answer", "-- client --\n" + call + "\n",
			"mcptest: the conversation differs from FILE; -update writes it\nline 2: the conversation should end; the server sends\n  " + answer},
		{"more answers", "-- client --\n" + call + "\n-- server --\n" + answer + "\n" + answer + "\n",
			"mcptest: the conversation differs from FILE; -update writes it\nline 3: the conversation ends; the server should send\n  " + answer},
		{"nothing asked", "-- client --\n{\"jsonrpc\":\"2.0\",\"id\":\"server-1\",\"result\":{}}\n",
			"mcptest: FILE: line 1: the client responds, but the server has not sent a request\n  {\"jsonrpc\":\"2.0\",\"id\":\"server-1\",\"result\":{}}"},
		{"another section", "-- golden --\n", "mcptest: FILE: a transcript has only the sections client and server, not \"golden\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "talk.txtar")
			require.NoError(t, os.WriteFile(file, []byte(test.file), 0o600))
			said := failures(t, func(t testing.TB) { mcptest.New(t, &Desk{}).Replay(file) })
			if test.want == "" {
				require.Empty(t, said)
				return
			}
			require.Equal(t, []string{strings.ReplaceAll(test.want, "FILE", file)}, said)
		})
	}
}

func TestARecordingThatDiffersFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.txtar")
	record := func(t testing.TB, tool string) { mcptest.New(t, &Desk{}).Record(file).Call(tool, nil).OK() }
	said := failures(t, func(t testing.TB) { record(t, "who") })
	require.Equal(t, []string{"mcptest: open " + file + ": no such file or directory; -update writes it"}, said)
	update(t, func() { t.Run("record", func(t *testing.T) { record(t, "who") }) })
	said = failures(t, func(t testing.TB) { record(t, "pair") })
	require.Equal(t, []string{"mcptest: the conversation differs from " + file + "; -update writes it\nline 3: the message of the client differs\n" +
		"at \"/params/name\"\n  want: \"who\"\n   got: \"pair\""}, said)
}

// Waiter waits until its caller cancels.
type Waiter struct {
	_ mcpkit.Info `name:"waiter" version:"1.0.0"`
}

func (Waiter) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAServerThatDoesNotAnswerFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.txtar")
	require.NoError(t, os.WriteFile(file, []byte("-- client --\n"+
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n"), 0o600))
	defer mcptest.SetReplayPatience(50 * time.Millisecond)()
	said := failures(t, func(t testing.TB) { mcptest.New(t, &Waiter{}).Replay(file) })
	require.Len(t, said, 1)
	require.Contains(t, said[0], "mcptest: "+file+": line 1: the server does not respond\n")
}
