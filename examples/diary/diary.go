package main

import (
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

// docs:begin service

// Diary keeps a diary for each user.
type Diary struct {
	_ mcpkit.Info `name:"diary" version:"1.0.0"`
	_ struct {
		Read  mcpkit.Tool `hints:"readonly" scopes:"diary:read" desc:"Reads the diary of the user."`
		Write mcpkit.Tool `hints:"additive" scopes:"diary:read diary:write" desc:"Writes an entry into the diary of the user."`
	}

	mu      sync.Mutex
	entries map[owner][]Entry
}

// An owner is a user, whatever client the user has.
type owner struct{ issuer, subject string }

func ownerOf(user *oauth.Principal) owner { return owner{user.Issuer, user.Subject} }

// An Entry is a text with its time.
type Entry struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Read returns the entries of the user, the oldest first.
func (d *Diary) Read(user *oauth.Principal) ([]Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries[ownerOf(user)]), nil
}

// WriteInput is the input of Write.
type WriteInput struct {
	Text string `json:"text" validate:"max=4000" desc:"What happened."`
}

// Write adds an entry to the diary of the user.
func (d *Diary) Write(user *oauth.Principal, in WriteInput) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries[ownerOf(user)] = append(d.entries[ownerOf(user)], Entry{At: time.Now().UTC(), Text: in.Text})
	return "Written, " + user.Subject + ".", nil
}

// docs:end service

// NewDiary returns a Diary without entries.
func NewDiary() *Diary { return &Diary{entries: make(map[owner][]Entry)} }
