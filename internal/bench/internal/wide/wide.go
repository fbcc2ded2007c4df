// Package wide has many tools with nested arguments and results.
package wide

import "github.com/mcpkit/mcpkit-go/internal/bench/internal/work"

// Tools is a service of ten tools. Each K has its own types of arguments and results, so that
// caching types does not help.
type Tools[K any] struct{}

// Search is the input of a tool.
type Search[K any] struct {
	Query  string       `json:"query" validate:"required,min=1"`
	Limit  int          `json:"limit,omitempty" default:"10" validate:"min=1,max=100"`
	Tags   []string     `json:"tags,omitempty"`
	Filter *work.Filter `json:"filter,omitempty"`
	_      K
}

// Hits is the output of a tool.
type Hits[K any] struct {
	Hits []work.Hit `json:"hits"`
	_    K
}

func (Tools[K]) M0(Search[[0]K]) (h Hits[[0]K]) { return }
func (Tools[K]) M1(Search[[1]K]) (h Hits[[1]K]) { return }
func (Tools[K]) M2(Search[[2]K]) (h Hits[[2]K]) { return }
func (Tools[K]) M3(Search[[3]K]) (h Hits[[3]K]) { return }
func (Tools[K]) M4(Search[[4]K]) (h Hits[[4]K]) { return }
func (Tools[K]) M5(Search[[5]K]) (h Hits[[5]K]) { return }
func (Tools[K]) M6(Search[[6]K]) (h Hits[[6]K]) { return }
func (Tools[K]) M7(Search[[7]K]) (h Hits[[7]K]) { return }
func (Tools[K]) M8(Search[[8]K]) (h Hits[[8]K]) { return }
func (Tools[K]) M9(Search[[9]K]) (h Hits[[9]K]) { return }
