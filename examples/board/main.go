// Command board serves a kanban board that a person drags cards on, in a chat. Hosts that show MCP
// Apps show the page; others, and models, get the board as text.
//
//	go run ./examples/board
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// docs:begin service

// Board is a board of cards in columns.
type Board struct {
	_ mcpkit.Info `name:"board" version:"1.0.0"`
	_ struct {
		ShowBoard mcpkit.Tool `app:"ui://board" hints:"readonly,closed-world"`
		AddCard   mcpkit.Tool `hints:"additive,closed-world" params:"title"`
		MoveCard  mcpkit.Tool `hints:"additive,idempotent,closed-world" params:"id,to,before?" rules:"to:oneof=todo doing done"`
		Rename    mcpkit.Tool `app:"visibility=app" hints:"destructive,closed-world" params:"id,title"`
	}
	mu    sync.Mutex
	cards []Card // guarded by mu: those of a column in their order
	last  int    // guarded by mu: the newest card
}

// docs:end service

var columns = []string{"todo", "doing", "done"}

// A Card is a piece of work.
type Card struct {
	ID     int    `json:"id"`
	Title  string `json:"title"`
	Column string `json:"column" validate:"oneof=todo doing done"`
}

// Cards are the cards of the board, those of a column from the top.
type Cards struct {
	Cards []Card `json:"cards"`
}

// docs:begin tool

// ShowBoard shows the board to the user. The result has all cards.
func (b *Board) ShowBoard(ctx context.Context) (Cards, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := "The user sees the board, and can move cards."
	if !apps.Shown(ctx) {
		text = b.text()
	}
	return b.all(), text
}

// docs:end tool

// AddCard adds a card at the end of the column todo.
func (b *Board) AddCard(title string) (Cards, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if title = strings.TrimSpace(title); title == "" {
		return Cards{}, mcpkit.Errorf("a card needs a title")
	}
	b.last++
	b.cards = append(b.cards, Card{b.last, title, columns[0]})
	return b.all(), nil
}

// MoveCard moves a card to a column: before another card, or to its end.
func (b *Board) MoveCard(id int, to string, before int) (Cards, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, err := b.find(id)
	if err != nil {
		return Cards{}, err
	}
	if before == id {
		return b.all(), nil
	}
	end := len(b.cards)
	if before != 0 {
		if end, err = b.find(before); err != nil {
			return Cards{}, err
		}
		if b.cards[end].Column != to {
			return Cards{}, mcpkit.Errorf("card %d is in the column %s", before, b.cards[end].Column)
		}
	}
	card := b.cards[at]
	card.Column = to
	b.cards = slices.Insert(b.cards, end, card)
	if end < at {
		at++
	}
	b.cards = slices.Delete(b.cards, at, at+1)
	return b.all(), nil
}

// Rename changes the title of a card.
func (b *Board) Rename(id int, title string) (Cards, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, err := b.find(id)
	if err == nil {
		b.cards[at].Title = title
	}
	return b.all(), err
}

// find returns the index of a card. The caller holds mu.
func (b *Board) find(id int) (int, error) {
	if at := slices.IndexFunc(b.cards, func(c Card) bool { return c.ID == id }); at >= 0 {
		return at, nil
	}
	return 0, mcpkit.Errorf("there is no card %d", id)
}

// all returns a copy of the cards. The caller holds mu.
func (b *Board) all() Cards { return Cards{slices.Clone(b.cards)} }

// text returns the board as Markdown. The caller holds mu.
func (b *Board) text() string {
	var out strings.Builder
	for _, column := range columns {
		fmt.Fprintf(&out, "## %s\n\n", column)
		for _, c := range b.cards {
			if c.Column == column {
				fmt.Fprintf(&out, "- %d: %s\n", c.ID, c.Title)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// newBoard returns a board with three cards.
func newBoard() *Board {
	return &Board{last: 3, cards: []Card{
		{1, "Write the page", "todo"}, {2, "Test it in a browser", "todo"}, {3, "Choose a name", "done"},
	}}
}

// docs:begin serve

//go:embed board.html
var html string

// page is the extension with the page of the board.
var page = apps.Pages(apps.Page{URI: "ui://board", HTML: html, Title: "Board", Border: new(true)})

func main() {
	if err := mcpkit.Serve(newBoard(), page); err != nil {
		log.Fatal(err)
	}
}

// docs:end serve
