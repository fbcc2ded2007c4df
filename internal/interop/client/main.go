// Command client tests package client against servers built with other SDKs, and calls every
// method. run.mjs starts it with a task in JSON. For each check it prints a line of tab-separated
// columns: "pass" or "FAIL", the check, and the reason of a failure. A line "none", the check, and
// a reason stands for a check that this server cannot support.
//
// The test servers are internal/interop/gosdk, internal/interop/mcpgo and internal/interop/ts/server.mjs. They offer the same
// features, as far as their SDKs can:
//
//	tools      add, rooms (returns an array), content (all kinds), fail,
//	           locate (a header mirrors its argument), caller_meta (returns _meta of the request),
//	           work (sends progress and logs), bake (runs as a task), wait (until it is cancelled),
//	           cancelled (returns after wait was cancelled),
//	           roots_changed (returns after the client's roots changed),
//	           change (adds to a list), update_resource, resume (closes its stream early),
//	           ask, register (asks twice), pay (a URL), pay_first (a URL required by an error),
//	           sample, list_roots, ask_several (a question, sampling and roots at once)
//	resources  test://menu, test://photo (bytes), test://guestbook (update_resource updates it),
//	           test://counter (counts its reads, may be cached), test://safe (asks),
//	           test://rooms/{number}
//	prompts    greet (with completion), welcome (asks), breakfast, lunch
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

// A server is either at a URL or a command to start.
type server struct {
	URL     string   `json:"url"`
	SSE     bool     `json:"sse"` // the URL is an HTTP+SSE endpoint
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

type task struct {
	Transport   string            `json:"transport"`
	Version     protocol.Version  `json:"version"`     // the version to pin or to expect from negotiation
	Negotiation string            `json:"negotiation"` // "auto" to negotiate the version
	Server      server            `json:"server"`
	Stateless   bool              `json:"stateless"` // the server is a legacy one without sessions
	Cannot      map[string]string `json:"cannot"`    // the checks that the server cannot support, with the reasons
}

func (t task) modern() bool { return t.Version.Modern() }

// since reports whether the version is v or a later one.
func (t task) since(v protocol.Version) bool { return t.Version >= v }

func (t task) http() bool { return t.Transport == "http" }

// checkTimeout ends a check, or the start or end of a server, that hangs. It is long because the
// machine may be busy.
const checkTimeout = 5 * time.Minute

// A scenario runs the checks in one session.
type scenario struct {
	task
	handlers *handlers
	c        *client.Client
	recorder *recorder // of HTTP requests
	failed   bool
}

// none reports a check that the server cannot support.
func none(name, why string) { fmt.Printf("none\t%s\t%s\n", name, why) }

// check runs one check and reports it.
func (s *scenario) check(name string, fn func(ctx context.Context) error) {
	if why, ok := s.Cannot[name]; ok {
		delete(s.Cannot, name)
		none(name, why)
		return
	}
	for len(s.handlers.answers) > 0 { // left by a check that failed
		<-s.handlers.answers
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	if err := fn(ctx); err != nil {
		s.failed = true
		fmt.Printf("FAIL\t%s\t%s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Printf("pass\t%s\n", name)
}

// same compares got and want as JSON.
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

func (s *scenario) target() any {
	switch {
	case s.Server.Command != "":
		return client.Command(s.Server.Command, s.Server.Args...)
	case s.Server.SSE && s.Negotiation != "auto":
		return client.HTTPSSE(s.Server.URL)
	}
	return s.Server.URL
}

// connect dials.
func (s *scenario) connect(ctx context.Context) error {
	s.recorder = newRecorder()
	opts := []client.DialOption{client.Handlers(s.handlers), client.Info("interop", "1.0.0"), client.HTTPClient(s.recorder.client()),
		client.ProbeTimeout(checkTimeout), client.ShutdownTimeout(checkTimeout)}
	if s.Negotiation != "auto" {
		opts = append(opts, client.Version(s.Version))
	}
	c, err := client.Dial(ctx, s.target(), opts...)
	if err != nil {
		return err
	}
	s.c = c
	return same([]any{c.Server().Name, c.Server().Version, c.Version()}, []any{"interop", "1.0.0", s.Version})
}

func (s *scenario) run() {
	s.check("connect", s.connect)
	if s.c == nil {
		return
	}
	steps := []func(){s.initialize, s.tools, s.results, s.tasks, s.failures, s.questions, s.notifications, s.resources, s.prompts, s.changes, s.lifetimes}
	if s.Stateless {
		steps = []func(){s.initialize, s.tools, s.results, s.failures, s.progress, s.resources, s.prompts}
		none("questions, log levels, changes, cancellation, sessions", "the server has no sessions")
	}
	for _, step := range steps {
		step()
	}
	s.check("close", func(context.Context) error { return s.c.Close() })
	if len(s.Cannot) > 0 {
		s.check("each reason names a check", func(context.Context) error {
			return fmt.Errorf("there is no check named %q", slices.Sorted(maps.Keys(s.Cannot)))
		})
	}
}

func main() {
	s := &scenario{handlers: newHandlers()}
	if len(os.Args) != 2 || json.Unmarshal([]byte(os.Args[1]), &s.task) != nil {
		fmt.Fprintln(os.Stderr, `usage: client '{"transport": "http", "version": "2025-11-25", "server": {"url": "http://..."}}'`)
		os.Exit(2)
	}
	s.run()
	if s.failed {
		os.Exit(1)
	}
}

// toolError returns the text of a tool error.
func toolError(err error) (string, error) {
	failed, ok := errors.AsType[*client.ToolError](err)
	if !ok {
		return "", fmt.Errorf("got the error %v, want a tool error", err)
	}
	return failed.Error(), nil
}
