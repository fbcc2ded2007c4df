package middleware

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// ResultLimit bounds what a tool may return, in bytes of content (see [SizeOf]), since a model pays for every one. A result
// of texts alone is cut at the end of a character, with a note that says how much is missing. A result that is too large
// otherwise, by structured content or an image, becomes a tool error that tells the model to ask for less: part of it would be
// wrong. It panics when max is less than 1.
func ResultLimit(max int) mcpkit.Middleware { return resultLimit(max, true) }

// ResultLimitStrict is [ResultLimit] that cuts nothing: all that is too large becomes a tool error.
func ResultLimitStrict(max int) mcpkit.Middleware { return resultLimit(max, false) }

func resultLimit(limit int, cut bool) mcpkit.Middleware {
	if limit < 1 {
		panic(fmt.Sprintf("middleware: ResultLimit(%d): a result needs at least 1 byte", limit))
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			r, ok := result.(*mcpkit.ToolResult)
			if !ok || err != nil {
				return result, err
			}
			size, _ := SizeOf(r)
			if size <= limit {
				return result, nil
			}
			if cut && r.StructuredContent.IsZero() {
				if shorter, ok := cutTexts(r, limit, size); ok {
					return shorter, nil
				}
			}
			return nil, mcpkit.Errorf("the result has %d bytes, and the limit is %d; ask for less, for example with a filter, or page by page", size, limit)
		}
	}
}

// cutTexts keeps the first limit bytes of texts; false when not everything is text.
func cutTexts(r *mcpkit.ToolResult, limit, size int) (*mcpkit.ToolResult, bool) {
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
		Text: fmt.Sprintf("[cut: this is the beginning of a result of %d bytes, of which the limit lets %d through; ask for less to see the rest]", size, limit),
	})
	return &shorter, true
}

// prefix is at most the first n bytes of s, and no part of a character.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
