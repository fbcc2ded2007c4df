package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

const (
	maxOutputBytes = 256 << 10
	// killDelay is the time to wait for the output of a killed command.
	killDelay = 2 * time.Second
)

// A command is a program with its arguments. No shell interprets them.
type command struct {
	dir  string
	env  []string
	name string
	args []string
	line func(text string) // receives each line of output; may be nil
}

// Output is the result of a command.
type Output struct {
	// The standard output and standard error of the command.
	Output string `json:"output"`
	// 0 if the command succeeded.
	ExitCode int `json:"exitCode"`
	// Whether the output was longer and is cut off.
	Truncated bool `json:"truncated"`
}

// docs:begin run

// run runs the command. When ctx ends, it kills the command and its children. An exit code other
// than 0 is not an error.
func (c command) run(ctx context.Context) (Output, error) {
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(withoutGit(cmd.Environ()), c.env...)
	cmd.WaitDelay = killDelay
	killGroup(cmd)
	out := capped{line: c.line}
	cmd.Stdout, cmd.Stderr = &out, &out
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
	return Output{Output: out.String(), ExitCode: cmd.ProcessState.ExitCode(), Truncated: out.truncated}, nil
}

// docs:end run

// withoutGit removes the variables that point git at another repository. In a git hook they are
// set.
func withoutGit(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "GIT_") })
}

// text runs a command and returns its output. The caller sees the error of a command that fails.
func (c command) text(ctx context.Context) (string, error) {
	out, err := c.run(ctx)
	switch {
	case err != nil:
		return "", err
	case out.ExitCode != 0:
		return "", mcpkit.Errorf("%s ended with exit code %d: %s", c.name, out.ExitCode, strings.TrimSpace(out.Output))
	case out.Truncated:
		return out.Output + "\n… the output is longer than " + "256 KiB and cut off here", nil
	}
	return out.Output, nil
}

// capped keeps the beginning of the data written to it.
type capped struct {
	line func(text string) // may be nil

	mu        sync.Mutex
	buf       bytes.Buffer
	truncated bool
	last      []byte // the current line, as far as it is kept
}

// Write implements io.Writer. It never fails, since a command behaves differently if it cannot
// write.
func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(p), maxOutputBytes-c.buf.Len())
	c.buf.Write(p[:n])
	c.truncated = c.truncated || n < len(p)
	if c.line != nil {
		c.tell(p)
	}
	return len(p), nil
}

// tell reports the lines that end in p. It cuts long lines.
func (c *capped) tell(p []byte) {
	for part := range bytes.Lines(p) {
		c.last = append(c.last, part[:min(len(part), maxLineBytes)]...)
		if part[len(part)-1] == '\n' {
			c.line(shorten(strings.TrimSpace(strings.ToValidUTF8(string(c.last), "\uFFFD")), maxLineBytes))
			c.last = c.last[:0]
		}
		c.last = c.last[:min(len(c.last), maxLineBytes)]
	}
}

// String returns the kept data as valid UTF-8.
func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.buf.Bytes()
	if c.truncated {
		// Drop an incomplete character.
		for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]); i++ {
			b = b[:len(b)-1]
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
