package rawclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Stdio starts cmd and returns a client that calls it over its standard input and output. At the
// end of the test it closes the input, and the program must end with exit code 0.
func Stdio(t testing.TB, version string, cmd *exec.Cmd) *Client {
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	b := &stdioBinding{in: in, waiting: map[string]*exchange{}, ended: make(chan struct{})}
	// Ends when the program closes its output.
	go b.read(out)
	t.Cleanup(func() {
		_ = in.Close()
		<-b.ended
		require.NoError(t, cmd.Wait())
	})
	return (&Client{t: t, version: version, via: b}).begin()
}

type stdioBinding struct {
	in    io.Writer
	ended chan struct{}

	mu      sync.Mutex
	waiting map[string]*exchange // by ID
	loose   []message            // notifications since the last response
}

type exchange struct {
	done     chan struct{}
	messages []message
}

func (b *stdioBinding) exchange(ctx context.Context, m outgoing) ([]message, error) {
	x := &exchange{done: make(chan struct{})}
	b.mu.Lock()
	if m.id != "" {
		b.waiting[m.id] = x
	}
	_, err := b.in.Write(append(m.body, '\n'))
	b.mu.Unlock()
	if err != nil || m.id == "" {
		return nil, err
	}
	select {
	case <-x.done:
		return x.messages, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.ended:
		return nil, io.ErrUnexpectedEOF
	}
}

func (b *stdioBinding) read(out io.Reader) {
	defer close(b.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			m.Error = &RPCError{Message: fmt.Sprintf("%q on standard output is not a message: %v", line, err)}
		}
		b.take(m)
	}
}

func (b *stdioBinding) take(m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Method != "" {
		b.loose = append(b.loose, m)
		return
	}
	x, ok := b.waiting[string(m.ID)]
	if !ok {
		return
	}
	delete(b.waiting, string(m.ID))
	x.messages = append(b.loose, m)
	b.loose = nil
	close(x.done)
}
