package mcptest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
)

// replayPatience is how long a server may take to respond to a line of a transcript.
var replayPatience = time.Minute

// Record returns a view that records the messages of client and server. At the end of the test it
// compares them with the file, or writes the file if the test runs with -update (see [Golden]). The
// file is a txtar archive with alternating sections "client" and "server" and one message on each
// line. The comment above them is kept.
//
// Values that differ from run to run have placeholders: <state 1> for request states, and likewise
// for IDs of elicitations, UUIDs and the references of internal errors; <time> for RFC 3339 times;
// and <value 1> for what matches one of scrub, or its first group. Values that the client sent
// first stay, unless they match scrub. Concurrent requests are recorded in the order in which they
// arrive.
//
// Views made from the view that Record returns do not record.
func (s *Server) Record(file string, scrub ...*regexp.Regexp) *Server {
	s.t.Helper()
	v := s.view()
	v.tape = newTape(scrub)
	s.t.Cleanup(func() { v.tape.settle(s.t, file) })
	return v
}

// Replay sends the client's messages of a transcript to the server, in memory and as the principal
// of this view, and compares the server's messages with the transcript, placeholders aside. With
// -update it writes the server's messages, so a new file needs only a section "client".
//
// The client sends its next message when the server has responded or asks a question. A
// subscription stays open until the end of the transcript.
func (s *Server) Replay(file string, scrub ...*regexp.Regexp) {
	s.t.Helper()
	_, script, err := readTranscript(file)
	if err != nil {
		s.t.Fatalf("mcptest: %v", err)
	}
	v := s.view()
	v.tape = newTape(scrub)
	p := &player{t: s.t, tape: v.tape, script: script, asked: make(chan struct{}, 1), answers: make(chan *jsonrpc.Response)}
	p.conn = inmem.Connect(s.t.Context(), v.handler())
	p.conn.OnRequest(p.answer)
	over := p.play()
	v.tape.stop()
	p.cancel()
	_ = p.conn.Close() // ends open calls, such as subscriptions
	p.flights.Wait()
	if over != "" {
		s.t.Errorf("mcptest: %s: %s", file, over)
		return
	}
	v.tape.settle(s.t, file)
}

// readTranscript reads a file.
func readTranscript(file string) (comment []byte, lines []line, err error) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range archive.Files {
		if f.Name != "client" && f.Name != "server" {
			return nil, nil, fmt.Errorf("%s: a transcript has only the sections client and server, not %q", file, f.Name)
		}
		for text := range strings.Lines(string(f.Data)) {
			if text = strings.TrimSpace(text); text != "" {
				lines = append(lines, line{f.Name == "client", text})
			}
		}
	}
	return archive.Comment, lines, nil
}

// writeTranscript writes a file.
func writeTranscript(file string, comment []byte, lines []line) error {
	archive := &txtar.Archive{Comment: comment}
	for i, l := range lines {
		if i == 0 || l.client != lines[i-1].client {
			archive.Files = append(archive.Files, txtar.File{Name: l.side()})
		}
		f := &archive.Files[len(archive.Files)-1]
		f.Data = append(f.Data, l.text+"\n"...)
	}
	return writeFile(file, txtar.Format(archive))
}

// settle compares the conversation with the file, or writes the file.
func (t *tape) settle(tb reporter, file string) {
	tb.Helper()
	lines := t.stop()
	comment, want, err := readTranscript(file)
	if updating() {
		if err != nil || len(bytes.TrimSpace(comment)) == 0 {
			comment = []byte("The messages of client and server in " + tb.Name() + ".\n\n")
		}
		if err := writeTranscript(file, comment, lines); err != nil {
			tb.Errorf("mcptest: %v", err)
		}
		return
	}
	if err != nil {
		tb.Errorf("mcptest: %v; %s", err, howToUpdate())
		return
	}
	if said := diffLines(want, lines); said != "" {
		tb.Errorf("mcptest: the conversation differs from %s; %s\n%s", file, howToUpdate(), said)
	}
}

// A reporter is what settle needs of a test.
type reporter interface {
	Helper()
	Name() string
	Errorf(format string, args ...any)
}

// recorded is a handler whose messages are recorded.
type recorded struct {
	asPrincipal
	tape *tape
}

// ServeRPC calls the server and records the request and the response.
func (r recorded) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	r.tape.client(jsonrpc.AppendRequest(nil, req))
	var way transport.Peer = recordedPeer{peer, r.tape}
	if c, ok := peer.(transport.StreamCloser); ok {
		way = closingPeer{recordedPeer{peer, r.tape}, c}
	}
	resp := r.asPrincipal.ServeRPC(ctx, req, way)
	if resp == nil || req.IsNotification() || ctx.Err() != nil {
		return resp // which is not sent
	}
	said := *resp
	said.ID = req.ID
	if resp.Stream != nil {
		var whole bytes.Buffer
		if err := resp.Stream(&whole); err != nil {
			said = jsonrpc.Response{ID: req.ID, Error: resp.Broken(err)}
		} else {
			said.Stream, said.Result = nil, whole.Bytes()
		}
		resp = &said
	}
	r.tape.server(jsonrpc.AppendResponse(nil, &said))
	return resp
}

// recordedPeer records what the server sends during a call.
type recordedPeer struct {
	transport.Peer
	tape *tape
}

// Notify records and sends a notification.
func (p recordedPeer) Notify(ctx context.Context, n *jsonrpc.Request) error {
	p.tape.server(jsonrpc.AppendRequest(nil, n))
	return p.Peer.Notify(ctx, n)
}

// Call records and sends a request. Transports choose the IDs of such requests; transcripts count
// them.
func (p recordedPeer) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	id := p.tape.nextID()
	said := *req
	said.ID = id
	p.tape.server(jsonrpc.AppendRequest(nil, &said))
	resp, err := p.Peer.Call(ctx, req)
	if err == nil {
		answer := *resp
		answer.ID = id
		p.tape.client(jsonrpc.AppendResponse(nil, &answer))
	}
	return resp, err
}

type closingPeer struct {
	recordedPeer
	transport.StreamCloser
}

// writeFile writes a file and creates its folder, since a new package has no testdata.
func writeFile(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
