// Package oracle holds recorded exchanges between clients and the server, and the tests that replay
// them byte for byte. It is tests alone.
//
// Each file below testdata/TRANSPORT/VERSION is one exchange: what it shows, and what client and
// server send in turn. The section "options" names options of the fixture; the section "open" is
// sent like "client", but its responses are not recorded. "server 1" has more of the response to the
// client's first HTTP request, and "# open" means that a response has not ended. Values such as
// session IDs are placeholders. The folder schemas has the schemas of all tools of the fixture.
//
//	go test ./internal/oracle            replays
//	go test ./internal/oracle -update    records; see testdata/differences.md
//
// A new exchange is a new file with the sections of the client.
package oracle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

var update = flag.Bool("update", false, "record what the server sends")

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// TestExchanges plays the client of each file and compares what the server sends. Folders are the
// transport and the protocol version. With -update, it writes what the server sends anew.
func TestExchanges(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".txtar")
		t.Run(name, func(t *testing.T) { replay(t, file, strings.Split(name, "/")[0]) })
	}
}

func replay(t *testing.T, file, transport string) {
	recorded, err := os.ReadFile(file)
	require.NoError(t, err)
	exchange := txtar.Parse(recorded)
	require.NotEmpty(t, exchange.Comment, "the first lines of an exchange say what it shows")
	script := exchange.Files
	synctest.Test(t, func(t *testing.T) { exchange.Files = play(t, transport, script) })
	if *update {
		require.NoError(t, os.WriteFile(file, txtar.Format(exchange), 0o644))
	} else if want, got := string(recorded), string(txtar.Format(exchange)); want != got {
		t.Fatalf("the exchange differs; if it should, record it with -update, and add a line to differences.md\n%s", difference(want, got))
	}
}

// difference shows the first byte that differs, and what is around it.
func difference(want, got string) string {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	around := func(s string) string { return s[max(0, i-200):min(len(s), i+300)] }
	return fmt.Sprintf("line %d\nwant: …%s…\n got: …%s…", 1+strings.Count(want[:i], "\n"), around(want), around(got))
}

// play sends each section of the client once the server has nothing more to do, and returns it with
// the sections of the server. The section "options" names the fixture's options. What the server
// sends after the section "open" is not recorded.
func play(t *testing.T, transport string, script []txtar.File) []txtar.File {
	var played []txtar.File
	options := ""
	if script[0].Name == "options" {
		options, played, script = string(script[0].Data), script[:1:1], script[1:]
	}
	l := open(t, transport, strings.Fields(options))
	defer l.close()
	names := placeholders{values: map[string]string{}, names: map[string]string{}, counts: map[string]int{}}
	for _, f := range script {
		if f.Name != "client" && f.Name != "open" {
			continue
		}
		played = append(played, f)
		text := names.restore(string(f.Data))
		wait, err := 10*time.Millisecond, error(nil) // the server may hold a response for a moment
		if pause, ok := strings.CutPrefix(text, "# wait "); ok {
			wait, err = time.ParseDuration(strings.TrimSpace(pause))
			require.NoError(t, err)
		} else {
			l.send(text)
		}
		time.Sleep(wait)
		synctest.Wait()
		for _, r := range l.received() {
			if r.Data = []byte(names.replace(visible(string(r.Data)))); f.Name == "client" {
				played = append(played, r)
			}
		}
	}
	return played
}

// visible quotes lines that a text file cannot hold.
func visible(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\r") && strings.HasSuffix(text, "\n") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strconv.Quote(line) + "\n")
	}
	return b.String()
}

var repeated = regexp.MustCompile(`<(\d+) times (.+?)>`)

// raw returns the bytes that a line of the client stands for: itself, or what a line in quotes says.
// <9 times x> stands for xxxxxxxxx.
func raw(t *testing.T, line string) string {
	text := line
	if strings.HasPrefix(line, `"`) {
		var err error
		text, err = strconv.Unquote(strings.TrimSuffix(line, "\n"))
		require.NoError(t, err, line)
	}
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return strings.Repeat(m[2], n)
	})
}

// placeholders replace values that differ from run to run, or that only the server understands.
type placeholders struct {
	values, names map[string]string // by placeholder, by value
	counts        map[string]int
}

// opaque finds these values: the first group of each.
var opaque = []struct {
	name string
	re   *regexp.Regexp
}{
	{"session", regexp.MustCompile(`(?m)^Mcp-Session-Id: (.+)$`)},
	{"endpoint", regexp.MustCompile(`(?m)^event: endpoint\ndata: (.+)$`)},
	{"event", regexp.MustCompile(`(?m)^id: (.+)$`)},
	{"cursor", regexp.MustCompile(`"nextCursor":"([^"]+)"`)},
	{"state", regexp.MustCompile(`"requestState":"([^"]+)"`)},
	{"elicitation", regexp.MustCompile(`"elicitationId":"([^"]+)"`)},
	{"ref", regexp.MustCompile(`\(ref ([0-9A-Za-z]{4,})\)`)},
	{"key", regexp.MustCompile(`"([^"]+)":\{"method":"(?:elicitation|sampling|roots)/`)},
	{"ask", regexp.MustCompile(`"id":([^,{}]+),"method":"(?:elicitation|sampling|roots)/`)},
}

func (p *placeholders) replace(text string) string {
	for _, o := range opaque {
		var b strings.Builder
		done := 0
		for _, m := range o.re.FindAllStringSubmatchIndex(text, -1) {
			value := text[m[2]:m[3]]
			name := p.names[o.name+value]
			if name == "" {
				p.counts[o.name]++
				name = fmt.Sprintf("<%s %d>", o.name, p.counts[o.name])
				p.names[o.name+value], p.values[name] = name, value
			}
			b.WriteString(text[done:m[2]] + name)
			done = m[3]
		}
		text = b.String() + text[done:]
	}
	return text
}

func (p *placeholders) restore(text string) string {
	for name, value := range p.values {
		text = strings.ReplaceAll(text, name, value)
	}
	return text
}

// TestSchemas compares the published schemas of the fixture's tools, one file for each.
func TestSchemas(t *testing.T) {
	var list struct {
		Result struct {
			Tools []struct {
				Name                      string
				InputSchema, OutputSchema json.RawMessage
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := open(t, "stdio", []string{"whole"})
		l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}}}}` + "\n")
		time.Sleep(time.Second)
		require.NoError(t, json.Unmarshal(l.received()[0].Data, &list))
		l.close()
	})
	for _, tool := range list.Result.Tools {
		var text bytes.Buffer
		both := fmt.Sprintf(`{"input":%s,"output":%s}`, tool.InputSchema, cmp.Or(string(tool.OutputSchema), "null"))
		require.NoError(t, json.Indent(&text, []byte(both), "", "\t"))
		file := filepath.Join("testdata", "schemas", tool.Name+".json")
		if *update {
			require.NoError(t, os.WriteFile(file, text.Bytes(), 0o644))
		}
		recorded, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(recorded), text.String(), file)
	}
	recorded, err := filepath.Glob("testdata/schemas/*")
	require.NoError(t, err)
	require.Len(t, recorded, len(list.Result.Tools))
}
