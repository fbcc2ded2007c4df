package load

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Server is the address of a server, and how it is called.
type Server struct {
	Addr   string
	Modern bool   // use 2026-07-28 instead of 2025-11-25
	TLS    bool   // HTTPS, with HTTP/1.1 unless H2 is set
	H2     bool   // HTTPS with HTTP/2: all callers share a connection
	Fields string // header fields of each request, each with CRLF
}

// dial opens a session for each caller, if the version has sessions, and checks one response each.
func (s Server) dial(job *Job, callers int) (all []sender, err error) {
	var shared *http.Client
	if s.H2 {
		shared = newH2()
	}
	for range callers {
		var c sender
		if s.H2 {
			c, err = dialH2(s, shared, job)
		} else {
			c, err = dial(s, job)
		}
		if err != nil {
			hangUp(all)
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// A sender sends the same request repeatedly.
type sender interface {
	once(check bool) error
	close()
}

func hangUp(all []sender) {
	for _, c := range all {
		c.close()
	}
}

// HTTP runs the job against the server for the duration d. Each caller has its own session, and its
// own connection unless it uses HTTP/2. HTTP returns the number of responses.
func HTTP(s Server, job *Job, callers int, d time.Duration, before func()) (int, error) {
	conns, err := s.dial(job, callers)
	if err != nil {
		return 0, err
	}
	defer hangUp(conns)
	before()
	var (
		wg    sync.WaitGroup
		total atomic.Int64
		mu    sync.Mutex
		errs  []error
	)
	end := time.Now().Add(d)
	for _, c := range conns {
		// Ends at the end of d.
		wg.Go(func() {
			n := 0
			for time.Now().Before(end) {
				if err := c.once(false); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					break
				}
				n++
			}
			total.Add(int64(n))
		})
	}
	wg.Wait()
	return int(total.Load()), errors.Join(errs...)
}

// A caller is one connection that sends the same request repeatedly.
type caller struct {
	conn    net.Conn
	r       *bufio.Reader
	job     *Job
	server  Server
	session string
	request []byte
	idAt    int
	id      int64
	answer  []byte
}

// dial connects, opens a session if the version has sessions, and checks one response.
func dial(s Server, job *Job) (*caller, error) {
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	if s.TLS {
		conn = tls.Client(conn, anyCertificate())
	}
	c := &caller{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), job: job, server: s, id: firstID}
	if !s.Modern {
		for _, body := range []string{Initialize, Initialized} {
			if err := c.write(c.head("", len(body)), []byte(body)); err != nil {
				return nil, err
			}
			if _, err := c.read(true); err != nil {
				return nil, err
			}
		}
	}
	body, idAt := job.Body(s.Modern)
	fields := ""
	if s.Modern {
		fields = "Mcp-Protocol-Version: " + modern + "\r\nMcp-Method: " + job.Method + "\r\n"
		if job.Tool != "" {
			fields += "Mcp-Name: " + job.Tool + "\r\n"
		}
	}
	head := c.head(fields, len(body))
	c.request, c.idAt = append(head, body...), len(head)+idAt
	return c, c.once(true)
}

func (c *caller) close() {
	if c.session != "" {
		_ = c.write([]byte("DELETE /mcp HTTP/1.1\r\nHost: "+c.server.Addr+"\r\n"+c.server.Fields+"Mcp-Session-Id: "+c.session+"\r\n\r\n"), nil)
		_, _ = c.read(false)
	}
	_ = c.conn.Close()
}

func (c *caller) head(fields string, length int) []byte {
	if c.session != "" {
		fields += "Mcp-Session-Id: " + c.session + "\r\nMcp-Protocol-Version: " + legacy + "\r\n"
	}
	return []byte("POST /mcp HTTP/1.1\r\nHost: " + c.server.Addr + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		c.server.Fields + fields + "Content-Length: " + strconv.Itoa(length) + "\r\n\r\n")
}

func (c *caller) write(parts ...[]byte) error {
	_, err := c.conn.Write(bytes.Join(parts, nil))
	return err
}

// once sends the request with the next ID and reads the response.
func (c *caller) once(check bool) error {
	c.id++
	strconv.AppendInt(c.request[c.idAt:c.idAt], c.id, 10)
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	answer, err := c.read(check)
	if err == nil && check {
		err = c.job.Check(answer)
	}
	return err
}

// read reads one response. It returns the body only if keep is set.
func (c *caller) read(keep bool) ([]byte, error) {
	length, chunked, zipped := -1, false, false
	for first := true; ; first = false {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(line) <= 2 {
			break
		}
		if first {
			if len(line) < 12 || line[9] != '2' {
				rest, _ := c.r.Peek(c.r.Buffered())
				return nil, fmt.Errorf("%s: %s%s", c.job.Name, line, rest)
			}
			continue
		}
		switch line[0] | 0x20 {
		case 'c', 't', 'm':
			name, value, _ := strings.Cut(string(line), ":")
			value = strings.TrimSpace(value)
			switch strings.ToLower(name) {
			case "content-length":
				if length, err = strconv.Atoi(value); err != nil {
					return nil, err
				}
			case "transfer-encoding":
				chunked = value == "chunked"
			case "content-encoding":
				zipped = value == "gzip"
			case "mcp-session-id":
				if keep {
					c.session = value
				}
			}
		}
	}
	c.answer = c.answer[:0]
	err := c.body(length, chunked, keep)
	if err == nil && keep && zipped {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(c.answer)); err == nil {
			return io.ReadAll(z)
		}
	}
	return c.answer, err
}

// body reads a body of a length or in chunks.
func (c *caller) body(length int, chunked, keep bool) error {
	if !chunked {
		return c.take(max(length, 0), keep)
	}
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return err
		}
		if err := c.take(int(size), keep && size > 0); err != nil {
			return err
		}
		if _, err := c.r.Discard(2); err != nil || size == 0 {
			return err
		}
	}
}

func (c *caller) take(n int, keep bool) error {
	if !keep {
		_, err := c.r.Discard(n)
		return err
	}
	at := len(c.answer)
	c.answer = append(c.answer, make([]byte, n)...)
	_, err := io.ReadFull(c.r, c.answer[at:])
	return err
}
