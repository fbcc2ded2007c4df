package middleware

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A ResultLimitOption configures [ResultLimit].
type ResultLimitOption func(*resultLimit)

// NoTruncation makes every result that is too large a tool error, texts as well.
func NoTruncation() ResultLimitOption { return func(l *resultLimit) { l.noTruncation = true } }

type resultLimit struct {
	max          int
	noTruncation bool
}

// ResultLimit limits the content of a tool result to max bytes, since a model pays for each one;
// see [mcpkit.SizeOf] for how content is counted. It truncates results that are only text and adds
// a note with the full size. Results with structured content or images become tool errors that ask
// the model for less, since a part of them would be wrong. ResultLimit panics if max is less than
// 1.
func ResultLimit(max int, opts ...ResultLimitOption) mcpkit.Middleware {
	if max < 1 {
		panic(fmt.Sprintf("middleware: ResultLimit(%d): the limit is less than 1 byte", max))
	}
	l := &resultLimit{max: max}
	for _, o := range opts {
		o(l)
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			r, ok := result.(*protocol.CallToolResult)
			if !ok || err != nil {
				return result, err
			}
			return l.check(r)
		}
	}
}

func (l *resultLimit) check(r *protocol.CallToolResult) (mcpkit.Result, error) {
	size, _ := mcpkit.SizeOf(r)
	if size <= l.max {
		return r, nil
	}
	if !l.noTruncation && r.StructuredContent == nil {
		if shorter, ok := truncateTexts(r, l.max, size); ok {
			return shorter, nil
		}
	}
	return nil, mcpkit.Errorf("the result has %d bytes, and the limit is %d; ask for less, for example with a filter, or page by page", size, l.max)
}

// truncateTexts keeps the first limit bytes of a result that is only text. It returns false for
// other results.
func truncateTexts(r *protocol.CallToolResult, limit, size int) (*protocol.CallToolResult, bool) {
	shorter := *r
	shorter.Content = nil
	left := limit
	for _, c := range r.Content {
		text, ok := c.(*protocol.TextContent)
		if !ok {
			return nil, false
		}
		if left <= 0 {
			continue
		}
		kept := *text
		kept.Text = prefix(text.Text, left)
		left -= len(text.Text)
		shorter.Content = append(shorter.Content, &kept)
	}
	shorter.Content = append(shorter.Content, &protocol.TextContent{
		Text: fmt.Sprintf("[truncated: this result has %d bytes, and the limit is %d; ask for less to see the rest]", size, limit),
	})
	return &shorter, true
}

// prefix returns at most the first n bytes of s, and ends between two characters.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
