package load

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// anyCertificate accepts the certificate of a server on this machine.
func anyCertificate() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// An h2 is a caller over HTTP/2, with the client of net/http.
type h2 struct {
	client *http.Client
	url    string
	header http.Header
	job    *Job
	body   []byte
	idAt   int
	id     int64
}

// newH2 returns a client that keeps one connection for all callers.
func newH2() *http.Client {
	var only http.Protocols
	only.SetHTTP2(true)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: anyCertificate(), Protocols: &only, IdleConnTimeout: time.Second}}
}

// dialH2 opens a session if the version has sessions, and checks one response.
func dialH2(s Server, client *http.Client, job *Job) (*h2, error) {
	c := &h2{client: client, url: "https://" + s.Addr + "/mcp", job: job, id: firstID,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}}
	if s.Modern {
		c.header.Set("Mcp-Protocol-Version", modern)
		c.header.Set("Mcp-Method", job.Method)
		if job.Tool != "" {
			c.header.Set("Mcp-Name", job.Tool)
		}
	} else {
		for _, body := range []string{Initialize, Initialized} {
			if err := c.send(http.MethodPost, []byte(body), io.Discard); err != nil {
				return nil, err
			}
		}
		c.header.Set("Mcp-Protocol-Version", legacy)
	}
	c.body, c.idAt = job.Body(s.Modern)
	return c, c.once(true)
}

func (c *h2) send(method string, body []byte, to io.Writer) error {
	req, err := http.NewRequest(method, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = c.header
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && c.header.Get("Mcp-Protocol-Version") == "" {
		c.header.Set("Mcp-Session-Id", id)
	}
	_, err = io.Copy(to, resp.Body)
	if resp.StatusCode/100 != 2 || resp.ProtoMajor != 2 {
		err = fmt.Errorf("%s: %s %s", c.job.Name, resp.Proto, resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

func (c *h2) once(check bool) error {
	c.id++
	strconv.AppendInt(c.body[c.idAt:c.idAt], c.id, 10)
	if !check {
		return c.send(http.MethodPost, c.body, io.Discard)
	}
	var answer bytes.Buffer
	if err := c.send(http.MethodPost, c.body, &answer); err != nil {
		return err
	}
	return c.job.Check(answer.Bytes())
}

func (c *h2) close() {
	if c.header.Get("Mcp-Session-Id") != "" {
		_ = c.send(http.MethodDelete, nil, io.Discard)
	}
}
