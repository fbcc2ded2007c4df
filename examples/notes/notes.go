package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// docs:begin service

// Notes keeps short notes and finds them again.
type Notes struct {
	_ mcpkit.Info `name:"notes" version:"1.0.0" title:"Notes"`
	_ struct {
		Search    mcpkit.Tool     `hints:"readonly"`
		Add       mcpkit.Tool     `hints:"additive"`
		Delete    mcpkit.Tool     `hints:"destructive,idempotent" params:"id"`
		Note      mcpkit.Resource `uri:"note://{id}" mime:"text/markdown" complete:"id=IDs"`
		Summarize mcpkit.Prompt   `params:"id,style?" complete:"id=IDs"`
		Clear     mcpkit.Tool     `hints:"destructive"`
	}

	mu    sync.Mutex
	notes map[string]string // text by id
}

// docs:end service

// NewNotes returns a Notes with one note.
func NewNotes() *Notes {
	return &Notes{notes: map[string]string{"welcome": "# Welcome\n\nThis is your first note."}}
}

// SearchInput says what to look for.
type SearchInput struct {
	// Words that every hit contains.
	Query string `json:"query" validate:"min=2" example:"welcome"`
	// How many hits to return.
	Limit int `json:"limit,omitempty" default:"10" validate:"min=1,max=50"`
}

// A Hit is one note that was found.
type Hit struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Search finds the notes that contain every word of the query.
func (n *Notes) Search(ctx context.Context, in SearchInput) ([]Hit, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var hits []Hit
	for id, text := range n.notes {
		if containsAll(text, strings.Fields(in.Query)) {
			hits = append(hits, Hit{id, text})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return strings.Compare(a.ID, b.ID) })
	return hits[:min(len(hits), in.Limit)], nil
}

func containsAll(text string, words []string) bool {
	text = strings.ToLower(text)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) })
}

// AddInput is a new note.
type AddInput struct {
	// A short name, unique among the notes.
	ID string `json:"id" validate:"min=1,max=40"`
	// The note itself, as Markdown.
	Text string `json:"text"`
}

// Add keeps a note.
func (n *Notes) Add(in AddInput) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.notes[in.ID]; ok {
		return "", mcpkit.Errorf("there is a note %q already; choose another id", in.ID)
	}
	n.notes[in.ID] = in.Text
	return "kept " + in.ID, nil
}

// Delete forgets a note.
func (n *Notes) Delete(id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.notes, id)
	return nil
}

// Note returns one note as Markdown.
func (n *Notes) Note(id string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, ok := n.notes[id]
	if !ok {
		return "", mcpkit.ErrNotFound
	}
	return text, nil
}

// Summarize asks for a summary of a note, in a style such as "short".
func (n *Notes) Summarize(id, style string) (string, error) {
	text, err := n.Note(id)
	if err != nil {
		return "", mcpkit.Errorf("there is no note %q", id)
	}
	if style == "" {
		style = "plain"
	}
	return "Summarize this note in a " + style + " style:\n\n" + text, nil
}

// IDs completes the ids of notes.
func (n *Notes) IDs(_ context.Context, prefix string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ids []string
	for id := range n.notes {
		if strings.HasPrefix(id, prefix) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Clear forgets all notes, after the user has agreed.
func (n *Notes) Clear(ctx context.Context) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Forget all notes?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "kept all notes", nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.notes)
	return "forgot all notes", nil
}
