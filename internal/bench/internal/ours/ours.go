// Package ours is the benchmark's server and client built with this project.
package ours

import (
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Bench is the benchmark's service.
type Bench struct {
	_ mcpkit.Info `name:"bench" version:"1"`
}

// Add adds.
func (*Bench) Add(in work.AddInput) work.AddOutput { return work.Add(in) }

// Echo returns its text.
func (*Bench) Echo(in work.EchoInput) string { return in.Text }

// Search finds hits.
func (*Bench) Search(in work.SearchInput) work.SearchOutput { return work.Search(in) }

// Blob returns n bytes.
func (*Bench) Blob(in work.BlobInput) string { return work.Blob(in) }

// NewServer registers the tools.
func NewServer() *mcpkit.Server {
	s := mcpkit.MustNew(&Bench{})
	if err := s.Add(mcpkit.NewResource(work.URI, "resource", func() string { return "" })); err != nil {
		panic(err)
	}
	return s
}
