package mcptest

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Replay sends the client's messages of a transcript to the server, in memory and as the principal
// of this view, and compares the server's messages with the transcript. With -update it writes the
// server's messages (see [Golden]), so a new file needs only a section "client".
//
// The file is a txtar archive with alternating sections "client" and "server" and one message on each
// line. The comment above them is kept. The client sends its next message when the server has
// responded, or answers a question of the server. A subscription stays open until the end.
//
// Values that differ from run to run have placeholders: <state 1> for request states, and likewise
// for IDs of elicitations, UUIDs and the references of internal errors; <time> for RFC 3339 times;
// and <value 1> for what matches one of scrub, or its first group. In messages of the client, a
// placeholder stands for the value of this run. Values that the client sent first stay, unless they
// match scrub.
func (s *Server) Replay(file string, scrub ...*regexp.Regexp) {
	s.t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		s.t.Fatalf("mcptest: %v", err)
	}
	p := &player{handler: s.handler(), scrub: scrub, names: map[string]string{}, counts: map[string]int{}, grown: make(chan struct{}, 1)}
	p.session = transport.NewSession("", p)
	for _, f := range archive.Files {
		if f.Name != "client" && f.Name != "server" {
			s.t.Fatalf("mcptest: %s: a transcript has only the sections client and server, not %q", file, f.Name)
		}
		for line := range strings.Lines(string(f.Data)) {
			if line = strings.TrimSpace(line); line != "" && f.Name == "client" {
				p.script = append(p.script, line)
			}
		}
	}
	want := slices.Clone(archive.Files)
	archive.Files = p.play(s.t.Context())
	if updating() {
		writeFile(s.t, file, txtar.Format(archive))
		return
	}
	compare(s.t, file, readable(want), readable(archive.Files))
}

// readable returns the messages indented.
func readable(files []txtar.File) string {
	var b strings.Builder
	side := ""
	for _, f := range files {
		if f.Name != side {
			fmt.Fprintf(&b, "-- %s --\n", f.Name)
			side = f.Name
		}
		for line := range bytes.Lines(f.Data) {
			b.Write(indent(line))
		}
	}
	return b.String()
}

// A player plays the client of a transcript, and is the peer of the server.
type player struct {
	handler transport.Handler
	session *transport.Session
	scrub   []*regexp.Regexp
	grown   chan struct{} // has a value after a message of the server

	mu     sync.Mutex
	asked  int               // questions of the server; guarded by mu
	script []string          // what the client has not sent yet; guarded by mu
	files  []txtar.File      // what was sent; guarded by mu
	heard  strings.Builder   // what the client sent; guarded by mu
	names  map[string]string // placeholders by value; guarded by mu
	counts map[string]int    // of placeholders, by kind; guarded by mu
}

// play returns the messages of both sides.
func (p *player) play(ctx context.Context) []txtar.File {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	for {
		msg, bad, ok := p.next()
		switch {
		case !ok:
			p.mu.Lock()
			files := slices.Clone(p.files) // without the end of subscriptions
			p.mu.Unlock()
			cancel()
			open.Wait()
			return files
		case bad != nil:
			p.add("server", jsonrpc.AppendResponse(nil, bad))
		case msg.Response != nil:
			p.add("server", []byte("(the server has not sent a request)"))
		case msg.Request.Method == protocol.MethodSubscriptionsListen:
			select {
			case <-p.grown:
			default:
			}
			open.Go(func() { p.serve(ctx, msg.Request) }) // ends with ctx
			<-p.grown
		default:
			p.serve(ctx, msg.Request)
		}
	}
}

// serve lets the server handle a request or a notification.
func (p *player) serve(ctx context.Context, req *jsonrpc.Request) {
	resp := p.handler.ServeRPC(ctx, req, p)
	if resp == nil || req.IsNotification() {
		return
	}
	whole := *resp
	whole.ID = req.ID
	if resp.Stream != nil {
		var result bytes.Buffer
		if err := resp.Stream(&result); err != nil {
			whole = jsonrpc.Response{ID: req.ID, Error: resp.Broken(err)}
		} else {
			whole.Stream, whole.Result = nil, result.Bytes()
		}
	}
	p.add("server", jsonrpc.AppendResponse(nil, &whole))
}

