package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

const maxOutputBytes = 256 << 10

// A command is a program with its arguments. No shell interprets them.
type command struct {
	dir  string
	env  []string
	name string
	args []string
	line func(text string) // receives lines of the output; may be nil
}

// Output is the result of a command.
type Output struct {
	// The standard output and standard error of the command.
	Output string `json:"output"`
	// 0 if the command succeeded.
	ExitCode int `json:"exitCode"`
	// Whether the output was longer than 256 KiB and is cut off.
	Truncated bool `json:"truncated"`
}

// run runs the command. When ctx ends, it kills the command and its children. An exit code other
// than 0 is not an error.
func (c command) run(ctx context.Context) (Output, error) {
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(withoutGit(cmd.Environ()), c.env...)
	cmd.WaitDelay = 2 * time.Second
	killGroup(cmd)
	out := &capped{line: c.line}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if ctx.Err() != nil {
		return Output{}, ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return Output{}, mcpkit.Errorf("the program %q is not installed on this machine", c.name)
	}
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return Output{}, err
	}
	text := strings.ToValidUTF8(out.kept.String(), "\uFFFD")
	return Output{Output: text, ExitCode: cmd.ProcessState.ExitCode(), Truncated: out.truncated}, nil
}

// withoutGit removes the variables that point git at another repository. In a git hook they are
// set.
func withoutGit(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "GIT_") })
}

// capped keeps the beginning of what a command writes.
type capped struct {
	line      func(text string) // may be nil
	kept      bytes.Buffer
	truncated bool
}

// Write implements io.Writer. It never fails, since a command behaves differently if it cannot
// write.
func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), maxOutputBytes-c.kept.Len())
	c.kept.Write(p[:n])
	c.truncated = c.truncated || n < len(p)
	if c.line != nil {
		for line := range strings.Lines(string(p[:min(len(p), 16*maxLineBytes)])) {
			c.line(shorten(strings.TrimSpace(line)))
		}
	}
	return len(p), nil
}
