package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/bench/internal/load"
)

// A server is a program to measure, with its two processes once they are started.
type server struct {
	name, path string
	http       *process
	addr       string
	stdio      *process
	pipe       *load.Pipe
}

// A process is a child process that ends with its standard input.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func build(dir, name string) (*server, error) {
	if path := binaries[name]; path != "" {
		return &server{name: name, path: path}, nil
	}
	path := filepath.Join(dir, "server-"+name)
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/mcpkit/mcpkit-go/bench/cmd/server-"+name)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("building %s: %w (run in bench/)", name, err)
	}
	return &server{name: name, path: path}, nil
}

func start(path string, args ...string) (*process, error) {
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
	return &process{cmd, in, out}, cmd.Start()
}

func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.in.Close()
	// Kill the process if it does not end by itself.
	timer := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
}

func (s *server) stop() {
	s.http.stop()
	s.stdio.stop()
}

// profile returns the flag that makes a process write a CPU profile.
func (s *server) profile(kind string) []string {
	if profiles == "" {
		return nil
	}
	return []string{"-cpuprofile", filepath.Join(profiles, s.name+"-"+kind+".prof")}
}

// begin starts the process for c.
func (s *server) begin(c *cell) (*process, error) {
	if c.http {
		if s.http != nil {
			return s.http, nil
		}
		p, err := start(s.path, append(s.profile("http"), "-http")...)
		if err != nil {
			return nil, err
		}
		s.http = p
		line, err := bufio.NewReader(p.out).ReadString('\n')
		s.addr = strings.TrimSpace(line)
		return p, err
	}
	if s.stdio != nil {
		return s.stdio, nil
	}
	p, err := start(s.path, s.profile("stdio")...)
	if err != nil {
		return nil, err
	}
	s.stdio = p
	s.pipe, err = load.NewPipe(p.in, p.out)
	return p, err
}

// measure returns the CPU time of one request of c.
func (s *server) measure(c *cell, slice time.Duration) (time.Duration, error) {
	p, err := s.begin(c)
	if err != nil {
		return 0, err
	}
	pid := p.cmd.Process.Pid
	var from time.Duration
	before := func() { from, err = load.CPU(pid) }
	var n int
	var failed error
	if c.http {
		n, failed = load.HTTP(s.addr, &c.job, c.modern, c.callers, slice, before)
	} else {
		n, failed = s.pipe.Run(&c.job, c.callers, slice, before)
	}
	if failed != nil {
		return 0, failed
	}
	to, failed := load.CPU(pid)
	if err != nil || failed != nil || n == 0 {
		return 0, fmt.Errorf("%d responses; CPU: %v, %v", n, err, failed)
	}
	return (to - from) / time.Duration(n), nil
}

func (s *server) memory() string {
	if s.http == nil {
		return "-"
	}
	return load.PeakRSS(s.http.cmd.Process.Pid)
}
