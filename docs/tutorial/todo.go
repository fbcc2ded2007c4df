package main

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Todo is a list of things to do.
type Todo struct {
	_ struct {
		List  mcpkit.Tool `hints:"readonly"`
		Clear mcpkit.Tool `hints:"destructive"`
	}

	mu    sync.Mutex
	items []Item
}

// An Item is one thing to do.
type Item struct {
	// What to do.
	Text string `json:"text" validate:"min=1,max=200" example:"buy tea"`
	// When it is due.
	Due string `json:"due,omitempty" default:"someday" validate:"oneof=today week someday"`
}

// Add adds an item.
func (t *Todo) Add(in Item) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.items, in) {
		return "", mcpkit.Errorf("%q is on the list already", in.Text)
	}
	t.items = append(t.items, in)
	return "added " + in.Text, nil
}

// List returns all items, the oldest first.
func (t *Todo) List() []Item {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.items)
}

// Clear removes all items, after the user has agreed.
func (t *Todo) Clear(ctx context.Context) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Remove all items?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "kept all items", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items = nil
	return "removed all items", nil
}
