package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A serverLog passes the standard error of a server process to the screen. While the client dials,
// it drops the lines that it has written before: a server that ends is started a second time, and
// says the same again.
type serverLog struct {
	screen   *screen
	withheld map[string]bool // the environment variables that the server does not get

	mu        sync.Mutex
	dialed    bool            // guarded by mu, as is the rest
	seen      map[string]bool // lines, without their digits
	line      []byte          // the beginning of a line
	mentioned []string        // withheld variables that the server or its results name
}

// maxLogLine limits the bytes of a line that a serverLog holds back.
const maxLogLine = 64 << 10

func newServerLog(to *screen, withheld []string) *serverLog {
	l := &serverLog{screen: to, withheld: map[string]bool{}, seen: map[string]bool{}}
	for _, name := range withheld {
		l.withheld[name] = true
	}
	return l
}

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = append(l.line, p...)
	for {
		end := bytes.IndexByte(l.line, '\n') + 1
		switch {
		case end > 0:
			l.writeLine(l.line[:end])
			l.line = l.line[end:]
		case len(l.line) > maxLogLine:
			l.writeLine(l.line)
			l.line = nil
		default:
			return len(p), nil
		}
	}
}

// digits are left out when lines are compared, because lines may begin with the time.
var digits = regexp.MustCompile(`\d+`)

// writeLine writes a line, unless it repeats one. The caller holds mu.
func (l *serverLog) writeLine(line []byte) {
	l.find(string(line))
	if !l.dialed {
		key := digits.ReplaceAllString(string(line), "")
		if l.seen[key] {
			return
		}
		l.seen[key] = true
	}
	_, _ = l.screen.Write(line)
}

// connected says that the client has dialed, so that the server runs only once from now on.
func (l *serverLog) connected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialed, l.seen = true, nil
}

// flush writes the last line if it has no end.
func (l *serverLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.writeLine(append(l.line, '\n'))
		l.line = nil
	}
}

// variableName matches what may be the name of an environment variable.
var variableName = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]{3,}`)

// read looks for withheld variables in a text of the server.
func (l *serverLog) read(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.find(text)
}

// find is read for callers that hold mu.
func (l *serverLog) find(text string) {
	for _, word := range variableName.FindAllString(text, -1) {
		if l.withheld[word] && !slices.Contains(l.mentioned, word) {
			l.mentioned = append(l.mentioned, word)
		}
	}
}

// notice says which variables the server names and does not get, or "".
func (l *serverLog) notice() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mentioned) == 0 {
		return ""
	}
	flags := "-env " + strings.Join(l.mentioned, " -env ")
	return fmt.Sprintf("%s of your environment is withheld from the server; write %s to pass it on", strings.Join(l.mentioned, ", "), flags)
}
