package main

import (
	"testing"

	"github.com/mcpkit/mcpkit-go/mcptest"
)

func TestItemsAreKept(t *testing.T) {
	s := mcptest.New(t, &Todo{})
	s.Call("add", Item{Text: "buy tea"}).OK().Text("added buy tea")
	s.Call("add", Item{Text: "buy tea"}).Error(`"buy tea" is on the list already`)
	s.Call("list", nil).OK().JSON(`[{"text": "buy tea", "due": "someday"}]`)
}

func TestWrongArgumentsAreExplained(t *testing.T) {
	s := mcptest.New(t, &Todo{})
	s.Call("add", map[string]any{"txt": "buy tea"}).ErrorContains(`/txt: unknown; did you mean "text"?`)
}

func TestClearingNeedsConsent(t *testing.T) {
	s := mcptest.New(t, &Todo{})
	s.Call("add", Item{Text: "buy tea"}).OK()
	s.Answer("Remove all items?", mcptest.Decline).Call("clear", nil).OK().Text("kept all items")
	s.Answer("Remove all items?", true).Call("clear", nil).OK().Text("removed all items")
}
