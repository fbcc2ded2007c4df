package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// maxItems limits the items of one list, over all pages.
//
//limit:client items of one list | an error: `items`
const maxItems = 100_000

// Tools yields the tools of the server, page by page. It ends after an error. On modern versions
// over HTTP, it omits tools whose schema declares invalid headers.
func (c *Client) Tools(ctx context.Context, opts ...CallOption) iter.Seq2[*protocol.Tool, error] {
	return pages(ctx, c, protocol.MethodToolsList, opts, func(r *protocol.ListToolsResult) ([]protocol.Tool, *string) {
		return r.Tools, r.NextCursor
	}, c.tools.learn)
}

// Prompts yields the prompts of the server, page by page. It ends after an error.
func (c *Client) Prompts(ctx context.Context, opts ...CallOption) iter.Seq2[*protocol.Prompt, error] {
	return pages(ctx, c, protocol.MethodPromptsList, opts, func(r *protocol.ListPromptsResult) ([]protocol.Prompt, *string) {
		return r.Prompts, r.NextCursor
	}, nil)
}

// Resources yields the resources of the server, page by page. It ends after an error.
func (c *Client) Resources(ctx context.Context, opts ...CallOption) iter.Seq2[*protocol.Resource, error] {
	return pages(ctx, c, protocol.MethodResourcesList, opts, func(r *protocol.ListResourcesResult) ([]protocol.Resource, *string) {
		return r.Resources, r.NextCursor
	}, nil)
}

// Templates yields the resource templates of the server, page by page. It ends after an error.
func (c *Client) Templates(ctx context.Context, opts ...CallOption) iter.Seq2[*protocol.ResourceTemplate, error] {
	return pages(ctx, c, protocol.MethodResourcesTemplatesList, opts, func(r *protocol.ListResourceTemplatesResult) ([]protocol.ResourceTemplate, *string) {
		return r.ResourceTemplates, r.NextCursor
	}, nil)
}

// pages yields the items of all pages of a list. If learn is not nil, pages yields what it returns
// for each page; first and last mark the first and the last page.
func pages[Page, Item any](ctx context.Context, c *Client, method string, opts []CallOption,
	open func(*Page) ([]Item, *string), learn func(c *Client, items []Item, first, last bool) []Item,
) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		seen := map[string]struct{}{}
		var cursor *string
		count, bytes := 0, 0
		for page := 0; ; page++ {
			if page == c.cfg.maxPages {
				yield(nil, fmt.Errorf("client: %s: the list has more than %d pages; raise MaxPages", method, page))
				return
			}
			p := new(Page)
			size, err := c.page(ctx, method, cursor, p, opts)
			if err != nil {
				yield(nil, err)
				return
			}
			if bytes += size; bytes > c.cfg.maxListBytes {
				yield(nil, fmt.Errorf("client: %s: the list is larger than %d bytes; raise MaxListBytes", method, c.cfg.maxListBytes))
				return
			}
			items, next := open(p)
			if count += len(items); count > maxItems {
				yield(nil, fmt.Errorf("client: %s: the list has more than %d items", method, maxItems))
				return
			}
			if learn != nil {
				items = learn(c, items, page == 0, next == nil)
			}
			for i := range items {
				if !yield(&items[i], nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if _, ok := seen[*next]; ok {
				yield(nil, fmt.Errorf("client: %w", invalid(method, "nextCursor leads back to an earlier page")))
				return
			}
			seen[*next] = struct{}{}
			cursor = next
		}
	}
}

// page requests one page of a list and returns its size in bytes.
func (c *Client) page(ctx context.Context, method string, cursor *string, into any, opts []CallOption) (int, error) {
	key := method + "\x00"
	if cursor != nil {
		key += "@" + *cursor
	}
	raw, err := c.do(ctx, request{method: method, params: &protocol.ListParams{Cursor: cursor}, reads: true, key: key}, opts)
	if err != nil {
		return 0, err
	}
	return len(raw), decodeResult(method, raw, into)
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
	return result, decodeResult(r.method, raw, result)
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
