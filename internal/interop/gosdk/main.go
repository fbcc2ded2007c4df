// Command gosdk tests mcpkit's servers with the client of go-sdk
// (github.com/modelcontextprotocol/go-sdk). It prints one line for each check, in the format that
// internal/interop/run.mjs reads. It also runs go-sdk's servers. Its argument is a task in JSON, which
// run.mjs writes.
package main

//lint:file-ignore SA1019 sampling, roots and logging are deprecated and still tested.

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

// A server is either at a URL or a command to start.
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
	URL                string // the server to log in to
	Fleet              string // where the replicas of examples/fleet are, without a path

	Protect     string     // the address to run the protected server at
	Authorizer  authorizer // the authorization server of the protected server
	Serve, Addr string     // the transport and address to run the test server at
	Stateless   bool       // whether the test server has no sessions
	JSON        bool       // whether the test server responds to calls in JSON, not in a stream
}

func (t task) modern() bool              { return t.Version >= "2026-07-28" }
func (t task) since(version string) bool { return t.Version >= version }

// checkTimeout ends a check that hangs. It is long because the machine may be busy.
const checkTimeout = 5 * time.Minute

// A scenario runs checks in a session with one server.
type scenario struct {
	task
	session *mcp.ClientSession
	failed  bool

	answers  chan mcp.ElicitResult  // the next answers of the user
	asked    chan *mcp.ElicitParams // the questions so far
	received chan string            // the notifications so far
}

func newScenario(t task) *scenario {
	return &scenario{
		task:     t,
		answers:  make(chan mcp.ElicitResult, 10),
		asked:    make(chan *mcp.ElicitParams, 10),
		received: make(chan string, 100),
	}
}

// check runs one check and reports it.
func (s *scenario) check(name string, fn func(ctx context.Context) error) {
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

func (s *scenario) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}},
		ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			s.asked <- req.Params
			select {
			case answer := <-s.answers:
				return &answer, nil
			case <-ctx.Done():
				s.received <- "question cancelled"
				return nil, ctx.Err()
			}
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			text := req.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "echo of " + text}}, nil
		},
		ToolListChangedHandler:   func(context.Context, *mcp.ToolListChangedRequest) { s.received <- "tools" },
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { s.received <- "prompts" },
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			s.received <- fmt.Sprint(req.Params.Level, " ", req.Params.Data)
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			s.received <- fmt.Sprint(req.Params.ProgressToken, " ", req.Params.Progress)
		},
	}
}

// run connects to a server, runs the steps and closes the session.
func (s *scenario) run(srv server, name string, steps ...func()) {
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
	for _, step := range steps {
		step()
	}
	s.check(name+": close", func(context.Context) error { return s.session.Close() })
}

func main() {
	log.SetFlags(0)
	var t task
	if err := json.Unmarshal([]byte(os.Args[1]), &t); err != nil {
		log.Fatal(err)
	}
	if t.Protect != "" {
		if err := serveProtected(t.Protect, t.Authorizer); err != nil {
			log.Fatal(err)
		}
		return
	}
	if t.Serve != "" {
		if err := newTestServer().serve(t.Serve, t.Addr, t.Stateless, t.JSON); err != nil {
			log.Fatal(err)
		}
		return
	}
	if t.URL != "" || t.Fleet != "" {
		s := newScenario(t)
		if t.Fleet != "" {
			s.fleet(t.Fleet)
		} else {
			s.logIn()
		}
		if s.failed {
			os.Exit(1)
		}
		return
	}
	fixture, notes := newScenario(t), newScenario(t)
	fixture.run(t.Fixture, "mcpkit-conformance", fixture.tools, fixture.questions, fixture.notifications, fixture.changes,
		fixture.resources, fixture.prompts, fixture.cancellation)
	if t.Transport != "sse" { // examples/notes does not serve HTTP+SSE
		notes.run(t.Notes, "notes", notes.structured, notes.failures, notes.completion)
	}
	if fixture.failed || notes.failed {
		os.Exit(1)
	}
}
