package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Limits of one list.
const (
	maxItems     = 100_000 // over all pages
	maxListBytes = 64 << 20
	maxPages     = 1000
)

// Tools yields the tools of the server, page by page. It ends after an error. On modern versions
// over HTTP, it omits tools whose schema declares invalid headers.
func (c *Client) Tools(ctx context.Context, opts ...CallOption) iter.Seq2[*protocol.Tool, error] {
	return list(ctx, c, protocol.MethodToolsList, "tools", opts, c.tools.learn)
}

// Prompts yields the prompts of the server, page by page. It ends after an error.
func (c *Client) Prompts(ctx context.Context, opts ...CallOption) iter.Seq2[*protocol.Prompt, error] {
	return list[protocol.Prompt](ctx, c, protocol.MethodPromptsList, "prompts", opts, nil)
}

// Resources yields the resources of the server, page by page. It ends after an error.
func (c *Client) Resources(ctx context.Context, opts ...CallOption) iter.Seq2[*protocol.Resource, error] {
	return list[protocol.Resource](ctx, c, protocol.MethodResourcesList, "resources", opts, nil)
}

// Templates yields the resource templates of the server, page by page. It ends after an error.
func (c *Client) Templates(ctx context.Context, opts ...CallOption) iter.Seq2[*protocol.ResourceTemplate, error] {
	return list[protocol.ResourceTemplate](ctx, c, protocol.MethodResourcesTemplatesList, "resourceTemplates", opts, nil)
}

// list yields the items of all pages of a list. If learn is not nil, list yields what it returns for
// each page.
func list[Item any](ctx context.Context, c *Client, method, member string, opts []CallOption, learn func(*Client, []Item) []Item) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		for page, err := range c.pages(ctx, method, member, nil, opts) {
			var items []Item
			if err == nil && page != nil {
				err = decodeResult(method, "", page, &items)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if learn != nil {
				items = learn(c, items)
			}
			for i := range items {
				if !yield(&items[i], nil) {
					return
				}
			}
		}
	}
}

