package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A process is a running server.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	tail   *tail
	ended  chan struct{} // closed when the process ended
	err    error         // of Wait; set before ended is closed
}

// pipesDelay is how long the standard error of a process may outlive it, held open by a grandchild.
const pipesDelay = 2 * time.Second

// startProcess starts the program in a process group of its own.
func startProcess(t *CommandTarget, stderr io.Writer) (*process, error) {
	cmd := exec.Command(t.Args[0], t.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = t.Dir, environment(t), pipesDelay
	p := &process{cmd: cmd, tail: &tail{to: stderr}, ended: make(chan struct{})}
	cmd.Stderr = p.tail
	isolate(cmd)
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		_, _ = childIn.Close(), in.Close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	p.stdin, p.stdout = in, out
	err = cmd.Start()
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, fmt.Errorf("the server does not start: %w", err)
	}
	// Ends when the process has ended and nobody holds its standard error open, or has for too
	// long.
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// needed are the variables that programs need to run at all, and that say nothing secret.
var needed = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true, "TERM": true, "LANG": true, "TZ": true, "TMPDIR": true,
	// Windows
	"APPDATA": true, "HOMEDRIVE": true, "HOMEPATH": true, "LOCALAPPDATA": true, "PATHEXT": true, "PROCESSOR_ARCHITECTURE": true, "COMSPEC": true,
	"SYSTEMDRIVE": true, "SYSTEMROOT": true, "TEMP": true, "TMP": true, "USERNAME": true, "USERPROFILE": true, "PROGRAMFILES": true,
}

// environment is what the program gets.
func environment(t *CommandTarget) []string {
	env := []string{} // not nil, which would mean everything
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		if runtime.GOOS == "windows" {
			key = strings.ToUpper(key)
		}
		if t.InheritEnv || needed[key] || strings.HasPrefix(key, "LC_") {
			env = append(env, kv)
		}
	}
	return append(env, t.Env...)
}

// stop ends the process within about twice patience: it closes its input, then asks it to
// terminate, then kills it. Whatever is left of its group is killed in any case.
func (p *process) stop(patience time.Duration) error {
	_ = p.stdin.Close()
	asked := p.wait(patience)
	if !asked && patience > 0 {
		terminate(p.cmd)
		p.wait(patience)
	}
	kill(p.cmd)
	<-p.ended
	if _, isExit := errors.AsType[*exec.ExitError](p.err); isExit || errors.Is(p.err, exec.ErrWaitDelay) {
		if !asked {
			return nil // it was told to, one way or another
		}
		if p.cmd.ProcessState.ExitCode() == 0 {
			return nil
		}
		return fmt.Errorf("client: %s", p.epitaph())
	}
	return p.err
}

// wait reports whether the process ended in time.
func (p *process) wait(patience time.Duration) bool {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		return false
	}
}

// epitaph says how a process that ended did, and its last words.
func (p *process) epitaph() string {
	text := "the server ended"
	if state := p.cmd.ProcessState; state != nil {
		text = fmt.Sprintf("the server ended (%s)", state)
	}
	if words := p.tail.last(); words != "" {
		text += fmt.Sprintf("; its last words: %q", words)
	}
	return text
}

// tail passes on what it is given and remembers the end of it.
type tail struct {
	to io.Writer // may be nil

	mu  sync.Mutex
	end []byte // guarded by mu
}

// tailSize is how much a tail remembers, in bytes.
const tailSize = 500

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.end = append(t.end, p[max(0, len(p)-tailSize):]...)
	t.end = t.end[max(0, len(t.end)-tailSize):]
	if cap(t.end) > 8*tailSize {
		t.end = bytes.Clone(t.end)
	}
	t.mu.Unlock()
	if t.to != nil {
		_, _ = t.to.Write(p) // its trouble is not the server's
	}
	return len(p), nil
}

// last returns the last lines.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(bytes.TrimSpace(t.end)), "\uFFFD")
}
