package mcpkit_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

var update = flag.Bool("update", false, "write what the server says into the transcripts")

// Library is the service of the transcripts.
type Library struct {
	_ mcpkit.Info `name:"library" version:"1.0.0"`
	_ struct {
		Find   mcpkit.Tool     `hints:"readonly"`
		Count  mcpkit.Tool     `params:"upto"`
		Lend   mcpkit.Tool     `hints:"additive"`
		Book   mcpkit.Resource `uri:"book://{isbn}" mime:"text/plain" cache:"60s,public"`
		Rules  mcpkit.Resource `uri:"library://rules"`
		Review mcpkit.Prompt   `params:"title,tone?"`
	}
}

// FindInput says what to look for.
type FindInput struct {
	// Part of the title.
	Title string `json:"title" validate:"required,min=2"`
	Limit int    `json:"limit,omitempty" default:"3" validate:"min=1,max=10"`
}

// A Found book.
type Found struct {
	Title string `json:"title"`
}

// Find finds books.
func (Library) Find(in FindInput) []Found {
	books := []Found{{"Dune"}, {"Dune Messiah"}, {"Emma"}}
	var found []Found
	for _, b := range books {
		if strings.Contains(b.Title, in.Title) && len(found) < in.Limit {
			found = append(found, b)
		}
	}
	return found
}

// Count counts, and tells how far it is.
func (Library) Count(call *mcpkit.Call, log *slog.Logger, upto int) int {
	for i := range upto {
		call.Progress(float64(i+1), float64(upto), "")
		log.Info("counted", "number", i+1)
	}
	return upto
}

// Lend lends a book, if the reader confirms.
func (Library) Lend(ctx context.Context, in struct {
	Title string `json:"title" validate:"required"`
}) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Lend "+in.Title+"?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "not lent", nil
	}
	return "lent " + in.Title, nil
}

// Book returns a book.
func (Library) Book(isbn string) (string, error) {
	if isbn != "978" {
		return "", mcpkit.ErrNotFound
	}
	return "A beginning is the time for taking the most delicate care.", nil
}

// Rules returns the rules as data.
func (Library) Rules() map[string]int { return map[string]int{"days": 14} }

// Review asks for a review.
func (Library) Review(title, tone string) string { return "Review " + title + " " + tone + "." }

// TestTranscripts sends the messages of a client and compares those of the server, for each file.
// The first lines of a file explain it. The folder is the family; a client of the folder "legacy"
// begins with initialize itself.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/transcripts/"), ".txtar"), func(t *testing.T) {
			playTranscript(t, file)
		})
	}
}

func playTranscript(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	require.NotEmpty(t, strings.TrimSpace(string(archive.Comment)), "a transcript says what it shows")
	srv := newServer(t, &Library{}, mcpkit.PageSize(2), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	p := &peer{t: t, srv: srv}
	p.session = transport.NewSession("", p)

	var want *txtar.File
	var got strings.Builder
	for i := range archive.Files {
		switch f := &archive.Files[i]; f.Name {
		case "client":
			play(t, p, string(f.Data), &got)
		case "server":
			want = f
		default:
			t.Fatalf("a transcript has client and server, not %q", f.Name)
		}
	}
	require.NotNil(t, want)
	if *update {
		want.Data = []byte(got.String())
		require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
		return
	}
	require.Equal(t, string(want.Data), got.String())
}

// play sends the lines of the client. A line that is a response answers the request that the server
// has sent meanwhile.
func play(t *testing.T, p *peer, script string, got *strings.Builder) {
	lines := strings.Split(strings.TrimSpace(script), "\n")
	say := func(messages ...string) {
		for _, m := range messages {
			if m != "" {
				got.WriteString(m + "\n")
			}
		}
	}
	p.answer = func(req *jsonrpc.Request) *jsonrpc.Response {
		req.ID = jsonrpc.NumberID(1000)
		say(append(p.take(), string(jsonrpc.AppendRequest(nil, req)))...)
		require.NotEmpty(t, lines, "the server asks, but the client says no more")
		msg, bad := jsonrpc.Decode([]byte(lines[0]))
		require.Nil(t, bad)
		require.NotNil(t, msg.Response, "the server asks, but the client says %s", lines[0])
		lines = lines[1:]
		return msg.Response
	}
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		msg, bad := jsonrpc.Decode([]byte(line))
		if bad != nil {
			say(string(jsonrpc.AppendResponse(nil, bad)))
			continue
		}
		resp := p.srv.ServeRPC(t.Context(), msg.Request, p)
		say(p.take()...)
		if resp != nil {
			say(string(jsonrpc.AppendResponse(nil, resp)))
		}
	}
}
