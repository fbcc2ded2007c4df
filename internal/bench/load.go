package main

import (
	"bufio"
	"bytes"
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

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
)

// A job is a request that is sent repeatedly, each time with a new ID.
type job struct {
	name string
	tool string // empty for tools/list
	args string // JSON
	want string // a text that occurs in each response
}

var jobs = []job{
	{name: "add", tool: "add", args: `{"a":19,"b":23}`, want: `"sum":42`},
	{name: "search", tool: "search", want: `"id":1009`,
		args: `{"query":"fast servers","limit":10,"tags":["go","mcp"],"filter":{"field":"year","op":"gt","value":"2024"}}`},
	{name: "echo 100", tool: "echo", want: `123456789"`,
		args: `{"text":"` + strings.Repeat("0123456789", 10) + `"}`},
	{name: "blob 1M", tool: "blob", args: `{"n":1048576}`, want: `All work`},
	{name: "tools/list", want: `"minLength":1`},
}

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
	meta   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy +
		`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// firstID has as many digits as each later ID, so all requests have the same length.
const firstID = 1_000_000_000

func (j *job) method() string {
	if j.tool == "" {
		return "tools/list"
	}
	return "tools/call"
}

// body returns the request and the position of its ID.
func (j *job) body(isModern bool) (body []byte, idAt int) {
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	idAt = len(body)
	body = strconv.AppendInt(body, firstID, 10)
	body = append(body, `,"method":"`+j.method()+`","params":{`...)
	if j.tool != "" {
		body = append(body, `"name":"`+j.tool+`","arguments":`+j.args+`,`...)
	}
	if isModern {
		body = append(body, meta...)
	}
	return append(bytes.TrimSuffix(body, []byte(",")), "}}"...), idAt
}

// check checks a response. The structured content may also be quoted, as text.
func (j *job) check(response []byte) error {
	quoted := bytes.ReplaceAll([]byte(j.want), []byte(`"`), []byte(`\"`))
	found := bytes.Contains(response, []byte(j.want)) || bytes.Contains(response, quoted)
	if !found || bytes.Contains(response, []byte(`"isError":true`)) {
		return fmt.Errorf("%s: unexpected response %.300s", j.name, response)
	}
	return nil
}

// A pipe is a client of a server on stdio.
type pipe struct {
	w     io.Writer
	lines chan []byte // the beginning of each response
	id    int64
}

// newPipe opens a session. Reading is a goroutine of its own, because a server may stop reading until
// its responses are read. It ends with r.
func newPipe(w io.Writer, r *bufio.Reader) (*pipe, error) {
	p := &pipe{w: w, lines: make(chan []byte, 256), id: firstID}
	go func() {
		defer close(p.lines)
		for {
			part, err := r.ReadSlice('\n')
			begin := bytes.Clone(part[:min(len(part), 4096)])
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if err != nil {
				return
			}
			p.lines <- begin
		}
	}()
	if _, err := io.WriteString(w, initialize+"\n"); err != nil {
		return nil, err
	}
	if _, err := p.receive(); err != nil {
		return nil, err
	}
	_, err := io.WriteString(w, initialized+"\n")
	return p, err
}

func (p *pipe) receive() ([]byte, error) {
	line, ok := <-p.lines
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return line, nil
}

