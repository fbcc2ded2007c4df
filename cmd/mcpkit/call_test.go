package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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
