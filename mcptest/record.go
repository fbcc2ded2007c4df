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

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
)

// replayPatience is how long a server may take to answer a line of a transcript.
var replayPatience = time.Minute

// Record is the server of this view, as it stands, with a transcript of what client and server say to each other. At the end of the
// test the conversation has to be the one in the file, or with -update (see [Golden]) the file is written: a txtar archive whose
// sections "client" and "server" follow one another, a message a line, below a comment that stays when the file is written anew.
//
// What differs from run to run is written as a name: the first "requestState" as <state 1>, likewise IDs of elicitations, UUIDs and the refs
// of internal errors; times of RFC 3339 as <time>; and as <value 1> what matches one of scrub, or its first group. What the
// client said first stays as it is, unless scrub says otherwise. Requests that run at the same time are recorded as they happen to come.
//
// Views of the view that Record returns do not record.
func (s *Server) Record(file string, scrub ...*regexp.Regexp) *Server {
	s.t.Helper()
	v := s.view()
	v.tape = newTape(scrub)
	s.t.Cleanup(func() { v.tape.settle(s.t, file) })
	return v
}

// Replay says to the server, in memory and as the principal of this view, what the client says in a transcript, and wants the server to
// say what it says there, but for what [Server.Record] renames. With -update the server's side is written anew; a file that has but a
// section "client" is a beginning.
//
// The client speaks as soon as the server has answered, or asks. A subscription goes on until the end of the transcript.
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
	_ = p.conn.Close() // the calls that go on, subscriptions for example, end
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
			return nil, nil, fmt.Errorf("%s: a transcript has the sections client and server, not %q", file, f.Name)
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

// settle compares the conversation with the file, or writes it.
func (t *tape) settle(tb reporter, file string) {
	tb.Helper()
	lines := t.stop()
	comment, want, err := readTranscript(file)
	if updating() {
		if err != nil || len(bytes.TrimSpace(comment)) == 0 {
			comment = []byte("What client and server say in " + tb.Name() + ".\n\n")
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
		tb.Errorf("mcptest: the conversation is not that of %s; %s\n%s", file, howToUpdate(), said)
	}
}

// A reporter is what settle needs of a test.
type reporter interface {
	Helper()
	Name() string
	Errorf(format string, args ...any)
}

// recorded is a handler that is listened to.
type recorded struct {
	asPrincipal
	tape *tape
}

// ServeRPC answers as the server does.
func (r recorded) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	r.tape.client(jsonrpc.AppendRequest(nil, req))
	var way transport.Peer = recordedPeer{peer, r.tape}
	if c, ok := peer.(transport.StreamCloser); ok {
		way = closingPeer{recordedPeer{peer, r.tape}, c}
	}
	resp := r.asPrincipal.ServeRPC(ctx, req, way)
	if resp == nil || req.IsNotification() || ctx.Err() != nil {
		return resp // which nobody wants any more
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

// recordedPeer is the way back, listened to.
type recordedPeer struct {
	transport.Peer
	tape *tape
}

// Notify notifies.
func (p recordedPeer) Notify(ctx context.Context, n *jsonrpc.Request) error {
	p.tape.server(jsonrpc.AppendRequest(nil, n))
	return p.Peer.Notify(ctx, n)
}

// Call asks. The IDs of such requests are those of bindings; in transcripts they are counted.
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

// writeFile writes a file, and the folders that lead to it: that of a new package has no testdata yet.
func writeFile(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
