package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A child is a server in a process of its own. It ends with its standard input.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	addr string // if it serves HTTP
	pipe *pipe  // if it serves stdio
}

// sdk returns the SDK of a column.
func sdk(who string) string {
	if who == "before" {
		return "mcpkit"
	}
	return who
}

// build builds this program, or the program with one tool and one SDK, and returns its path.
func (b *bench) build(who string, one bool) (string, error) {
	name, pkg, in := "all", ".", "."
	if who == "before" {
		name, in = "before", b.before
	}
	if one {
		name, pkg = "one-"+who, "./one/"+strings.ReplaceAll(sdk(who), "-", "")
	}
	path := filepath.Join(b.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, pkg)
	cmd.Dir, cmd.Stderr = in, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s: %w (run in internal/bench)", name, err)
	}
	return path, nil
}

// server returns a server that runs until the end.
func (b *bench) server(who, over string, tools int) (*child, error) {
	key := fmt.Sprint(who, over, tools)
	if s := b.running[key]; s != nil {
		return s, nil
	}
	s, err := b.fresh(who, over, tools)
	if err == nil {
		b.running[key] = s
	}
	return s, err
}

// fresh starts a server that the caller stops.
func (b *bench) fresh(who, over string, tools int) (*child, error) {
	path, err := b.build(who, false)
	if err != nil {
		return nil, err
	}
	s, err := start(path, "-serve", sdk(who), "-over", over, "-tools", strconv.Itoa(tools))
	if err != nil {
		return nil, err
	}
	switch over {
	case "stdio":
		s.pipe, err = newPipe(s.in, s.out)
	case "http":
		s.addr, err = s.out.ReadString('\n')
		s.addr = strings.TrimSpace(s.addr)
	}
	return s, err
}

func start(path string, args ...string) (*child, error) {
	cmd := exec.Command(path, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, cmd.Start()
}

func (c *child) stop() {
	_ = c.in.Close()
	timer := time.AfterFunc(3*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	_ = c.cmd.Wait()
}

// ask sends a line to a server that does not serve stdio, and reads a figure.
func (c *child) ask(format string, args ...any) (v float64, err error) {
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		return 0, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

// cpu returns the CPU time that the server takes for one of the n requests that f sends after it has
// called before, in microseconds.
func (c *child) cpu(f func(before func()) (n int, err error)) (float64, error) {
	var from time.Duration
	var failed error
	n, err := f(func() { from, failed = cpuTime(c.cmd.Process.Pid) })
	if err != nil {
		return 0, err
	}
	to, err := cpuTime(c.cmd.Process.Pid)
	if err != nil || failed != nil || n == 0 {
		return 0, fmt.Errorf("%d responses; CPU: %w", n, err)
	}
	return micros(to-from) / float64(n), nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// A life is a process on stdio from its start to its first response.
type life struct{ cpu, memory float64 } // in milliseconds, and the peak of resident memory in MB

func live(path string, args ...string) (l life, err error) {
	s, err := start(path, args...)
	if err != nil {
		return life{}, err
	}
	defer s.stop()
	if _, err := io.WriteString(s.in, initialize+"\n"); err != nil {
		return life{}, err
	}
	if _, err := s.out.ReadString('\n'); err != nil {
		return life{}, err
	}
	cpu, err := cpuTime(s.cmd.Process.Pid)
	if err != nil {
		return life{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	_, peak, _ := bytes.Cut(status, []byte("VmHWM:"))
	kb := 0.0
	if err == nil {
		_, err = fmt.Sscan(string(peak), &kb)
	}
	return life{cpu: micros(cpu) / 1e3, memory: kb / 1e3}, err
}
