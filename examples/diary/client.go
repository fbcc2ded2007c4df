package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
)

// docs:begin login

// connect logs the user in and calls use with a client of the server. Tokens stay in a folder for
// the next run.
func connect(ctx context.Context, url, dir string, opts oauthclient.Options, open func(ctx context.Context, page string) error, use func(*client.Client) error) error {
	store, err := oauthclient.NewFileStore(dir)
	if err != nil {
		return err
	}
	opts.Store = store
	grant := &oauthclient.AuthorizationCode{
		Name:    "Diary reader",
		Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: open}), // nil opens the user's browser
	}
	t, err := oauthclient.New(url, grant, &opts)
	if err != nil {
		return err
	}
	defer t.Close()
	// Log in before the first request, which would time out while the user types.
	if err := t.Login(ctx); err != nil {
		return err
	}
	c, err := client.Dial(ctx, url, client.HTTPClient(&http.Client{Transport: t}))
	if err != nil {
		return err
	}
	return errors.Join(use(c), c.Close())
}

// docs:end login

// docs:begin step-up

// write adds an entry and prints the diary. If the token has only the scope for reading, the first
// call starts a login for the other scope.
func write(ctx context.Context, c *client.Client, text string, out io.Writer) error {
	if _, err := c.CallTool(ctx, "write", map[string]any{"text": text}); err != nil {
		return err
	}
	entries, err := client.Call[[]Entry](ctx, c, "read", nil)
	if err != nil {
		return err
	}
	for _, e := range entries {
		fmt.Fprintf(out, "%s  %s\n", e.At.Format("2006-01-02 15:04"), e.Text)
	}
	return nil
}

// docs:end step-up
