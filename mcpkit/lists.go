package mcpkit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A listPage is the result of a list request, the JSON object for the version of the call.
type listPage json.RawMessage

// listed returns the handler of a list request. member is that of the result. The first page is made
// once for all callers that see the same. Other pages are not kept, so cursors that a client invents cost
// no memory.
func listed(member string, k entryKind) Handler {
	return func(_ context.Context, call *Call) (Result, error) {
		after, err := cursor(call)
		if err != nil {
			return nil, err
		}
		l := call.catalog.lists[k]
		selection, shared := call.selection(l)
		if after != "" || l.first == nil || !shared {
			return l.encode(call, member, after)
		}
		key, now := pageKey{call.version, call.server.about.Load(), selection}, time.Now()
		if page, ok := l.first.Get(key, now); ok {
			return page, nil
		}
		page, err := l.encode(call, member, "")
		if err == nil {
			l.first.Put(key, page, now.Add(limits.Forever))
		}
		return page, err
	}
}

// encode returns the page after a key for the version of the call.
func (l list) encode(call *Call, member, after string) (listPage, error) {
	page, next := l.page(call, after)
	b := append(jsonx.AppendString([]byte{'{'}, member), ":["...)
	for _, e := range page {
		definition, err := e.definition.in(call.version)
		if err != nil {
			return nil, err
		}
		b = append(jsonx.AppendComma(b), definition...)
	}
	b = append(b, ']')
	var rest struct {
		NextCursor string `json:"nextCursor,omitzero"`
		protocol.Cache
	}
	if next != "" {
		rest.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + next))
	}
	if call.version.Modern() {
		rest.Cache = cacheHint(call.server.config.listTTL, l.personal())
	}
	members, err := call.server.encode(rest, call.version)
	for name, value := range jsonx.Members(members) {
		b = jsonx.AppendMember(b, name, value)
	}
	return append(b, '}'), err
}

// page returns the entries after a key that the caller may see, as many as fit on a page, and the
// last key if there are more.
func (l list) page(call *Call, after string) (page []*entry, next string) {
	start, _ := l.find(after)
	for _, e := range l.sorted[start:] {
		if e.key == after || e.Hidden || !call.sees(e) {
			continue
		}
		if n := len(page); n > 0 && page[n-1].key == e.key { // calls of it are errors
			continue
		}
		if len(page) == call.server.config.pageSize {
			return page, page[len(page)-1].key
		}
		page = append(page, e)
	}
	return page, ""
}

// cursorPrefix begins each cursor. The rest is the key after which the page begins, so lists may
// change while a client paginates, and the server keeps no state.
const cursorPrefix = "after:"

// cursor returns the key of a list request's cursor. An empty string is not a cursor of this
// server.
func cursor(call *Call) (after string, err error) {
	raw := call.req.Param("cursor")
	if raw == nil || jsonx.Kind(raw) == 'n' {
		return "", nil
	}
	if jsonx.Kind(raw) != '"' {
		return "", invalidParams("cursor is not a string")
	}
	text := jsonx.String(raw)
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	key, ok := strings.CutPrefix(string(decoded), cursorPrefix)
	if err != nil || !ok || key == "" {
		return "", invalidParams("cursor %q is not one that this server gave", text)
	}
	return key, nil
}
