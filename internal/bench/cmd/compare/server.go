package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/load"
)

// A process is a child process that ends with its standard input.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	addr string     // if it serves HTTP
	pipe *load.Pipe // if it serves stdio
}

// build builds a command of this module, or returns the program that was built earlier.
func (b *bench) build(name string, flags ...string) (string, error) {
	if _, who, ok := strings.Cut(name, "server-"); ok && b.binaries[who] != "" {
		return b.binaries[who], nil
	}
	path := filepath.Join(b.dir, name+strings.Join(flags, ""))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	args := append(append([]string{"build", "-trimpath"}, flags...), "-o", path, "github.com/mcpkit/mcpkit-go/internal/bench/cmd/"+name)
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s: %w (run in bench/)", name, err)
	}
	return path, nil
}

func start(path string, args ...string) (*process, error) { return startIn(nil, path, args...) }

// startIn adds env to the environment.
func startIn(env []string, path string, args ...string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, cmd.Start()
}

func (p *process) stop() {
	_ = p.in.Close()
	// Kill the process if it does not end by itself.
	timer := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if p.pipe == nil {
		_, _ = io.Copy(io.Discard, p.out)
	}
	_ = p.cmd.Wait()
}

// fresh starts a server that the caller stops.
func (b *bench) fresh(who string, args ...string) (*process, error) {
	path, err := b.build("server-" + who)
	if err != nil {
		return nil, err
	}
	if b.profiles != "" {
		args = append(args, "-cpuprofile", filepath.Join(b.profiles, who+strings.Join(args, "")+".prof"))
	}
	p, err := start(path, args...)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(args, "-http") {
		p.pipe, err = load.NewPipe(p.in, p.out)
		return p, err
	}
	line, err := p.out.ReadString('\n')
	p.addr = strings.TrimSpace(line)
	return p, err
}

// server returns a server that runs until the end.
func (b *bench) server(who string, args ...string) (*process, error) {
	key := who + strings.Join(args, " ")
	if p := b.servers[key]; p != nil {
		return p, nil
	}
	p, err := b.fresh(who, args...)
	if err == nil {
		b.servers[key] = p
	}
	return p, err
}

// stats returns how often the process has allocated, the bytes of its heap, and the number of
// connections that it has accepted.
func (p *process) stats() (allocs, heap, conns float64, err error) {
	if _, err := io.WriteString(p.in, "stats\n"); err != nil {
		return 0, 0, 0, err
	}
	line, err := p.out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &allocs, &heap, &conns)
	}
	return allocs, heap, conns, err
}

// cpu returns the CPU time that the process takes for one of the n requests that f sends after it has
// called before, in microseconds.
func (p *process) cpu(f func(before func()) (n int, err error)) (float64, error) {
	var from time.Duration
	var failed error
	n, err := f(func() { from, failed = load.CPU(p.cmd.Process.Pid) })
	if err != nil {
		return 0, err
	}
	to, err := load.CPU(p.cmd.Process.Pid)
	if err != nil || failed != nil || n == 0 {
		return 0, fmt.Errorf("%d responses; CPU: %w", n, err)
	}
	return micros(to-from) / float64(n), nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// A life is a process on stdio from its start to its first response.
type life struct {
	wall, cpu float64 // milliseconds
	memory    float64 // peak, MB
}

func live(path string, args ...string) (life, error) {
	begun := time.Now()
	p, err := start(path, args...)
	if err != nil {
		return life{}, err
	}
	if _, err = io.WriteString(p.in, load.Initialize+"\n"); err == nil {
		_, err = p.out.ReadString('\n')
	}
	l := life{wall: micros(time.Since(begun)) / 1e3}
	cpu, _ := load.CPU(p.cmd.Process.Pid)
	l.cpu = micros(cpu) / 1e3
	kb, _ := strconv.Atoi(strings.TrimSuffix(load.PeakRSS(p.cmd.Process.Pid), " kB"))
	l.memory = float64(kb) / 1e3
	p.stop()
	return l, err
}
