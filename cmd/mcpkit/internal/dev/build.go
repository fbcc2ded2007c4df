package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// build builds the program. It returns its path, or why it does not compile.
//
// Generated descriptions are left out: they may be older than the source, whose comments the program
// reads itself, and then they may not compile.
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
		overlay, err := services.Overlay(s.temp, src.generated)
		if err != nil {
			return "", err.Error()
		}
		args = append(args, overlay)
	}
	cmd := services.Go(ctx, append(args, "--", s.opts.Package)...)
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
