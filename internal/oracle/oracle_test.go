package oracle

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

var update = flag.Bool("update", false, "record what the server sends")

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// TestExchanges plays the client of each file and compares what the server sends. Folders are the
// transport and the protocol version. With -update, it writes the files, and those of [rows] anew.
func TestExchanges(t *testing.T) {
	if *update {
		writeRows(t)
	}
	err := filepath.WalkDir("testdata", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".txtar") {
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".txtar")
			t.Run(name, func(t *testing.T) { replay(t, file, strings.Split(name, "/")[0]) })
		}
		return err
	})
	require.NoError(t, err)
}

func replay(t *testing.T, file, transport string) {
	recorded, err := txtar.ParseFile(file)
	require.NoError(t, err)
	require.NotEmpty(t, recorded.Comment, "the first lines of an exchange say what it shows")
	var played []txtar.File
	synctest.Test(t, func(t *testing.T) { played = play(t, transport, recorded.Files) })
	if *update {
		recorded.Files = played
		require.NoError(t, os.WriteFile(file, txtar.Format(recorded), 0o644))
		return
	}
	for i := range max(len(played), len(recorded.Files)) {
		var want, got txtar.File
		if i < len(recorded.Files) {
			want = recorded.Files[i]
		}
		if i < len(played) {
			got = played[i]
		}
		if diff := difference(want, got); diff != "" {
			t.Fatalf("%s differs; review it, and record it with -update and a line in differences.md\n%s", file, diff)
		}
	}
}

// difference shows the first line that differs, from shortly before its first different byte.
func difference(want, got txtar.File) string {
	a := strings.SplitAfter("-- "+want.Name+" --\n"+string(want.Data), "\n")
	b := strings.SplitAfter("-- "+got.Name+" --\n"+string(got.Data), "\n")
	for i := range max(len(a), len(b)) {
		x, y := strings.Join(a[min(i, len(a)):min(i+1, len(a))], ""), strings.Join(b[min(i, len(b)):min(i+1, len(b))], "")
		if x == y {
			continue
		}
		same := 0
		for same < min(len(x), len(y)) && x[same] == y[same] {
			same++
		}
		cut := func(s string) string { return s[max(0, same-60):min(len(s), same+300)] }
		return fmt.Sprintf("section %s, line %d, byte %d\nwant: …%s\n got: …%s", want.Name, i, same, cut(x), cut(y))
	}
	return ""
}

// A link is the client's end of a connection, or of a series of HTTP requests.
type link interface {
	// send sends the text of one section, without waiting.
	send(t *testing.T, text string)
	// received returns what the server has sent since the last call, by section.
	received() []txtar.File
	// close disconnects, and ends the server.
	close()
}

// play sends each section of the client once the server has nothing more to do, and returns it with
// the sections of the server. The section "options" names the fixture's options. What the server
// sends after the section "open" is not recorded.
func play(t *testing.T, transport string, script []txtar.File) []txtar.File {
	var played []txtar.File
	options := ""
	if script[0].Name == "options" {
		options = string(script[0].Data)
		played, script = append(played, script[0]), script[1:]
	}
	l := open(t, transport, strings.Fields(options))
	defer func() { l.close(); synctest.Wait() }()
	names := placeholders{values: map[string]string{}, names: map[string]string{}, counts: map[string]int{}}
	for _, f := range script {
		if f.Name != "client" && f.Name != "open" {
			continue
		}
		played = append(played, f)
		text := names.restore(string(f.Data))
		if wait, ok := strings.CutPrefix(text, "# wait "); ok {
			d, err := time.ParseDuration(strings.TrimSpace(wait))
			require.NoError(t, err)
			time.Sleep(d)
		} else {
			l.send(t, text)
		}
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
		for m := o.re.FindStringSubmatchIndex(text); m != nil; m = o.re.FindStringSubmatchIndex(text) {
			value := text[m[2]:m[3]]
			if strings.HasPrefix(value, "<") {
				break
			}
			name := p.names[o.name+value]
			if name == "" {
				p.counts[o.name]++
				name = fmt.Sprintf("<%s %d>", o.name, p.counts[o.name])
				p.names[o.name+value], p.values[name] = name, value
			}
			text = text[:m[2]] + name + text[m[3]:]
		}
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
	var page struct {
		ID     int
		Result struct {
			Tools []struct {
				Name                      string
				InputSchema, OutputSchema json.RawMessage
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := open(t, "stdio", []string{"whole"})
		l.send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta("2026-07-28", everything)+`}}`+"\n")
		synctest.Wait()
		require.NoError(t, json.Unmarshal(l.received()[0].Data, &page))
		l.close()
	})
	var files []string
	for _, tool := range page.Result.Tools {
		var text bytes.Buffer
		for _, s := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
			if s != nil {
				require.NoError(t, json.Indent(&text, s, "", "\t"))
				text.WriteString("\n")
			}
		}
		file := filepath.Join("testdata", "schemas", tool.Name+".json")
		files = append(files, file)
		if *update {
			require.NoError(t, os.WriteFile(file, text.Bytes(), 0o644))
		}
		recorded, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(recorded), text.String(), file)
	}
	recorded, err := filepath.Glob("testdata/schemas/*")
	require.NoError(t, err)
	slices.Sort(files)
	require.Equal(t, recorded, files, "a file for each tool, and no others")
}
