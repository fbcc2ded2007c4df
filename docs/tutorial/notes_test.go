package main

import (
	"testing"

	"github.com/mcpkit/mcpkit-go/mcptest"
)

func TestNotesAreFound(t *testing.T) {
	s := mcptest.New(t, NewNotes())
	s.Call("add", AddInput{ID: "tea", Text: "Green tea, 80 degrees"}).OK().Text("kept tea")
	s.Call("add", AddInput{ID: "tea", Text: "Black tea"}).Error(`there is a note "tea" already; choose another id`)
	s.Call("search", SearchInput{Query: "green"}).OK().JSON(`[{"id": "tea", "text": "Green tea, 80 degrees"}]`)
	s.Read("note://tea").OK().Text("Green tea, 80 degrees")
}

func TestWrongArgumentsAreExplained(t *testing.T) {
	s := mcptest.New(t, NewNotes())
	s.Call("search", map[string]any{"querry": "tea"}).ErrorContains(`/querry: unknown; did you mean "query"?`)
}

func TestForgettingMakesOneBackup(t *testing.T) {
	n := NewNotes()
	s := mcptest.New(t, n)
	s.Call("add", AddInput{ID: "tea", Text: "Green tea"}).OK()
	s.Answer("Forget all notes? Backup 1 keeps them.", true).Call("forget", nil).OK().Text("forgot all notes")
	s.Call("search", SearchInput{Query: "tea"}).OK().JSON(`[]`)
	if len(n.backups) != 1 {
		t.Errorf("got %d backups, want 1", len(n.backups))
	}
}

func TestTheUserMayDecline(t *testing.T) {
	s := mcptest.New(t, NewNotes())
	s.Answer("Forget all notes? Backup 1 keeps them.", false).Call("forget", nil).OK().Text("kept all notes")
}
