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

// A process is a server that the client has started.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	tail   *tail
	ended  chan struct{} // closed when the process ended
	err    error         // of Wait; set before ended is closed
}

// pipesDelay is how long to wait for standard error after the process has ended: a grandchild may
// keep it open.
const pipesDelay = 2 * time.Second

// startProcess starts the program in its own process group.
func startProcess(t *CommandTarget, stderr io.Writer) (*process, error) {
	cmd := exec.Command(t.Args[0], t.Args[1:]...) //nolint:noctx // close ends it, in steps
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
	// Ends when the process has ended and its standard error is closed, at most pipesDelay later.
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// needed are the variables that most programs need and that contain no secrets.
var needed = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true, "TERM": true, "LANG": true, "TZ": true, "TMPDIR": true,
	// Windows
	"APPDATA": true, "HOMEDRIVE": true, "HOMEPATH": true, "LOCALAPPDATA": true, "PATHEXT": true, "PROCESSOR_ARCHITECTURE": true, "COMSPEC": true,
	"SYSTEMDRIVE": true, "SYSTEMROOT": true, "TEMP": true, "TMP": true, "USERNAME": true, "USERPROFILE": true, "PROGRAMFILES": true,
}

// environment returns the environment of the program.
func environment(t *CommandTarget) []string {
	env := []string{} // nil would mean the environment of this process
	for _, kv := range os.Environ() {
		if t.inherits(variable(kv)) {
			env = append(env, kv)
		}
	}
	return append(env, t.Env...)
}

// variable returns the name of the variable that "KEY=value" sets.
func variable(kv string) string {
	key, _, _ := strings.Cut(kv, "=")
	if runtime.GOOS == "windows" {
		return strings.ToUpper(key)
	}
	return key
}

// inherits reports whether the program gets a variable of this process.
func (t *CommandTarget) inherits(key string) bool {
	return t.InheritEnv || needed[key] || strings.HasPrefix(key, "LC_")
}

// stop ends the process within about twice patience: it closes the input, then sends SIGTERM, then
// kills the process. It always kills the rest of the process group.
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
			return nil // the client terminated it
		}
		if p.cmd.ProcessState.ExitCode() == 0 {
			return nil
		}
		return fmt.Errorf("client: %s", p.epitaph())
	}
	return p.err
}

// wait reports whether the process ends within patience.
func (p *process) wait(patience time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// epitaph returns how the process ended and the end of its standard error.
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

// A tail is a writer that remembers the last tailSize bytes.
type tail struct {
	to io.Writer // may be nil

	mu  sync.Mutex
	end []byte // guarded by mu
}

// tailSize is how many bytes a tail remembers.
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
		_, _ = t.to.Write(p) // errors of the user's writer do not concern the server
	}
	return len(p), nil
}

// last returns the remembered text.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(bytes.TrimSpace(t.end)), "\uFFFD")
}
