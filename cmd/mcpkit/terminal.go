package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal reports whether stream is a terminal. A stream of a test has a method IsTerminal.
func isTerminal(stream any) bool {
	switch s := stream.(type) {
	case interface{ IsTerminal() bool }:
		return s.IsTerminal()
	case *os.File:
		return term.IsTerminal(int(s.Fd()))
	}
	return false
}

// A screen writes text for people. It is safe for concurrent use: the progress of calls and the
// standard error of a server come from several goroutines.
type screen struct {
	live   bool // a terminal with control sequences
	colour bool

	mu     sync.Mutex
	w      io.Writer // guarded by mu
	status bool      // the cursor is on a status line; guarded by mu
}

// newScreen returns a screen for a stream. It uses colour on terminals, unless NO_COLOR is set
// (https://no-color.org).
func newScreen(w io.Writer) *screen {
	live := isTerminal(w) && os.Getenv("TERM") != "dumb"
	return &screen{w: w, live: live, colour: live && os.Getenv("NO_COLOR") == ""}
}

// Write writes text in place of the status line.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	return s.w.Write(p)
}

// setStatus shows a line that the next output replaces. On a screen that is not live, the line
// stays.
func (s *screen) setStatus(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	if !s.live {
		line += "\n"
	}
	_, _ = io.WriteString(s.w, line)
	s.status = s.live
}

// wipe removes the status line. The caller holds mu.
func (s *screen) wipe() {
	if s.status {
		_, _ = io.WriteString(s.w, "\r\x1b[K")
		s.status = false
	}
}

// clearStatus removes the status line.
func (s *screen) clearStatus() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
}

func (s *screen) printf(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }

// line writes the parts that are not empty on a line, with spaces between.
func (s *screen) line(parts ...string) {
	s.printf("%s\n", joined(" ", parts...))
}

// Styles of text, as SGR parameters.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
)

// cut shortens a text to one line of a terminal, because only one line is replaced.
func (s *screen) cut(text string) string {
	width := 0
	if f, ok := s.w.(*os.File); ok && s.live {
		width, _, _ = term.GetSize(int(f.Fd())) // zero if the width is unknown
	}
	if letters := []rune(text); width > 1 && len(letters) >= width {
		return string(letters[:width-2]) + "…"
	}
	return text
}

// paint returns text in a style, if the screen uses colour.
func (s *screen) paint(style, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// clean makes a text of a server safe for a terminal. It replaces control characters, including
// those that change the direction of text, by Go escapes. Line feeds and tabs stay.
func clean(s string) string {
	var b strings.Builder
	for _, c := range s {
		if isPlain(c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(fmt.Sprintf("%+q", c), "'"))
		}
	}
	return b.String()
}

// isPlain reports whether a character does not control the terminal.
func isPlain(c rune) bool {
	return c == '\n' || c == '\t' || !unicode.IsControl(c) && !unicode.Is(unicode.Cf, c)
}

// cleanJSON is like clean, for valid JSON, whose value stays the same: it uses the escapes of JSON.
func cleanJSON(text []byte) []byte {
	var b []byte
	for _, c := range string(text) {
		if isPlain(c) {
			b = utf8.AppendRune(b, c)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, c) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// cleanLine is like clean, and puts the text on one line.
func cleanLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