// next takes the next message of the client.
func (p *player) next() (msg jsonrpc.Message, bad *jsonrpc.Response, ok bool) {
	p.mu.Lock()
	if len(p.script) == 0 {
		p.mu.Unlock()
		return msg, nil, false
	}
	line := p.script[0]
	p.script = p.script[1:]
	sent := line
	for value, name := range p.names {
		sent = strings.ReplaceAll(sent, name, value)
	}
	p.heard.WriteString(sent + "\n")
	p.mu.Unlock()
	p.add("client", []byte(line))
	msg, bad = jsonrpc.Decode([]byte(sent))
	return msg, bad, true
}

// kinds are the values that differ from run to run: the first group, or the whole match.
var kinds = []struct {
	name string
	re   *regexp.Regexp
}{
	{"state", regexp.MustCompile(`"requestState":"([^"\\]+)"`)},
	{"elicitation", regexp.MustCompile(`"elicitationId":"([^"\\]+)"`)},
	{"ref", regexp.MustCompile(`\(ref ([0-9A-Za-z]{4,})\)`)},
	{"uuid", regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`)},
	{"time", regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)},
}

// add adds a message to the conversation, with placeholders in those of the server.
func (p *player) add(side string, message []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := string(message)
	if side == "server" {
		for _, kind := range kinds {
			text = p.name(kind.name, kind.re, text)
		}
		for _, re := range p.scrub {
			text = p.name("value", re, text)
		}
		select {
		case p.grown <- struct{}{}:
		default:
		}
	}
	if n := len(p.files); n == 0 || p.files[n-1].Name != side {
		p.files = append(p.files, txtar.File{Name: side})
	}
	last := &p.files[len(p.files)-1]
	last.Data = append(last.Data, text+"\n"...)
}

// name replaces values of one kind with placeholders. The caller holds mu.
func (p *player) name(kind string, re *regexp.Regexp, text string) string {
	var b strings.Builder
	done := 0
	for _, at := range re.FindAllStringSubmatchIndex(text, -1) {
		at = at[max(0, len(at)-2):][:2]
		value := text[at[0]:at[1]]
		if kind != "value" && p.names[value] == "" && strings.Contains(p.heard.String(), value) {
			continue // the client sent it first
		}
		if p.names[value] == "" {
			p.counts[kind]++
			p.names[value] = fmt.Sprintf("<%s %d>", kind, p.counts[kind])
			if kind == "time" { // two may be equal in one run and differ in the next
				p.names[value] = "<time>"
			}
		}
		b.WriteString(text[done:at[0]] + p.names[value])
		done = at[1]
	}
	return b.String() + text[done:]
}

// Notify implements [transport.Peer] and [transport.SessionLink].
func (p *player) Notify(_ context.Context, n *jsonrpc.Request) error {
	p.add("server", jsonrpc.AppendRequest(nil, n))
	return nil
}

// Call returns the client's next message, which must be a response. Transports choose the IDs of
// such requests; transcripts count them.
func (p *player) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	asked := *req
	p.mu.Lock()
	p.asked++
	asked.ID = jsonrpc.StringID(fmt.Sprintf("server-%d", p.asked))
	p.mu.Unlock()
	p.add("server", jsonrpc.AppendRequest(nil, &asked))
	msg, _, _ := p.next()
	if msg.Response == nil {
		return nil, fmt.Errorf("the transcript has no response to %s", req.Method)
	}
	return msg.Response, nil
}

// Session implements [transport.Peer].
func (p *player) Session() *transport.Session { return p.session }

// Header implements [transport.Peer].
func (p *player) Header() transport.Header { return nil }