// run sends requests for the duration d, with a constant number of them pending, and returns the
// number of responses.
func (p *pipe) run(j *job, callers int, d time.Duration, before func()) (n int, err error) {
	request, idAt := j.body(false)
	request = append(request, '\n')
	send := func() error {
		p.id++
		strconv.AppendInt(request[idAt:idAt], p.id, 10)
		_, err := p.w.Write(request)
		return err
	}
	if err := send(); err != nil {
		return 0, err
	}
	first, err := p.receive()
	if err == nil {
		err = j.check(first)
	}
	if err != nil {
		return 0, err
	}
	before()
	for range callers {
		if err := send(); err != nil {
			return 0, err
		}
	}
	end := time.Now().Add(d)
	for pending := callers; pending > 0; n++ {
		if _, err := p.receive(); err != nil {
			return 0, err
		}
		if time.Now().After(end) {
			pending--
		} else if err := send(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// overHTTP sends requests for the duration d, each caller over a connection and in a session of its
// own, and returns the number of responses.
func overHTTP(addr string, isModern bool, j *job, callers int, d time.Duration, before func()) (int, error) {
	var conns []*conn
	defer func() {
		for _, c := range conns {
			c.close()
		}
	}()
	for range callers {
		c, err := dial(addr, isModern, j)
		if err != nil {
			return 0, err
		}
		conns = append(conns, c)
	}
	before()
	var wg sync.WaitGroup
	var total atomic.Int64
	errs := make([]error, callers)
	end := time.Now().Add(d)
	for i, c := range conns {
		wg.Go(func() {
			for time.Now().Before(end) && errs[i] == nil {
				errs[i] = c.call(io.Discard)
				total.Add(1)
			}
		})
	}
	wg.Wait()
	return int(total.Load()), errors.Join(errs...)
}

// A conn is one connection that sends the same request repeatedly. It writes prepared bytes.
type conn struct {
	net.Conn
	r       *bufio.Reader
	addr    string
	session string // the header, with CRLF
	request []byte
	idAt    int
	id      int64
}

// dial connects, opens a session if the version has sessions, and checks one response.
func dial(addr string, isModern bool, j *job) (*conn, error) {
	tcp, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: tcp, r: bufio.NewReaderSize(tcp, 64<<10), addr: addr, id: firstID}
	headers := "Mcp-Protocol-Version: " + modern + "\r\nMcp-Method: " + j.method() + "\r\n"
	if j.tool != "" {
		headers += "Mcp-Name: " + j.tool + "\r\n"
	}
	if !isModern {
		header, err := c.send(c.message("POST", "", initialize), io.Discard)
		if err != nil {
			return nil, err
		}
		if id := header.Get("Mcp-Session-Id"); id != "" {
			c.session = "Mcp-Session-Id: " + id + "\r\n"
		}
		headers = "Mcp-Protocol-Version: " + legacy + "\r\n"
		if _, err := c.send(c.message("POST", headers, initialized), io.Discard); err != nil {
			return nil, err
		}
	}
	body, idAt := j.body(isModern)
	c.request = c.message("POST", headers, string(body))
	c.idAt = len(c.request) - len(body) + idAt
	var response bytes.Buffer
	if err := c.call(&response); err != nil {
		return nil, err
	}
	return c, j.check(response.Bytes())
}

func (c *conn) message(method, headers, body string) []byte {
	return []byte(method + " /mcp HTTP/1.1\r\nHost: " + c.addr + "\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\n" + c.session + headers +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// call sends the request with the next ID and writes the response to w.
func (c *conn) call(w io.Writer) error {
	c.id++
	strconv.AppendInt(c.request[c.idAt:c.idAt], c.id, 10)
	_, err := c.send(c.request, w)
	return err
}

func (c *conn) send(message []byte, w io.Writer) (http.Header, error) {
	if _, err := c.Write(message); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("the server responded with %s", resp.Status)
	}
	return resp.Header, nil
}

func (c *conn) close() {
	if c.session != "" {
		_, _ = c.send(c.message("DELETE", "", ""), io.Discard)
	}
	_ = c.Close()
}

// streams are sessions that subscribed to work.URI, each with a GET that listens.
type streams struct {
	conns   []*conn
	arrived chan struct{}
}

func openStreams(addr string, n int) (*streams, error) {
	s := &streams{arrived: make(chan struct{}, n)}
	for range n {
		c, err := dial(addr, false, &jobs[0])
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, c)
		version := "Mcp-Protocol-Version: " + legacy + "\r\n"
		subscribe := `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + work.URI + `"}}`
		if _, err := c.send(c.message("POST", version, subscribe), io.Discard); err != nil {
			return nil, err
		}
		if _, err := c.Write(c.message("GET", version, "")); err != nil {
			return nil, err
		}
		resp, err := http.ReadResponse(c.r, nil)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("a stream: the server responded with %s", resp.Status)
		}
		// Ends with the connection.
		go func() {
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if bytes.Contains(lines.Bytes(), []byte("resources/updated")) {
					s.arrived <- struct{}{}
				}
			}
		}()
	}
	return s, nil
}

// wait waits until a notification has arrived on each stream.
func (s *streams) wait() error {
	late := time.After(30 * time.Second)
	for range s.conns {
		select {
		case <-s.arrived:
		case <-late:
			return errors.New("a notification is missing")
		}
	}
	return nil
}

func (s *streams) close() {
	for _, c := range s.conns {
		_ = c.Close()
	}
}
