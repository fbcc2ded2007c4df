package load

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// Streams are sessions, each with a GET that listens, or subscriptions of 2026-07-28.
type Streams struct {
	callers []*caller
	arrived chan error
}

// OpenStreams opens n sessions that subscribe to work.URI and listen, or n subscriptions to it.
func OpenStreams(server Server, n int) (*Streams, error) {
	s := &Streams{arrived: make(chan error, n)}
	for range n {
		if err := s.open(server); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Streams) open(server Server) error {
	c, err := dial(server, &Jobs[0])
	if err != nil {
		return err
	}
	s.callers = append(s.callers, c)
	if server.Modern {
		err = c.subscribe()
	} else {
		err = c.listen()
	}
	if err != nil {
		return err
	}
	// Ends with the connection.
	go func() {
		for {
			line, err := c.r.ReadSlice('\n')
			if err != nil {
				return
			}
			if bytes.Contains(line, []byte("resources/updated")) {
				s.arrived <- nil
			}
		}
	}()
	return nil
}

// listen subscribes and opens the session's stream.
func (c *caller) listen() error {
	body := []byte(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + work.URI + `"}}`)
	if err := c.write(c.head("", len(body)), body); err != nil {
		return err
	}
	if _, err := c.read(true); err != nil {
		return err
	}
	get := "GET /mcp HTTP/1.1\r\nHost: " + c.server.Addr + "\r\nAccept: text/event-stream\r\nMcp-Protocol-Version: " + legacy + "\r\nMcp-Session-Id: " + c.session + "\r\n\r\n"
	if err := c.write([]byte(get)); err != nil {
		return err
	}
	return c.readUntil("")
}

// subscribe opens a subscription and waits until the server has acknowledged it.
func (c *caller) subscribe() error {
	body := []byte(`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + work.URI + `"]},` + meta + `}}`)
	fields := "Mcp-Protocol-Version: " + modern + "\r\nMcp-Method: subscriptions/listen\r\n"
	if err := c.write(c.head(fields, len(body)), body); err != nil {
		return err
	}
	return c.readUntil("subscriptions/acknowledged")
}

// readUntil reads a response until a line is the empty one after its head, or contains a text.
func (c *caller) readUntil(text string) error {
	for first := true; ; first = false {
		line, err := c.r.ReadSlice('\n')
		if err != nil || first && line[9] != '2' {
			return fmt.Errorf("a stream: %s, %w", line, errors.Join(err))
		}
		if text == "" && len(line) <= 2 || text != "" && bytes.Contains(line, []byte(text)) {
			return nil
		}
	}
}

// Wait waits until a notification has arrived on each stream.
func (s *Streams) Wait() error {
	late := time.After(30 * time.Second)
	for range s.callers {
		select {
		case <-s.arrived:
		case <-late:
			return errors.New("a notification is missing")
		}
	}
	return nil
}

// Close closes the connections and keeps the sessions.
func (s *Streams) Close() {
	for _, c := range s.callers {
		_ = c.conn.Close()
	}
}

// Rate sends requests at a fixed rate on 16 connections, whether or not earlier ones have been
// answered on other connections. It returns the times from when each was due to its response, sorted.
func Rate(s Server, job *Job, perSecond int, d time.Duration, before func()) ([]time.Duration, error) {
	const conns = 16
	callers, err := s.dial(job, conns)
	if err != nil {
		return nil, err
	}
	defer hangUp(callers)
	before()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		all  []time.Duration
		errs []error
	)
	begin, every := time.Now(), time.Second/time.Duration(perSecond)
	for i, c := range callers {
		// Ends at the end of d.
		wg.Go(func() {
			var times []time.Duration
			var err error
			for due := time.Duration(i) * every; due < d && err == nil; due += conns * every {
				time.Sleep(time.Until(begin.Add(due)))
				err = c.once(false)
				times = append(times, time.Since(begin)-due)
			}
			mu.Lock()
			all, errs = append(all, times...), append(errs, err)
			mu.Unlock()
		})
	}
	wg.Wait()
	slices.Sort(all)
	return all, errors.Join(errs...)
}
