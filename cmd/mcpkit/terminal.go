package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/term"
)

// isTerminal reports whether stream is a terminal, with somebody in front of it. A test says so by
// a method IsTerminal.
func isTerminal(stream any) bool {
	switch s := stream.(type) {
	case interface{ IsTerminal() bool }:
		return s.IsTerminal()
	case *os.File:
		return term.IsTerminal(int(s.Fd()))
	}
	return false
}

// A screen writes for people, one writer at a time: what calls tell of themselves comes from
// several goroutines, and the server's own standard error goes to the same place.
type screen struct {
	live   bool // a terminal that understands control sequences
	colour bool

	mu     sync.Mutex
	w      io.Writer // guarded by mu
	status bool      // the line that the cursor is in is a passing one; guarded by mu
}

// newScreen makes a screen of a stream. Colour is for terminals that want it
// (https://no-color.org).
func newScreen(w io.Writer) *screen {
	live := isTerminal(w) && os.Getenv("TERM") != "dumb"
	return &screen{w: w, live: live, colour: live && os.Getenv("NO_COLOR") == ""}
}

// Write writes text that stays.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	return s.w.Write(p)
}

// pass shows a line until the next one takes its place. Where lines cannot be taken back it stays.
func (s *screen) pass(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	if !s.live {
		line += "\n"
	}
	_, _ = io.WriteString(s.w, line)
	s.status = s.live
}

// wipe removes the passing line. The caller holds mu.
func (s *screen) wipe() {
	if s.status {
		_, _ = io.WriteString(s.w, "\r\x1b[K")
		s.status = false
	}
}

// done removes the passing line when nothing more is to come.
func (s *screen) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
}

func (s *screen) printf(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }

// line writes the parts that there are on a line, with blanks between.
func (s *screen) line(parts ...string) {
	s.printf("%s\n", strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " "))
}

// Styles of text, as SGR parameters.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
)

// paint returns text in a style, where there are any.
func (s *screen) paint(style, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// clean makes what a server says fit for a terminal: control characters, those that turn the
// direction of text included, are shown as Go writes them. Line feeds and tabs stay.
func clean(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c == '\n' || c == '\t' || !unicode.IsControl(c) && !unicode.Is(unicode.Cf, c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(fmt.Sprintf("%+q", c), "'"))
		}
	}
	return b.String()
}

// cleanLine is clean for what has to stay on one line.
func cleanLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
