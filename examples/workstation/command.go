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
	// killDelay is how long the output of a command that was killed is waited for.
	killDelay = 2 * time.Second
)

// A command is a program that is run with a list of arguments: no shell reads them.
type command struct {
	dir  string
	env  []string
	name string
	args []string
	line func(text string) // hears each line of output as it comes; nil when nobody listens
}

// Output is what a command said.
type Output struct {
	// What the command wrote to its standard output and error.
	Output string `json:"output"`
	// 0 when the command succeeded.
	ExitCode int `json:"exitCode"`
	// The output was longer and is cut off.
	Truncated bool `json:"truncated"`
}

// docs:begin run

// run runs the command and ends it, with all that it started, when ctx ends. An exit code other
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

// withoutGit leaves out the variables by which git is told of another repository than that of its
// directory: they are set for what runs in a git hook.
func withoutGit(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "GIT_") })
}

// text runs a command whose failure is the caller's to mend, and returns what it wrote.
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

// capped keeps the beginning of what is written to it.
type capped struct {
	line func(text string) // may be nil

	mu        sync.Mutex
	buf       bytes.Buffer
	truncated bool
	last      []byte // the line that has no end yet, as far as it is kept
}

// Write implements io.Writer. It never fails: a command that cannot write would behave differently.
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

// tell passes on the lines that end in p. Long ones are cut.
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

// String returns what was kept, as valid UTF-8.
func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.buf.Bytes()
	if c.truncated {
		// Not half of a character.
		for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]); i++ {
			b = b[:len(b)-1]
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
