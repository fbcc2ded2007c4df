package dev

import (
	"context"
	"encoding/json"
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

// maxFault limits the bytes that callers get of a fault.
const maxFault = 6 << 10

// Shorten returns the beginning of a text.
func Shorten(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + "…"
}

// continues reports whether params are those of a later round of a call, with answers to questions.
func continues(params json.RawMessage) bool { return jsonx.Member(params, "requestState") != nil }
