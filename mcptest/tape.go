package mcptest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A line is one message of a conversation.
type line struct {
	client bool
	text   string
}

func (l line) side() string {
	if l.client {
		return "client"
	}
	return "server"
}

// A scrubber finds values that differ from run to run: its first group, or the whole match.
type scrubber struct {
	name string
	re   *regexp.Regexp
	// alike gives all values the same placeholder: two times may be equal in one run and differ in
	// the next.
	alike bool
	// own keeps values that the client sent first.
	own bool
}

var scrubbers = []scrubber{
	{"state", regexp.MustCompile(`"requestState":"([^"\\]+)"`), false, true},
	{"elicitation", regexp.MustCompile(`"elicitationId":"([^"\\]+)"`), false, true},
	{"ref", regexp.MustCompile(`\(ref ([0-9A-Za-z]{4,})\)`), false, true},
	{"uuid", regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), false, true},
	{"time", regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`), true, true},
}

// shortest is the length in bytes of the shortest value that is replaced in messages of the client.
const shortest = 8

// A tape holds a conversation, with placeholders for values that differ from run to run.
type tape struct {
	scrubbers []scrubber

	mu      sync.Mutex
	lines   []line            // guarded by mu
	heard   strings.Builder   // the messages of the client, unchanged; guarded by mu
	names   map[string]string // placeholders by value; guarded by mu
	values  map[string]string // the last one for each placeholder; guarded by mu
	counts  map[string]int    // guarded by mu
	asked   int64             // requests of the server; guarded by mu
	stopped bool              // guarded by mu
	grown   chan struct{}     // closed at the next line of the server; guarded by mu
}

func newTape(scrub []*regexp.Regexp) *tape {
	t := &tape{scrubbers: slices.Clone(scrubbers), names: map[string]string{}, values: map[string]string{}, counts: map[string]int{}, grown: make(chan struct{})}
	for _, re := range scrub {
		t.scrubbers = append(t.scrubbers, scrubber{"value", re, false, false})
	}
	return t
}

// stop ends the recording and returns the messages.
func (t *tape) stop() []line {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	return t.lines
}

// nextID counts the requests of the server.
func (t *tape) nextID() jsonrpc.ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
	return jsonrpc.StringID("server-" + strconv.FormatInt(t.asked, 10))
}

// client records a message of the client.
func (t *tape) client(message []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	text := string(message)
	t.heard.WriteString(text + "\n")
	for _, value := range slices.SortedFunc(maps.Keys(t.names), func(a, b string) int { return len(b) - len(a) }) {
		if len(value) >= shortest {
			text = strings.ReplaceAll(text, value, t.names[value])
		}
	}
	t.lines = append(t.lines, line{true, text})
}

// server records a message of the server.
func (t *tape) server(message []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	text := string(message)
	for _, s := range t.scrubbers {
		text = t.scrub(s, text)
	}
	t.lines = append(t.lines, line{false, text})
	close(t.grown)
	t.grown = make(chan struct{})
}

// scrub replaces values with placeholders. The caller holds mu.
func (t *tape) scrub(s scrubber, text string) string {
	var b strings.Builder
	done := 0
	for _, m := range s.re.FindAllStringSubmatchIndex(text, -1) {
		from, to := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			from, to = m[2], m[3]
		}
		value := text[from:to]
		if value == "" || s.own && t.names[value] == "" && strings.Contains(t.heard.String(), value) {
			continue // the client sent it first
		}
		quote := ""
		if !inString(text, from) {
			if !standsAlone(text, from, to) {
				continue // for example a part of a number, which a string cannot replace
			}
			quote = `"`
		}
		b.WriteString(text[done:from] + quote + t.name(s, value) + quote)
		done = to
	}
	if b.WriteString(text[done:]); !json.Valid([]byte(b.String())) {
		return text // the match cuts an escape sequence, or spans several values
	}
	return b.String()
}

// inString reports whether an offset in JSON is inside a string.
func inString(text string, at int) bool {
	in := false
	for i := 0; i < at; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			in = !in
		}
	}
	return in
}

// standsAlone reports whether a part of JSON outside strings is the whole value of an element or a
// member.
func standsAlone(text string, from, to int) bool {
	return from > 0 && strings.ContainsAny(text[from-1:from], ":,[") && to < len(text) && strings.ContainsAny(text[to:to+1], ",]}") &&
		json.Valid([]byte(text[from:to]))
}

// name returns the placeholder of a value. The caller holds mu.
func (t *tape) name(s scrubber, value string) string {
	name := t.names[value]
	switch {
	case name != "":
	case s.alike:
		name = "<" + s.name + ">"
	default:
		t.counts[s.name]++
		name = fmt.Sprintf("<%s %d>", s.name, t.counts[s.name])
	}
	t.names[value], t.values[name] = name, value
	return name
}

// restore replaces placeholders with values.
func (t *tape) restore(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, value := range t.values {
		text = strings.ReplaceAll(text, name, value)
	}
	return text
}

// said returns how many messages the server has sent, and a channel that the next one closes.
func (t *tape) said() (n int, grown <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lines {
		if !l.client {
			n++
		}
	}
	return n, t.grown
}

// maxDifferences is how many differences of one line are reported.
const maxDifferences = 10

// diffLines describes the first difference of two conversations, or returns "".
func diffLines(want, got []line) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("line %d: the conversation ends; the %s should send\n  %s", i+1, want[i].side(), want[i].text)
		case i >= len(want):
			return fmt.Sprintf("line %d: the conversation should end; the %s sends\n  %s", i+1, got[i].side(), got[i].text)
		case want[i].client != got[i].client:
			return fmt.Sprintf("line %d: the %s should send a message, but the %s does\nwant: %s\n got: %s", i+1, want[i].side(), got[i].side(), want[i].text, got[i].text)
		case !same([]byte(want[i].text), []byte(got[i].text)):
			var places []string
			diffJSON(&places, "", []byte(want[i].text), []byte(got[i].text))
			if len(places) > maxDifferences {
				places = append(places[:maxDifferences], "and more")
			}
			return fmt.Sprintf("line %d: the message of the %s differs\n%s", i+1, want[i].side(), strings.Join(places, "\n"))
		}
	}
	return ""
}

// diffJSON appends the JSON pointers at which two values differ.
func diffJSON(places *[]string, at string, want, got []byte) {
	if same(want, got) {
		return
	}
	switch a, b := jsonx.Kind(want), jsonx.Kind(got); {
	case a == '{' && b == '{':
		before, after := members(want), members(got)
		all := maps.Clone(before)
		maps.Copy(all, after)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			diffJSON(places, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), before[name], after[name])
		}
	case a == '[' && b == '[':
		before, after := slices.Collect(jsonx.Elements(want)), slices.Collect(jsonx.Elements(got))
		for i := range max(len(before), len(after)) {
			var x, y []byte
			if i < len(before) {
				x = before[i]
			}
			if i < len(after) {
				y = after[i]
			}
			diffJSON(places, at+"/"+strconv.Itoa(i), x, y)
		}
	default:
		*places = append(*places, fmt.Sprintf("at %q\n  want: %s\n   got: %s", at, cmp.Or(string(want), "(none)"), cmp.Or(string(got), "(none)")))
	}
}

func members(obj []byte) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for name, value := range jsonx.Members(obj) {
		all[jsonx.String(name)] = value
	}
	return all
}
