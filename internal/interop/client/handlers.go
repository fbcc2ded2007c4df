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

// handlers answers the server's requests and records its notifications.
type handlers struct {
	answers  chan *protocol.ElicitResult // the next answers of the user; nil waits until the question is cancelled
	asked    chan *protocol.ElicitParams
	pages    chan string // the URLs that the user was asked to open
	prompts  chan *protocol.CreateMessageParams
	received chan string // the notifications
}

func newHandlers() *handlers {
	return &handlers{
		answers:  make(chan *protocol.ElicitResult, 10),
		asked:    make(chan *protocol.ElicitParams, 100),
		pages:    make(chan string, 100),
		prompts:  make(chan *protocol.CreateMessageParams, 100),
		received: make(chan string, 100),
	}
}

// Elicit answers a form with the next answer.
func (h *handlers) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	h.asked <- p
	select {
	case answer := <-h.answers:
		if answer != nil {
			return answer, nil
		}
		<-ctx.Done()
		h.received <- "question cancelled"
	case <-ctx.Done():
	}
	return nil, context.Cause(ctx)
}

// ElicitURL records the URL and accepts.
func (h *handlers) ElicitURL(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	h.pages <- p.URL
	return &protocol.ElicitResult{Action: protocol.ElicitAccept}, nil
}

// Sample returns the text of the first message.
func (h *handlers) Sample(_ context.Context, p *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	h.prompts <- p
	text, ok := p.Messages[0].Content[0].(*protocol.TextContent)
	if !ok {
		return nil, fmt.Errorf("the message is a %T", p.Messages[0].Content[0])
	}
	return &protocol.CreateMessageResult{Role: "assistant", Model: "m", StopReason: "endTurn",
		Content: protocol.SamplingContents{&protocol.TextContent{Text: "echo of " + text.Text}}}, nil
}

// Roots returns one root.
func (h *handlers) Roots(context.Context) ([]protocol.Root, error) {
	return []protocol.Root{{URI: "file:///home", Name: "home"}}, nil
}

// Log records a log message.
func (h *handlers) Log(_ context.Context, p *protocol.LoggingMessageParams) {
	h.received <- fmt.Sprintf("log %s %s", p.Level, p.Data)
}

// ToolsChanged records a change of the tools.
func (h *handlers) ToolsChanged(context.Context) { h.received <- "tools" }

// PromptsChanged records a change of the prompts.
func (h *handlers) PromptsChanged(context.Context) { h.received <- "prompts" }

// ResourcesChanged records a change of the resources.
func (h *handlers) ResourcesChanged(context.Context) { h.received <- "resources" }

// ResourceUpdated records an update of a resource.
func (h *handlers) ResourceUpdated(_ context.Context, uri string) { h.received <- "updated " + uri }

// ElicitationComplete records that the user has finished at a URL.
func (h *handlers) ElicitationComplete(_ context.Context, id string) { h.received <- "complete " + id }

// expect waits for one notification and checks that it is want.
func (h *handlers) expect(ctx context.Context, want string) error { return h.expectAnyOrder(ctx, want) }

// expectAnyOrder waits for as many notifications as want has, and checks that they are those. Want
// is sorted. Servers with several streams may send notifications in any order.
func (h *handlers) expectAnyOrder(ctx context.Context, want ...string) error {
	got := []string{}
	for range want {
		select {
		case msg := <-h.received:
			got = append(got, msg)
		case <-ctx.Done():
			return fmt.Errorf("received %q, want %q: %w", got, want, ctx.Err())
		}
	}
	slices.Sort(got)
	return same(got, want)
}

// A recorder records the session and the resumed streams of an HTTP client.
type recorder struct {
	mu      sync.Mutex
	session string // guarded by mu
	last    string // the Last-Event-ID of the newest GET; guarded by mu
}

func newRecorder() *recorder { return &recorder{} }

// client returns an HTTP client with its own connections.
func (r *recorder) client() *http.Client {
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

func (r *recorder) state() (session, last string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session, r.last
}

// endSession ends the session without the client's knowledge.
func (r *recorder) endSession(ctx context.Context, url string) error {
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
