package middleware

import "github.com/mcpkit/mcpkit-go/mcpkit"

// SizeOf is how many bytes of content a result has, before it is encoded: texts, data and structured content. Questions to
// the client have none. It is false where that is not known: there is no result, or the content is read while it is sent.
func SizeOf(result mcpkit.Result) (int, bool) {
	if result == nil {
		return 0, false
	}
	return result.Size()
}
