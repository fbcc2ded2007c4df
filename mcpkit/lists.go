package mcpkit

import (
	"context"
	"encoding/base64"
	"sort"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
)

func listTools(ctx context.Context, call *Call) (Result, error) {
	return listOf(ctx, call, "tools", call.catalog.tools)
}

func listPrompts(ctx context.Context, call *Call) (Result, error) {
	return listOf(ctx, call, "prompts", call.catalog.prompts)
}

func listResources(ctx context.Context, call *Call) (Result, error) {
	return listOf(ctx, call, "resources", call.catalog.resources)
}

func listTemplates(ctx context.Context, call *Call) (Result, error) {
	return listOf(ctx, call, "resourceTemplates", call.catalog.templates)
}

// pageKey identifies an encoded page of a registry.
type pageKey struct {
	version int
	after   string
	sight   uint64
}

// maxPersonalPages limits the cached pages that not all callers see, in bytes for each kind of
// list.
const maxPersonalPages = 16 << 20

// listOf answers a list request. Pages are encoded once for each change, version and sight, so
// callers that see the same share them.
func listOf[T item](ctx context.Context, call *Call, member string, r registry[T]) (Result, error) {
	after, err := cursor(call)
	if err != nil {
		return nil, err
	}
	refused := call.refusedGates(ctx)
	sight, kept := r.sight(call.principal, call.server.config.stepUp)
	view := r.read()
	kept = kept && refused == nil && view != nil
	key := pageKey{versionIndex(call.version), after, sight}
	if kept {
		if page, ok := view.pages.Load(key); ok {
			return page.(*listPage), nil
		}
	}
	shared := !r.personal && refused == nil
	page := encodePage(call, member, r, after, refused, shared)
	// Only cursors of this server are cached, so a client cannot fill the cache.
	if _, known := r.get(after); kept && (after == "" || known) {
		if shared || view.personal.Add(int64(len(page.object))) <= maxPersonalPages {
			view.pages.Store(key, page)
		}
	}
	return page, nil
}

// sight returns which demands of the registry p meets, as bits. known is false if there are too
// many demands.
func (r registry[T]) sight(p *oauth.Principal, stepUp bool) (sight uint64, known bool) {
	if len(r.demands) > 64 {
		return 0, false
	}
	for i, scopes := range r.demands {
		if e := (entry{scopes: scopes, stepUp: stepUp}); e.visible(p) {
			sight |= 1 << i
		}
	}
	return sight, true
}

func encodePage[T item](call *Call, member string, r registry[T], after string, refused map[gate]bool, shared bool) *listPage {
	s := call.server
	version := versionIndex(call.version)
	page, next := r.page(call.principal, after, s.config.pageSize, refused)
	b := append([]byte(nil), '{')
	b = jsonx.AppendString(b, member)
	b = append(b, ":["...)
	for i, it := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, it.base().wire.in(version)...)
	}
	b = append(b, ']')
	if next != "" {
		b = append(b, `,"nextCursor":`...)
		b = jsonx.AppendString(b, encodeCursor(next))
	}
	if call.version.Modern() {
		scope := "public"
		if !shared {
			scope = "private"
		}
		b = append(b, `,"ttlMs":`...)
		b = strconv.AppendInt(b, s.config.listTTL.Milliseconds(), 10)
		b = append(b, `,"cacheScope":"`+scope+`","resultType":"complete","_meta":`...)
		b = call.wire().appendMeta(b, nil)
	}
	return &listPage{append(b, '}')}
}

// page returns up to size entries after a key that p may see, and the last key if there are more.
// Entries behind refused gates are left out.
func (r registry[T]) page(p *oauth.Principal, after string, size int, refused map[gate]bool) (page []T, next string) {
	all := r.all()
	start := 0
	if after != "" {
		start = sort.Search(len(all), func(i int) bool { return all[i].base().key > after })
	}
	for _, it := range all[start:] {
		e := it.base()
		if e.hidden || !e.visible(p) || refused != nil && e.refusedBy(refused) {
			continue
		}
		if len(page) == size {
			return page, page[size-1].base().key
		}
		page = append(page, it)
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
