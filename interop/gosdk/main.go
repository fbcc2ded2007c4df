// Command gosdk goes through the servers with the client of github.com/modelcontextprotocol/go-sdk,
// and reports a line a check as interop/run.mjs wants it. Its argument is JSON, see there.
package main

//lint:file-ignore SA1019 sampling, roots and logging are deprecated, and served all the same.

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server is reached at a URL or started as a child.
type server struct {
	URL     string
	SSE     bool // the URL is that of HTTP+SSE
	Command string
	Args    []string
}

func (s server) transport() mcp.Transport {
	if s.SSE {
		return &mcp.SSEClientTransport{Endpoint: s.URL}
	}
	if s.URL != "" {
		return &mcp.StreamableClientTransport{Endpoint: s.URL}
	}
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Stderr = os.Stderr
	return &mcp.CommandTransport{Command: cmd}
}

type task struct {
	Transport, Version string
	Fixture, Notes     server
	URL                string // of the server to log in to
	Serve              string // where to be a server that guards itself
	Guard              guard  // of that server
	Inn, Addr          string // by which transport to be an inn, and where
	Stateless, JSON    bool   // that inn has no sessions; answers calls in JSON
}

func (t task) modern() bool              { return t.Version >= "2026-07-28" }
func (t task) since(version string) bool { return t.Version >= version }

// patience is how long a check may take. It ends a check that hangs and does not measure speed: the
// machine may be busy.
const patience = 5 * time.Minute

// A story is a session with one server.
type story struct {
	task
	session *mcp.ClientSession
	failed  bool

	answers chan mcp.ElicitResult // what the user says next
	asked   chan *mcp.ElicitParams
	heard   chan string // what else the server said
}

func newStory(t task) *story {
	return &story{
		task:    t,
		answers: make(chan mcp.ElicitResult, 10),
		asked:   make(chan *mcp.ElicitParams, 10),
		heard:   make(chan string, 100),
	}
}

// check runs one check and reports it.
func (s *story) check(name string, fn func(ctx context.Context) error) {
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

func (s *story) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}},
		ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			s.asked <- req.Params
			select {
			case answer := <-s.answers:
				return &answer, nil
			case <-ctx.Done():
				s.heard <- "question taken back"
				return nil, ctx.Err()
			}
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			text := req.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "echo of " + text}}, nil
		},
		ToolListChangedHandler:   func(context.Context, *mcp.ToolListChangedRequest) { s.heard <- "tools" },
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { s.heard <- "prompts" },
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			s.heard <- fmt.Sprint(req.Params.Level, " ", req.Params.Data)
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			s.heard <- fmt.Sprint(req.Params.ProgressToken, " ", req.Params.Progress)
		},
	}
}

// tell connects to a server, goes through the chapters and closes.
func (s *story) tell(srv server, name string, chapters ...func()) {
	s.check(name+": connect at "+s.Version, func(ctx context.Context) error {
		client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, s.options())
		client.AddRoots(&mcp.Root{URI: "file:///home", Name: "home"})
		session, err := client.Connect(context.WithoutCancel(ctx), srv.transport(), &mcp.ClientSessionOptions{ProtocolVersion: s.Version})
		if err != nil {
			return err
		}
		s.session = session
		got := session.InitializeResult()
		return same([]string{got.ServerInfo.Name, got.ProtocolVersion}, []string{name, s.Version})
	})
	if s.session == nil {
		return
	}
	for _, chapter := range chapters {
		chapter()
	}
	s.check(name+": close", func(context.Context) error { return s.session.Close() })
}

func main() {
	log.SetFlags(0)
	var t task
	if err := json.Unmarshal([]byte(os.Args[1]), &t); err != nil {
		log.Fatal(err)
	}
	if t.Serve != "" {
		if err := serve(t.Serve, t.Guard); err != nil {
			log.Fatal(err)
		}
		return
	}
	if t.Inn != "" {
		if err := newInn().open(t.Inn, t.Addr, t.Stateless, t.JSON); err != nil {
			log.Fatal(err)
		}
		return
	}
	if t.URL != "" {
		s := newStory(t)
		s.logIn()
		if s.failed {
			os.Exit(1)
		}
		return
	}
	fixture, notes := newStory(t), newStory(t)
	fixture.tell(t.Fixture, "mcpkit-conformance", fixture.tools, fixture.questions, fixture.notifications, fixture.changes,
		fixture.resources, fixture.prompts, fixture.cancellation)
	if t.Transport != "sse" { // which the notes are not served by
		notes.tell(t.Notes, "notes", notes.structured, notes.mistakes, notes.completion)
	}
	if fixture.failed || notes.failed {
		os.Exit(1)
	}
}
