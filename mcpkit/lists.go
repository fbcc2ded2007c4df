package mcpkit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A List is the result of a list request, such as tools/list, for middleware. Its items are those that
// the caller sees and that fit on the page.
type List struct {
	call   *Call
	of     list
	member string // of the result
	after  string // the key before the page
	keep   func(Entry) bool
}

// Items returns the items of the page, sorted by name.
func (l *List) Items() (items []Entry) {
	page, _ := l.page()
	for _, e := range page {
		items = append(items, Entry{e})
	}
	return items
}

// Keep returns the list with only the items for which keep returns true. It does not hide the others from
// calls, as [Visible] does.
func (l *List) Keep(keep func(Entry) bool) *List {
	kept, before := *l, l.keep
	kept.keep = func(e Entry) bool { return (before == nil || before(e)) && keep(e) }
	return &kept
}

// listed returns the handler of a list request. member is that of the result.
func listed(member string, k annotation.Kind) Handler {
	return func(_ context.Context, call *Call) (Result, error) {
		after, err := cursor(call)
		if err != nil {
			return nil, err
		}
		return &List{call: call, of: call.catalog.list(k), member: member, after: after}, nil
	}
}

// encoded returns the JSON object for the version of the call. The first page is made once for all
// callers that see the same. Other pages are not kept, so cursors that a client invents cost no memory.
func (l *List) encoded() (json.RawMessage, error) {
	selection, shared := l.call.selection(l.of)
	if l.after != "" || l.keep != nil || l.of.first == nil || !shared || len(selection) > maxSelection {
		return l.encode()
	}
	key, now := pageKey{l.call.version, l.call.server.about.Load(), selection}, time.Now()
	if page, ok := l.of.first.Get(key, now); ok {
		return page, nil
	}
	page, err := l.encode()
	if err == nil {
		l.of.first.Put(key, page, now.Add(limits.Forever))
	}
	return page, err
}

func (l *List) encode() (json.RawMessage, error) {
	page, next := l.page()
	b := append(jsonx.AppendString([]byte{'{'}, l.member), ":["...)
	for _, e := range page {
		definition, err := e.definition.in(l.call.version)
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
	if l.call.version.Modern() {
		rest.Cache = cacheHint(l.call.server.config.listTTL, l.keep != nil || l.of.personal())
	}
	members, err := l.call.server.encode(rest, l.call.version)
	for name, value := range jsonx.Members(members) {
		b = jsonx.AppendMember(b, name, value)
	}
	return append(b, '}'), err
}

// page returns the entries of the page, and the last key if there are more.
func (l *List) page() (page []*entry, next string) {
	start, _ := l.of.find(l.after)
	for _, e := range l.of.sorted[start:] {
		if e.key == l.after || e.Hidden || !l.call.sees(e) || l.keep != nil && !l.keep(Entry{e}) {
			continue
		}
		if n := len(page); n > 0 && page[n-1].key == e.key { // a variant
			if !l.call.holds(page[n-1]) {
				page[n-1] = e
			}
			continue
		}
		if len(page) == l.call.server.config.pageSize {
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
