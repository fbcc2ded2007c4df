package floor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/load"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// Connect returns a minimal client. It sends prepared bytes with net/http or as a line, and
// searches the response for the wanted value. It neither encodes nor decodes JSON.
func Connect(_ context.Context, t *calls.Target) (calls.Client, error) {
	c := &caller{target: t}
	for _, j := range load.Jobs {
		body, idAt := j.Body(t.Modern)
		c.requests = append(c.requests, request{name: j.Name, body: body, idAt: idAt, want: []byte(j.Want)})
	}
	if t.URL != "" {
		if t.HTTP == nil {
			t.HTTP = http.DefaultClient
		}
		return c, nil
	}
	cmd := exec.Command(t.Server[0], t.Server[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.pipe, c.waiting, c.lastID = in, map[int64]chan []byte{}, 1_000_000_000
	// Ends when the server does.
	go c.read(bufio.NewReaderSize(out, 1<<20))
	return c, nil
}

type request struct {
	name string
	body []byte
	idAt int
	want []byte
}

type caller struct {
	target   *calls.Target
	requests []request
	pipe     io.Writer
	post     func(body []byte) ([]byte, error) // replaces net/http if not nil

	mu      sync.Mutex
	lastID  int64                 // guarded by mu
	waiting map[int64]chan []byte // guarded by mu
}

// idOf returns the ID of a message.
func idOf(msg []byte) []byte {
	for i := 0; ; {
		var name, value []byte
		if name, value, i = member(msg, i); name == nil || string(name) == "id" {
			return value
		}
	}
}

// read passes each line to the caller that waits for it.
func (c *caller) read(r *bufio.Reader) {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		id, _ := strconv.ParseInt(string(idOf(line)), 10, 64)
		c.mu.Lock()
		answer := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		answer <- line
	}
}

func (c *caller) call(ctx context.Context, name string) error {
	for i := range c.requests {
		if r := &c.requests[i]; r.name == name {
			reply, err := c.send(ctx, r)
			if err == nil && !bytes.Contains(reply, r.want) {
				err = errors.New("the response is wrong")
			}
			return err
		}
	}
	return errors.New("unknown request " + name)
}

func (c *caller) send(ctx context.Context, r *request) ([]byte, error) {
	if c.pipe != nil {
		return c.line(r)
	}
	if c.post != nil {
		return c.post(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target.URL, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["Accept"] = []string{"application/json, text/event-stream"}
	req.Header["Mcp-Protocol-Version"] = []string{c.target.Version()}
	resp, err := c.target.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.ContentLength < 0 {
		return io.ReadAll(resp.Body)
	}
	reply := make([]byte, resp.ContentLength)
	if _, err := io.ReadFull(resp.Body, reply); err != nil {
		return nil, err
	}
	if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, errors.New("the response is too long")
	}
	return reply, nil
}

func (c *caller) line(r *request) ([]byte, error) {
	answer := make(chan []byte, 1)
	c.mu.Lock()
	c.lastID++
	c.waiting[c.lastID] = answer
	strconv.AppendInt(r.body[r.idAt:r.idAt], c.lastID, 10)
	_, err := c.pipe.Write(append(r.body, '\n'))
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return <-answer, nil
}

func (c *caller) Add(ctx context.Context, _ work.AddInput) (int, error) {
	return 42, c.call(ctx, "add")
}

func (c *caller) Search(ctx context.Context, _ work.SearchInput) (int, error) {
	return 1009, c.call(ctx, "search")
}

func (c *caller) Echo(ctx context.Context, args map[string]any) (string, error) {
	return args["text"].(string), c.call(ctx, "echo 100")
}

func (c *caller) Blob(ctx context.Context, args map[string]any) (int, error) {
	return args["n"].(int), c.call(ctx, "blob 1M")
}
