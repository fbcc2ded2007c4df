package mcptest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/protocol"
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

// Kiosk sells tickets. Careless orders twice if the last round is repeated.
type Kiosk struct {
	_ struct {
		Careful  mcpkit.Tool     `hints:"additive"`
		Careless mcpkit.Tool     `hints:"additive"`
		Count    mcpkit.Tool     `hints:"readonly"`
		Receipt  mcpkit.Resource `uri:"kiosk://receipt"`
		Greet    mcpkit.Prompt
	}
	orders map[string]bool
	made   int
}

func (k *Kiosk) Careful(ctx context.Context) (string, error) {
	id, err := mcpkit.Once(ctx, "order", func() (string, error) { k.made++; return fmt.Sprint(k.made), nil })
	if err != nil {
		return "", err
	}
	if _, err := mcpkit.Confirm(ctx, "Order?"); err != nil {
		return "", err
	}
	k.orders[id] = true
	return "order " + id, nil
}

func (k *Kiosk) Careless(ctx context.Context) (string, error) {
	if _, err := mcpkit.Confirm(ctx, "Order?"); err != nil {
		return "", err
	}
	k.made++
	return fmt.Sprint("order ", k.made), nil
}

func (k *Kiosk) Count() int { return len(k.orders) - 1 }

func (k *Kiosk) Receipt(ctx context.Context) (string, error) {
	_, err := mcpkit.Confirm(ctx, "Show it?")
	return "paid", err
}

func (k *Kiosk) Greet(ctx context.Context) (string, error) {
	_, err := mcpkit.Confirm(ctx, "Greet?")
	return "Hello", err
}

func TestTheLastRoundIsRepeated(t *testing.T) {
	mcptest.EachVersion(t, func(t *testing.T) *mcptest.Server {
		return mcptest.New(t, &Kiosk{orders: map[string]bool{}})
	}, func(t *testing.T, s *mcptest.Server) {
		if s.Client().Version() < protocol.V20250618 {
			t.Skip("this version has no questions")
		}
		s = s.Answer("Order?", true).Answer("Show it?", true).Answer("Greet?", true)
		first := s.Call("careful", nil).OK().Text("order 1")
		first.Again().OK().Text("order 1").Again().OK().Text("order 1")
		s.Read("kiosk://receipt").OK().Again().OK().Text("paid")
		s.Prompt("greet", nil).OK().Again().OK().Text("user: Hello")
		again := s.Call("careless", nil).OK().Text("order 2").Again().OK()
		if s.Client().Version().Modern() {
			again.Text("order 3")
		}
	})
}

func TestAgainNeedsAQuestion(t *testing.T) {
	said := failures(t, func(t testing.TB) {
		s := mcptest.New(t, &Kiosk{orders: map[string]bool{}}).Answer("Order?", true)
		s.Call("careful", nil).OK()
		s.Call("count", nil).OK().Again() // the round of careful is not that of count
	})
	require.Equal(t, []string{"call count\nwant: a question, so that Again can repeat the round with its answer\n got: success, \"0\""}, said)
}
