package mcpkit_test

import (
	"context"
	"flag"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
)

var _ = flag.Bool("update", false, "write what the server says into the transcripts")

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
			mcptest.New(t, &Library{}, mcpkit.PageSize(2)).Replay(file)
		})
	}
}
