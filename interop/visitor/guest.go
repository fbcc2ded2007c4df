package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// A guest answers what the server asks and hears what it tells.
type guest struct {
	answers chan *protocol.ElicitResult // what the user says next; nil is silence until the question is taken back
	asked   chan *protocol.ElicitParams
	pages   chan string // the URLs that the user was sent to
	prompts chan *protocol.CreateMessageParams
	heard   chan string // what else the server said
}

func newGuest() *guest {
	return &guest{
		answers: make(chan *protocol.ElicitResult, 10),
		asked:   make(chan *protocol.ElicitParams, 100),
		pages:   make(chan string, 100),
		prompts: make(chan *protocol.CreateMessageParams, 100),
		heard:   make(chan string, 100),
	}
}

// Elicit asks the user by a form.
func (g *guest) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	g.asked <- p
	select {
	case answer := <-g.answers:
		if answer != nil {
			return answer, nil
		}
		<-ctx.Done()
		g.heard <- "question taken back"
	case <-ctx.Done():
	}
	return nil, context.Cause(ctx)
}

// ElicitURL sends the user to a URL.
func (g *guest) ElicitURL(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	g.pages <- p.URL
	return &protocol.ElicitResult{Action: protocol.ElicitAccept}, nil
}

// Sample runs a model that repeats what it is told.
func (g *guest) Sample(_ context.Context, p *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	g.prompts <- p
	text, ok := p.Messages[0].Content[0].(*protocol.TextContent)
	if !ok {
		return nil, fmt.Errorf("the message is a %T", p.Messages[0].Content[0])
	}
	return &protocol.CreateMessageResult{Role: "assistant", Model: "m", StopReason: "endTurn",
		Content: protocol.SamplingContents{&protocol.TextContent{Text: "echo of " + text.Text}}}, nil
}

// Roots are the places that the server may work in.
func (g *guest) Roots(context.Context) ([]protocol.Root, error) {
	return []protocol.Root{{URI: "file:///home", Name: "home"}}, nil
}

// Log hears log messages.
func (g *guest) Log(_ context.Context, p *protocol.LoggingMessageParams) {
	g.heard <- fmt.Sprintf("log %s %s", p.Level, p.Data)
}

// ToolsChanged hears that tools came or went.
func (g *guest) ToolsChanged(context.Context) { g.heard <- "tools" }

// PromptsChanged hears that prompts came or went.
func (g *guest) PromptsChanged(context.Context) { g.heard <- "prompts" }

// ResourcesChanged hears that resources came or went.
func (g *guest) ResourcesChanged(context.Context) { g.heard <- "resources" }

// ResourceUpdated hears that a resource changed.
func (g *guest) ResourceUpdated(_ context.Context, uri string) { g.heard <- "updated " + uri }

// ElicitationComplete hears that the user was done at a URL.
func (g *guest) ElicitationComplete(_ context.Context, id string) { g.heard <- "complete " + id }

// hear waits until the server has said what is wanted, and nothing else.
func (g *guest) hear(ctx context.Context, want string) error { return g.hearSorted(ctx, want) }

// hearSorted waits until the server has said all that is wanted, and nothing else, in whatever
// order: that is not the same where a server has several streams to say it on.
func (g *guest) hearSorted(ctx context.Context, want ...string) error {
	got := []string{}
	for range want {
		select {
		case said := <-g.heard:
			got = append(got, said)
		case <-ctx.Done():
			return fmt.Errorf("heard %q, want %q: %w", got, want, ctx.Err())
		}
	}
	slices.Sort(got)
	return same(got, want)
}

// A road carries HTTP, and remembers the session and which streams it had.
type road struct {
	mu      sync.Mutex
	session string // guarded by mu
	last    string // the Last-Event-ID of the newest GET; guarded by mu
}

func newRoad() *road { return &road{} }

// client has connections of its own.
func (r *road) client() *http.Client {
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.DisableCompression = true
	return &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := own.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			r.session = id
		}
		if id := req.Header.Get("Last-Event-ID"); id != "" {
			r.last = id
		}
		return resp, nil
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (r *road) state() (session, last string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session, r.last
}

// forget ends the session behind the client's back.
func (r *road) forget(ctx context.Context, url string) error {
	session, _ := r.state()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Mcp-Session-Id", session)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the session was not ended: %s: %s", resp.Status, body)
	}
	return nil
}
