package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Forget forgets all notes, after the user has agreed.
func (n *Notes) Forget(ctx context.Context) (string, error) {
	backup, err := mcpkit.Once(ctx, "backup", n.backUp)
	if err != nil {
		return "", err
	}
	ok, err := mcpkit.Confirm(ctx, fmt.Sprintf("Forget all notes? Backup %d keeps them.", backup))
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

// backUp copies all notes, and returns the number of the copy.
func (n *Notes) backUp() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.backups = append(n.backups, maps.Clone(n.notes))
	return len(n.backups), nil
}
