package mcpkit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"sort"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

func listTools(_ context.Context, call *Call) (Result, error) {
	return call.list("tools", toolEntry)
}

func listPrompts(_ context.Context, call *Call) (Result, error) {
	return call.list("prompts", promptEntry)
}

func listResources(_ context.Context, call *Call) (Result, error) {
	return call.list("resources", resourceEntry)
}

func listTemplates(_ context.Context, call *Call) (Result, error) {
	return call.list("resourceTemplates", templateEntry)
}

// A listPage is the result of a list request, the JSON object for the version of the call.
type listPage json.RawMessage

// list answers a list request. The first page is made once if all callers get the same one. Other pages
// are not kept, so cursors that a client invents cost no memory.
func (call *Call) list(member string, k entryKind) (Result, error) {
	after, err := cursor(call)
	if err != nil {
		return nil, err
	}
	l := call.catalog.lists[k]
	if after != "" || l.personal || l.first == nil {
		return l.encode(call, member, after)
	}
	kept, about := &l.first[versionIndex(call.version)], call.server.about.Load()
	if first := kept.Load(); first != nil && first.about == about {
		return first.page, nil
	}
	page, err := l.encode(call, member, "")
	if err == nil {
		kept.Store(&firstPage{about, page})
	}
	return page, err
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
	if next != "" {
		b = append(b, `,"nextCursor":`...)
		b = jsonx.AppendString(b, encodeCursor(next))
	}
	if call.version.Modern() {
		hint, err := jsonx.Marshal(cacheHint(call.server.config.listTTL, l.personal))
		if err != nil {
			return nil, err
		}
		for name, value := range jsonx.Members(hint) {
			b = jsonx.AppendMember(b, name, value)
		}
		return listPage(call.server.appendCommon(b, false, nil)), nil
	}
	return append(b, '}'), nil
}

// page returns the entries after a key that the caller may see, as many as fit on a page, and the
// last key if there are more.
func (l list) page(call *Call, after string) (page []*entry, next string) {
	all, size := l.sorted, call.server.config.pageSize
	start := 0
	if after != "" {
		start = sort.Search(len(all), func(i int) bool { return all[i].key > after })
	}
	page = make([]*entry, 0, min(size, len(all)-start))
	for _, e := range all[start:] {
		if e.Hidden || !call.sees(e) {
			continue
		}
		if len(page) == size {
			return page, page[size-1].key
		}
		page = append(page, e)
	}
	return page, ""
}

// cursorPrefix begins each cursor. The rest is the key after which the page begins, so lists may
// change while a client paginates, and the server keeps no state.
const cursorPrefix = "after:"

func encodeCursor(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + key))
}

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
