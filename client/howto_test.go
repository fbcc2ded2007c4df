package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// docs:begin first

// findTea asks a shop for tea.
func findTea(ctx context.Context, url string) ([]Hit, error) {
	c, err := client.Dial(ctx, url)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return client.Call[[]Hit](ctx, c, "search", SearchInput{Query: "tea"})
}

// docs:end first

// docs:begin list

// describe writes down what a server offers.
func describe(ctx context.Context, c *client.Client, w io.Writer) error {
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "tool %s\n", tool.Name)
	}
	for resource, err := range c.Resources(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "resource %s\n", resource.URI)
	}
	return nil
}

// docs:end list

// docs:begin bind

// ShopClient is a shop as Go functions.
type ShopClient struct {
	Search  func(ctx context.Context, in SearchInput) ([]Hit, error) `mcp:"search"`
	Tagline func(ctx context.Context) (string, error)                `mcp:"tagline"`
}

func newShopClient(c *client.Client) (*ShopClient, error) {
	s := new(ShopClient)
	return s, c.Bind(s)
}

// docs:end bind

// docs:begin handlers

// Terminal talks with the person who sits at it.
type Terminal struct {
	out    io.Writer
	fillIn func(form json.RawMessage) (content json.RawMessage, ok bool)
}

// Elicit shows what the server asks, and lets the user answer or decline.
func (t *Terminal) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	fmt.Fprintln(t.out, p.Message)
	content, ok := t.fillIn(p.RequestedSchema)
	if !ok {
		return &protocol.ElicitResult{Action: protocol.ElicitDecline}, nil
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: content}, nil
}

func dialFromTerminal(ctx context.Context, url string, t *Terminal) (*client.Client, error) {
	return client.Dial(ctx, url, client.Handlers(t))
}

// docs:end handlers

// docs:begin watch

// firstChange waits until a resource changes, and reads it.
func firstChange(ctx context.Context, c *client.Client, uri string, listening func()) (*protocol.ReadResourceResult, error) {
	s, err := c.Subscribe(ctx, uri)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	listening()
	if _, err := s.Next(ctx); err != nil {
		return nil, err
	}
	return c.ReadResource(ctx, uri)
}

// docs:end watch

// docs:begin command

// dialProgram starts a server and talks with it over its standard input and output.
func dialProgram(ctx context.Context, program, token string) (*client.Client, error) {
	server := client.Command(program, "-stdio")
	server.Env = []string{"SHOP_TOKEN=" + token} // of this process it gets PATH, HOME and the like, nothing secret
	return client.Dial(ctx, server, client.Timeout(10*time.Second))
}

// docs:end command

func TestHowToCodeWorks(t *testing.T) {
	ctx := t.Context()
	url := serveHTTP(t, shop(t))
	hits, err := findTea(ctx, url)
	require.NoError(t, err)
	require.Equal(t, "tea", hits[0].Title)

	var out testkit.Buffer
	c, err := dialFromTerminal(ctx, url, &Terminal{&out, func(form json.RawMessage) (json.RawMessage, bool) {
		if bytes.Contains(form, []byte("street")) {
			return json.RawMessage(`{"street":"Main St"}`), true
		}
		return json.RawMessage(`{"confirm":true}`), true
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = c.CallTool(ctx, "order", Hit{})
	require.NoError(t, err)
	require.Equal(t, "Where to?\nReally?\n", out.String())

	var offered bytes.Buffer
	require.NoError(t, describe(ctx, c, &offered))
	require.Contains(t, offered.String(), "tool search\n")
	require.Contains(t, offered.String(), "resource shop://hours\n")

	s, err := newShopClient(c)
	require.NoError(t, err)
	line, err := s.Tagline(ctx)
	require.NoError(t, err)
	require.Equal(t, "Everything must go.", line)

	_, err = s.Search(ctx, SearchInput{})
	require.EqualError(t, err, `tool "search": the query is empty`)

	r, err := firstChange(ctx, c, "shop://hours", func() {
		_, err := c.CallTool(ctx, "change", nil)
		require.NoError(t, err)
	})
	require.NoError(t, err)
	require.NotEmpty(t, r.Contents)

	_, err = dialProgram(ctx, "no-such-program-anywhere", "t")
	require.ErrorContains(t, err, "executable file not found")
}
