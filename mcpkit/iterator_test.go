package mcpkit_test

import (
	"bufio"
	"iter"
	"strings"
	"testing"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
)

type events struct{ text string }

// Errors returns the lines of the log that report an error.
func (e *events) Errors() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines := bufio.NewScanner(strings.NewReader(e.text))
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "error") && !yield(lines.Text(), nil) {
				return // nobody wants the rest
			}
		}
		if err := lines.Err(); err != nil {
			yield("", err)
		}
	}
}

func TestIteratorsGiveLists(t *testing.T) {
	s := mcptest.New(t, &events{"error 1\nok\nerror 2\n"}, mcpkit.Name("journal", "1.0.0"))
	s.Call("errors", nil).OK().JSON(`["error 1", "error 2"]`)
	s = mcptest.New(t, &events{"error 1\n" + strings.Repeat("x", bufio.MaxScanTokenSize)}, mcpkit.Name("journal", "1.0.0"), mcpkit.ExposeErrors())
	s.Call("errors", nil).Error("bufio.Scanner: token too long")
}
