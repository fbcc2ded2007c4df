// Command login tests logins of mcpkit's client at a server built with another SDK, whose login
// pages approve at once. For each check it prints a line of tab-separated columns: "pass" or
// "FAIL", the check, and the reason of a failure.
//
//	login '{"url": "http://127.0.0.1:8080/mcp"}'
//	login serve ADDR PROGRAM    runs PROGRAM, a protected server, and an authorization server for it
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

type task struct {
	URL string `json:"url"`
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		if err := serveProtected(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var t task
	if len(os.Args) != 2 || json.Unmarshal([]byte(os.Args[1]), &t) != nil {
		fmt.Fprintln(os.Stderr, `usage: login '{"url": "http://..."}'`)
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if !scenario(ctx, t.URL) {
		os.Exit(1)
	}
}

// scenario logs in and calls the server. It reports whether all checks passed.
func scenario(ctx context.Context, url string) bool {
	logins := 0
	browser := oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: func(ctx context.Context, page string) error {
		logins++
		return oauthtest.Open(ctx, page)
	}})
	store := oauthclient.NewMemoryStore()
	run := func(use func(*oauthclient.Transport, *client.Client) error) error {
		t, err := oauthclient.New(url, &oauthclient.AuthorizationCode{Name: "interop", Browser: browser}, &oauthclient.Options{Store: store, InsecureLoopback: true})
		if err != nil {
			return err
		}
		c, err := client.Dial(ctx, url, client.HTTPClient(&http.Client{Transport: t}))
		if err != nil {
			return errors.Join(err, t.Close())
		}
		return errors.Join(use(t, c), c.Close(), t.Close())
	}
	var token *oauthclient.Token
	ok := check("a challenge leads to a login and a call", func() error {
		return run(func(t *oauthclient.Transport, c *client.Client) (err error) {
			if token, err = t.Token(ctx); err != nil {
				return err
			}
			greeting, err := client.Call[string](ctx, c, "greet", map[string]any{"name": "Ada"})
			if err != nil {
				return err
			}
			return expect("the greeting", greeting, "Hello, Ada!")
		})
	})
	ok = ok && check("what was asked for is what was given", func() error {
		return errors.Join(
			expect("logins", fmt.Sprint(logins), "1"),
			expect("the type", token.Type, "Bearer"),
			expect("the resource", token.Resource, url),
			expect("the scopes", strings.Join(token.Granted, " "), "mcp:tools"))
	})
	return check("the next run reuses the token", func() error {
		return run(func(_ *oauthclient.Transport, c *client.Client) error {
			if _, err := c.CallTool(ctx, "greet", map[string]any{"name": "Ada"}); err != nil {
				return err
			}
			return expect("logins", fmt.Sprint(logins), "1")
		})
	}) && ok
}

func expect(what, got, want string) error {
	if got != want {
		return fmt.Errorf("%s: got %q, want %q", what, got, want)
	}
	return nil
}

// check runs one check and prints its line.
func check(name string, run func() error) bool {
	if err := run(); err != nil {
		fmt.Printf("FAIL\t%s\t%s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		return false
	}
	fmt.Printf("pass\t%s\n", name)
	return true
}
