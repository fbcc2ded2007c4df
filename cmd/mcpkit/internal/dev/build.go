package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// build builds the program. It returns its path, or why it does not compile.
//
// Generated descriptions are replaced by empty files: they may be older than the source, whose
// comments the program reads itself, and then they may not compile.
func (s *Server) build(ctx context.Context, src *source) (program, fault string) {
	if fault := src.fault(s.opts.Package); fault != "" {
		return "", fault
	}
	program, err := s.next()
	if err != nil {
		return "", err.Error()
	}
	args := []string{"build", "-buildvcs=false", "-o", program}
	if len(src.generated) > 0 {
		overlay, err := s.overlay(src.generated)
		if err != nil {
			return "", err.Error()
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "--", s.opts.Package)...)
	cmd.Dir = s.opts.Dir
	output, err := cmd.CombinedOutput()
	if err == nil {
		return program, ""
	}
	text := strings.TrimSpace(string(output))
	if text == "" {
		text = err.Error()
	}
	return "", "the program does not build:\n" + text
}

// overlay writes the file for the flag -overlay that replaces the generated files. The values of
// generated are the names of their packages.
func (s *Server) overlay(generated map[string]string) (string, error) {
	replace := map[string]string{}
	for path, name := range generated {
		empty := filepath.Join(s.temp, "empty", name+".go")
		if err := os.MkdirAll(filepath.Dir(empty), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(empty, []byte("package "+name+"\n"), 0o600); err != nil {
			return "", err
		}
		replace[path] = empty
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.temp, "empty", "overlay.json")
	return path, os.WriteFile(path, raw, 0o600)
}

// Limits of what callers get of a fault.
const (
	maxFaultLines = 40
	maxFaultBytes = 6 << 10
)

// forCaller shortens a fault for a caller.
func forCaller(fault string) string { return Shorten(fault, maxFaultLines, maxFaultBytes) }

// Shorten returns the first lines of a text, and says how many lines are left out.
func Shorten(text string, lines, size int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	kept, length := 0, 0
	for kept < len(all) && kept < lines && length+len(all[kept]) <= size {
		length += len(all[kept]) + 1
		kept++
	}
	if kept == 0 { // one very long line
		return strings.ToValidUTF8(all[0][:size], "") + "…"
	}
	short := strings.Join(all[:kept], "\n")
	if left := len(all) - kept; left > 0 {
		short += fmt.Sprintf("\n… and %d more lines", left)
	}
	return short
}

// continues reports whether params are those of a later round of a call, with answers to questions.
func continues(params json.RawMessage) bool { return jsonx.Member(params, "requestState") != nil }
