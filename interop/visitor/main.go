// Command visitor goes through the servers that others wrote with package client, and calls every
// method. run.mjs starts it with a JSON argument, see task, and reads what it prints: a line a
// check, tab separated, "pass" or "FAIL", the check, and why; or "none", the check, and why that
// server has nothing to check.
//
// Each server is an inn: interop/gosdk, interop/mcpgo and interop/ts/inn.mjs offer the same as far
// as their SDKs can.
//
//	tools      add, rooms (an array as output), content, locate (an argument that a header mirrors), whisper (returns some _meta), fail, work
//	           (progress and logs), bake (as a task),
//	           wait (until it is cancelled) and cancelled (ends once the server knows of it), change (adds to a list), touch (updates a resource),
//	           moved (ends once roots have changed), resume (ends its stream before it answers);
//	           ask, register (a second question after the first), pay (a URL), pay_first (a URL by an error), think (sampling), look (roots),
//	           many (all at once)
//	resources  inn://menu, inn://photo (bytes), inn://guestbook (is updated), inn://bell (counts, and may be cached), inn://safe (asks),
//	           inn://rooms/{number}
//	prompts    greet (arguments that are completed), welcome (asks), breakfast, lunch
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A server is reached at a URL or started as a child.
type server struct {
	URL     string   `json:"url"`
	SSE     bool     `json:"sse"` // the URL is that of HTTP+SSE
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

type task struct {
	Transport   string            `json:"transport"`
	Version     protocol.Version  `json:"version"`     // to pin, or to arrive at by negotiation
	Negotiation string            `json:"negotiation"` // "auto": the client finds out
	Inn         server            `json:"inn"`
	Stateless   bool              `json:"stateless"` // the server keeps nothing of a client from one request to the next, and is a legacy one
	Cannot      map[string]string `json:"cannot"`    // why there is nothing to check, by the names of checks
}

func (t task) modern() bool { return t.Version.Modern() }

// since reports whether the version is v or a later one.
func (t task) since(v protocol.Version) bool { return t.Version.AtLeast(v) }

func (t task) http() bool { return t.Transport == "http" }

// patience is how long a check may take, and a server to start or to end. It ends what hangs and
// does not measure speed: the machine may be busy.
const patience = 5 * time.Minute

// A story is a stay at one inn.
type story struct {
	task
	guest  *guest
	c      *client.Client
	road   *road // of HTTP
	failed bool
}

// none reports that there is nothing to check.
func none(name, why string) { fmt.Printf("none\t%s\t%s\n", name, why) }

// check runs one check and reports it.
func (s *story) check(name string, fn func(ctx context.Context) error) {
	if why, ok := s.Cannot[name]; ok {
		delete(s.Cannot, name)
		none(name, why)
		return
	}
	for len(s.guest.answers) > 0 { // which a failed check did not take
		<-s.guest.answers
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := fn(ctx); err != nil {
		s.failed = true
		fmt.Printf("FAIL\t%s\t%s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Printf("pass\t%s\n", name)
}

// same is an error when got is not what is wanted, compared as JSON.
func same(got, want any) error {
	g, err := json.Marshal(got)
	if err != nil {
		return err
	}
	w, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if string(g) != string(w) {
		return fmt.Errorf("got %s, want %s", g, w)
	}
	return nil
}

func (s *story) target() any {
	switch {
	case s.Inn.Command != "":
		return client.Command(s.Inn.Command, s.Inn.Args...)
	case s.Inn.SSE && s.Negotiation != "auto":
		return client.HTTPSSE(s.Inn.URL)
	}
	return s.Inn.URL
}

// arrive dials.
func (s *story) arrive(ctx context.Context) error {
	s.road = newRoad()
	opts := []client.DialOption{client.Handlers(s.guest), client.Info("visitor", "1.0.0"), client.HTTPClient(s.road.client()),
		client.ProbeTimeout(patience), client.ShutdownTimeout(patience)}
	if s.Negotiation != "auto" {
		opts = append(opts, client.Version(s.Version))
	}
	c, err := client.Dial(ctx, s.target(), opts...)
	if err != nil {
		return err
	}
	s.c = c
	return same([]any{c.Server().Name, c.Server().Version, c.Version()}, []any{"inn", "1.0.0", s.Version})
}

func (s *story) tell() {
	s.check("connect", s.arrive)
	if s.c == nil {
		return
	}
	chapters := []func(){s.greeting, s.tools, s.results, s.tasks, s.mistakes, s.questions, s.notifications, s.resources, s.prompts, s.changes, s.endings}
	if s.Stateless {
		chapters = []func(){s.greeting, s.tools, s.results, s.mistakes, s.progress, s.resources, s.prompts}
		none("questions, log levels, changes, cancellation, sessions", "the server keeps nothing of a client from one request to the next")
	}
	for _, chapter := range chapters {
		chapter()
	}
	s.check("close", func(context.Context) error { return s.c.Close() })
	if len(s.Cannot) > 0 {
		s.check("what cannot be checked are checks", func(context.Context) error {
			return fmt.Errorf("there are none named %q", slices.Sorted(maps.Keys(s.Cannot)))
		})
	}
}

func main() {
	s := &story{guest: newGuest()}
	if len(os.Args) != 2 || json.Unmarshal([]byte(os.Args[1]), &s.task) != nil {
		fmt.Fprintln(os.Stderr, `usage: visitor '{"transport": "http", "version": "2025-11-25", "inn": {"url": "http://..."}}'`)
		os.Exit(2)
	}
	s.tell()
	if s.failed {
		os.Exit(1)
	}
}

// toolError returns the text of a tool's own failure.
func toolError(err error) (string, error) {
	failed, ok := errors.AsType[*client.ToolError](err)
	if !ok {
		return "", fmt.Errorf("got the error %v, want one of the tool", err)
	}
	return failed.Error(), nil
}
