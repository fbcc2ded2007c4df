package floor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
)

// ConnectWire is like Connect, but does not use net/http. Each call writes prepared bytes to its
// own TCP connection and reads the response by its length. What remains is the cost of the kernel
// and of waking goroutines.
func ConnectWire(ctx context.Context, t *calls.Target) (calls.Client, error) {
	c, err := Connect(ctx, t)
	if err != nil || t.URL == "" {
		return c, err
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, err
	}
	w := &wires{host: u.Host, head: "POST " + u.Path + " HTTP/1.1\r\nHost: " + u.Host + "\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: " + t.Version() + "\r\nContent-Length: ", free: make(chan *wire, 1000)}
	c.(*caller).post = w.post
	return c, nil
}

// wires holds idle connections.
type wires struct {
	host, head string
	free       chan *wire
}

type wire struct {
	net.Conn
	r     *bufio.Reader
	out   []byte
	reply []byte
}

func (w *wires) post(body []byte) ([]byte, error) {
	var c *wire
	select {
	case c = <-w.free:
	default:
		conn, err := net.Dial("tcp", w.host)
		if err != nil {
			return nil, err
		}
		c = &wire{Conn: conn, r: bufio.NewReader(conn)}
	}
	c.out = append(c.out[:0], w.head...)
	c.out = append(strconv.AppendInt(c.out, int64(len(body)), 10), "\r\n\r\n"...)
	c.out = append(c.out, body...)
	if _, err := c.Write(c.out); err != nil {
		return nil, err
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	reply := append([]byte(nil), c.reply...)
	w.free <- c
	return reply, nil
}

// read reads a response with a length or in chunks.
func (c *wire) read() error {
	length := -1
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
	c.reply = c.reply[:0]
	if length >= 0 {
		return c.take(length)
	}
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 32)
		if err != nil {
			return fmt.Errorf("a chunk: %w", err)
		}
		if err := c.take(int(size)); err != nil {
			return err
		}
		if _, err := c.r.Discard(2); err != nil || size == 0 {
			return err
		}
	}
}

func (c *wire) take(n int) error {
	at := len(c.reply)
	c.reply = append(c.reply, make([]byte, n)...)
	_, err := io.ReadFull(c.r, c.reply[at:])
	return err
}