// Items yields the items of a list as the server wrote them, page by page, until an error. Use it for
// lists of extensions: each result of the method has the items in the member, and nextCursor unless
// it is the last. Params must encode as a JSON object; nil means none. The items must not be changed.
func (c *Client) Items(ctx context.Context, method, member string, params any, opts ...CallOption) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for page, err := range c.pages(ctx, method, member, params, opts) {
			if err == nil && jsonx.Kind(page) != '[' {
				err = fmt.Errorf("client: %w", invalid(method, "it has no list %q", member))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if method == protocol.MethodToolsList {
				var tools []protocol.Tool
				if jsonx.Unmarshal(page, &tools) == nil {
					c.tools.learn(c, tools)
				}
			}
			for item := range jsonx.Elements(page) {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// pages yields the items of each page of a list as an array, nil if there is none. It ends after an
// error.
func (c *Client) pages(ctx context.Context, method, member string, params any, opts []CallOption) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		fail := func(format string, n int) { yield(nil, fmt.Errorf("client: %s: "+format, method, n)) }
		object, err := encodeParams(&request{method: method, params: params})
		if err != nil {
			yield(nil, err)
			return
		}
		r := request{method: method, params: rawObject(object), reads: true}
		if params == nil {
			r.key = method + "\x00"
		}
		seen := map[string]bool{}
		count, bytes := 0, 0
		for range maxPages {
			raw, err := c.do(ctx, r, opts)
			if err != nil {
				yield(nil, err)
				return
			}
			if bytes += len(raw); bytes > maxListBytes {
				fail("the list is larger than %d bytes", maxListBytes)
				return
			}
			items := jsonx.Member(raw, member)
			for range jsonx.Elements(items) {
				count++
			}
			if count > maxItems {
				fail("the list has more than %d items", maxItems)
				return
			}
			next := jsonx.Member(raw, "nextCursor")
			if !yield(items, nil) || jsonx.Kind(next) != '"' {
				return
			}
			cursor := jsonx.String(next)
			if seen[cursor] {
				yield(nil, fmt.Errorf("client: %w", invalid(method, "nextCursor leads back to an earlier page")))
				return
			}
			seen[cursor] = true
			r.params = rawObject(jsonx.With(object, "cursor", next))
			if r.key != "" {
				r.key = method + "\x00@" + cursor
			}
		}
		fail("the list has more than %d pages", maxPages)
	}
}

// GetPrompt returns the messages of a prompt.
func (c *Client) GetPrompt(ctx context.Context, name string, args map[string]string, opts ...CallOption) (*protocol.GetPromptResult, error) {
	return fetch[protocol.GetPromptResult](ctx, c, request{
		method: protocol.MethodPromptsGet, name: name, params: &protocol.GetPromptParams{Name: name, Arguments: args}, asks: true, reads: true,
	}, opts)
}

// fetch sends r and decodes the result.
func fetch[Result any](ctx context.Context, c *Client, r request, opts []CallOption) (*Result, error) {
	raw, err := c.do(ctx, r, opts)
	if err != nil {
		return nil, err
	}
	result := new(Result)
	return result, decodeResult(r.method, r.name, raw, result)
}

// ReadResource returns the contents of a resource. If the server reports that there is no such
// resource, as the specification says, [protocol.IsResourceNotFound] is true for the error.
func (c *Client) ReadResource(ctx context.Context, uri string, opts ...CallOption) (*protocol.ReadResourceResult, error) {
	return fetch[protocol.ReadResourceResult](ctx, c, request{
		method: protocol.MethodResourcesRead, name: uri, params: &protocol.ReadResourceParams{URI: uri}, asks: true, reads: true,
		key: protocol.MethodResourcesRead + "\x00" + uri,
	}, opts)
}

// Complete requests completions of an argument of a prompt or a resource template. Known holds the
// other arguments that already have a value.
func (c *Client) Complete(ctx context.Context, ref protocol.CompletionRef, argument, value string, known map[string]string, opts ...CallOption) (*protocol.Completion, error) {
	p := &protocol.CompleteParams{Ref: ref, Argument: protocol.CompletionArgument{Name: argument, Value: value}}
	if known != nil && c.Version() >= protocol.V20250618 {
		p.Context = &protocol.CompletionContext{Arguments: known}
	}
	r, err := fetch[protocol.CompleteResult](ctx, c, request{method: protocol.MethodCompletionComplete, params: p, reads: true}, opts)
	if err != nil {
		return nil, err
	}
	return &r.Completion, nil
}

// Ping checks that the server responds. Modern versions have no ping, so Ping sends server/discover
// to modern servers.
func (c *Client) Ping(ctx context.Context, opts ...CallOption) error {
	method := protocol.MethodPing
	if c.modern() {
		method = protocol.MethodDiscover
	}
	_, err := c.do(ctx, request{method: method, reads: true}, opts)
	return err
}

// SetLogLevel requests log messages of this level and above. It sends the level to legacy servers
// at once, and to modern servers with every later request. The messages go to the Log method of
// [Handlers]. Logging is deprecated since 2026-07-28.
func (c *Client) SetLogLevel(ctx context.Context, level protocol.LoggingLevel, opts ...CallOption) error {
	if !level.Valid() {
		return fmt.Errorf("client: SetLogLevel(%q): no such level", level)
	}
	c.logLevel.Store(&level)
	if c.modern() {
		return nil
	}
	_, err := c.do(ctx, request{method: protocol.MethodLoggingSetLevel, params: &protocol.SetLevelParams{Level: level}, reads: true}, opts)
	return err
}

// level returns the current log level, "" for none.
func (c *Client) level() protocol.LoggingLevel {
	if l := c.logLevel.Load(); l != nil {
		return *l
	}
	return c.cfg.logLevel
}
