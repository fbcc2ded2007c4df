package main

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Notes keeps short notes and finds them again.
type Notes struct {
	_ mcpkit.Info `name:"notes" version:"1.0.0"`
	_ struct {
		Add    mcpkit.Tool     `hints:"additive"`
		Search mcpkit.Tool     `hints:"readonly"`
		Note   mcpkit.Resource `uri:"note://{id}" mime:"text/markdown"`
	}

	mu      sync.Mutex
	notes   map[string]string   // text by ID
	backups []map[string]string // what was forgotten
}

// NewNotes returns a service without notes.
func NewNotes() *Notes { return &Notes{notes: map[string]string{}} }

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

// SearchInput says what to look for.
type SearchInput struct {
	// Text that every hit contains.
	Query string `json:"query" validate:"min=2" example:"tea"`
	// How many hits to return.
	Limit int `json:"limit,omitempty" default:"10" validate:"min=1,max=50"`
}

// A Hit is a note that was found.
type Hit struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Search finds the notes that contain a text.
func (n *Notes) Search(in SearchInput) []Hit {
	n.mu.Lock()
	defer n.mu.Unlock()
	var hits []Hit
	for id, text := range n.notes {
		if strings.Contains(strings.ToLower(text), strings.ToLower(in.Query)) {
			hits = append(hits, Hit{id, text})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return strings.Compare(a.ID, b.ID) })
	return hits[:min(len(hits), in.Limit)]
}

// Note returns one note.
func (n *Notes) Note(id string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, ok := n.notes[id]
	if !ok {
		return "", mcpkit.ErrNotFound
	}
	return text, nil
}
