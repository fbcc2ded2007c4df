package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Atlas shows the cities that trips go to.
type Atlas struct {
	_ struct {
		Cities mcpkit.Tool     `hints:"readonly"`
		Look   mcpkit.Tool     `hints:"readonly" params:"city"`
		Photo  mcpkit.Resource `uri:"photo://{city}" mime:"image/jpeg" complete:"city=Names"`
	}

	cities []string // sorted
	photos fs.FS    // such as Oslo.jpg
}

// NewAtlas returns an atlas with a folder of photos.
func NewAtlas(photos fs.FS) *Atlas {
	return &Atlas{cities: []string{"Lisbon", "Oslo", "Ottawa", "Quito"}, photos: photos}
}

// docs:begin page

// CitiesInput says which cities to list.
type CitiesInput struct {
	// The first city to list: the next of the page before.
	From string `json:"from,omitempty"`
	// How many cities to list.
	Limit int `json:"limit,omitempty" default:"20" validate:"min=1,max=100"`
}

// A Page is a part of the list.
type Page struct {
	Cities []string `json:"cities"`
	// Where the next page begins; absent on the last page.
	Next string `json:"next,omitempty"`
}

// Cities lists cities by name, a page at a time.
func (a *Atlas) Cities(in CitiesInput) Page {
	from, _ := slices.BinarySearch(a.cities, in.From)
	to := min(from+in.Limit, len(a.cities))
	page := Page{Cities: a.cities[from:to]}
	if to < len(a.cities) {
		page.Next = a.cities[to]
	}
	return page
}

// docs:end page

// docs:begin photo

// Photo returns a photo of a city.
func (a *Atlas) Photo(city string) ([]byte, error) { return fs.ReadFile(a.photos, city+".jpg") }

// Names completes the names of cities.
func (a *Atlas) Names(_ context.Context, prefix string) ([]string, error) {
	others := func(city string) bool { return !strings.HasPrefix(city, prefix) }
	return slices.DeleteFunc(slices.Clone(a.cities), others), nil
}

// docs:end photo

// docs:begin content

// Look shows a city.
func (a *Atlas) Look(city string) (*mcpkit.CallToolResult, error) {
	photo, err := a.Photo(city)
	if err != nil {
		return nil, mcpkit.Errorf("there is no photo of %q; call cities", city)
	}
	return &mcpkit.CallToolResult{
		Content: []mcpkit.Content{
			mcpkit.Text("This is " + city + "."),
			&mcpkit.Image{Data: photo, MIMEType: "image/jpeg"},
			&mcpkit.Link{URI: "photo://" + city, Name: city},
		},
		Meta: protocol.Meta{"example.com/license": json.RawMessage(`"CC0"`)},
	}, nil
}

// docs:end content
