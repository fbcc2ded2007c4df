package mcpkit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"iter"
	"math/big"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

var updateSurface = flag.Bool("update-surface", false, "write testdata/surface.json anew")

// surface is a service with everything that arguments and results can be made of.
type surface struct {
	_ struct {
		Everything mcpkit.Tool `hints:"readonly,idempotent,closed-world" title:"All types" meta:"example.com/team=types"`
		Sum        mcpkit.Tool `params:"a,b?"`
		Whole      mcpkit.Tool `desc:"Returns a result as it is."`
	}
}

// A Priority orders work.
type Priority string

const (
	// Low can wait.
	Low Priority = "low"
	// High cannot.
	High Priority = "high"
)

// A Weekday is a day, counted from Monday.
type Weekday int

const (
	Monday  Weekday = iota + 1 // hard
	Tuesday                    // better
)

// A Tree contains itself.
type Tree struct {
	// What the branch says.
	Label string  `json:"label" validate:"required"`
	Kids  []*Tree `json:"kids,omitempty"`
}

// Listed is one page of things.
type Listed[T any] struct {
	// The things of this page.
	Items []T `json:"items" validate:"omitempty,max=3"`
	// Where the next page begins.
	Next *string `json:"next"`
}

// Audit is embedded in others.
type Audit struct {
	// Who it was.
	By string `json:"by" validate:"omitempty" example:"ann"`
}

// Place is where something is.
type Place struct {
	Lat float64 `json:"lat" validate:"min=-90,max=90"`
	Lon float64 `json:"lon" validate:"min=-180,max=180"`
}

// Everything is one of each.
type Everything struct {
	Audit
	// Whether it counts.
	Flag bool `json:"flag" validate:"required"`
	// A small number.
	Small int8    `json:"small" validate:"omitempty"`
	Large int64   `json:"large" validate:"omitempty" example:"9007199254740993"`
	Count uint64  `json:"count" validate:"omitempty"`
	Ratio float32 `json:"ratio" default:"0.5"`
	// Some text.
	Text     string                     `json:"text" validate:"required,min=2,max=40" example:"some text"`
	Mail     string                     `json:"mail" validate:"omitempty,email"`
	Bytes    []byte                     `json:"bytes" validate:"omitempty"`
	When     time.Time                  `json:"when" validate:"omitempty"`
	HowLong  time.Duration              `json:"howLong" default:"90s"`
	Link     *url.URL                   `json:"link"`
	Address  netip.Addr                 `json:"address" validate:"omitempty"`
	Net      *netip.Prefix              `json:"net"`
	Big      *big.Int                   `json:"big"`
	Number   json.Number                `json:"number" validate:"omitempty"`
	Raw      json.RawMessage            `json:"raw" validate:"omitempty"`
	Any      any                        `json:"any" validate:"omitempty"`
	Priority Priority                   `json:"priority" validate:"omitempty,oneof=low high"`
	Day      Weekday                    `json:"day" validate:"omitempty"`
	Days     []Weekday                  `json:"days" validate:"omitempty,unique"`
	Grid     [][]int                    `json:"grid" validate:"omitempty"`
	Pair     [2]string                  `json:"pair" validate:"omitempty"`
	Place    *Place                     `json:"place"`
	Places   []Place                    `json:"places" validate:"omitempty"`
	Named    map[string]Place           `json:"named" validate:"omitempty"`
	ByNumber map[int][]string           `json:"byNumber" validate:"omitempty"`
	Page     Listed[Place]              `json:"page" validate:"omitempty"`
	Tree     Tree                       `json:"tree" validate:"omitempty"`
	Nested   struct{ Deep **string }    `json:"nested" validate:"omitempty"`
	Deep     map[string]map[string]bool `json:"deep" validate:"omitempty"`
	// Old is no longer looked at.
	//
	// Deprecated: use text.
	Old    string `json:"old" validate:"omitempty"`
	Hidden string `json:"-" validate:"omitempty"`
	Secret string `json:"secret" validate:"omitempty" secret:"true"`
}

// Everything takes one of each, and gives it back.
func (*surface) Everything(in Everything) Everything { return in }

// Grow returns the tree.
func (*surface) Grow(in Tree) *Tree { return &in }

// Count returns numbers one after the other.
func (*surface) Count(in struct {
	// How many.
	To int `json:"to" validate:"min=0,max=5" default:"3"`
}) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range in.To {
			if !yield(i) {
				return
			}
		}
	}
}

// Page returns a page of pages.
func (*surface) Page(in Listed[Listed[Priority]]) Listed[Listed[Priority]] { return in }

// Sum adds numbers.
func (*surface) Sum(a, b float64) float64 { return a + b }

// When returns the present, as scalars are.
func (*surface) When() (time.Time, error) { return time.Unix(0, 0).UTC(), nil }

// Table returns a map.
func (*surface) Table() map[string][]Place { return nil }

func (*surface) Whole() (*protocol.CallToolResult, error) { return &protocol.CallToolResult{}, nil }

// The golden file has the definitions that a model gets.
func TestSurface(t *testing.T) {
	list := member(t, modern(t, newServer(t, &surface{})).result("tools/list", "{}"), "tools")
	var got bytes.Buffer
	require.NoError(t, json.Indent(&got, []byte(list), "", "  "))
	got.WriteByte('\n')
	file := filepath.Join("testdata", "surface.json")
	if *updateSurface {
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String(), "%s; -update-surface writes it anew", file)
}

// Numbers come back exactly as they were sent.
func TestNumbersAreExact(t *testing.T) {
	got := modern(t, newServer(t, &surface{})).result("tools/call", `{"name":"everything","arguments":`+
		`{"flag":false,"text":"tea","large":9007199254740993,"count":18446744073709551615,"big":123456789012345678901234567890}}`)
	for _, want := range []string{`"large":9007199254740993`, `"count":18446744073709551615`, `"big":123456789012345678901234567890`} {
		require.Contains(t, got, want)
	}
}
