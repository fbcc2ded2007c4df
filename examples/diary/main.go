// Command diary is a server that requires a login, and a client that logs in to it.
//
//	diary -http 127.0.0.1:8080 -demo
//	diary -write "It rained." http://127.0.0.1:8080/mcp
//
// With -demo, the server also runs an authorization server that approves every login. Otherwise,
// -issuer names the authorization server, and -resource is the URL of the server for its clients.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "address to serve on")
	issuer := flag.String("issuer", "", "authorization server, such as https://login.example.com")
	resource := flag.String("resource", "", "URL of the server, such as https://diary.example.com/mcp")
	demo := flag.Bool("demo", false, "run an authorization server that approves every login")
	text := flag.String("write", "", "run as a client: write this text into the diary of the server named by the argument")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	err := func() error {
		if *text != "" {
			return runClient(ctx, flag.Arg(0), *text)
		}
		c := config{resource: *resource, issuer: *issuer, logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
		return runServer(ctx, c, *addr, *demo)
	}()
	if err != nil {
		log.Fatal(err)
	}
}

// runServer serves the diary. With -demo it also runs an authorization server.
func runServer(ctx context.Context, c config, addr string, demo bool) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	if demo {
		as, err := oauthtest.Start(&oauthtest.Options{Scopes: []string{"diary:read", "diary:write"}})
		if err != nil {
			return err
		}
		defer as.Close()
		c.issuer, c.resource, c.insecure = as.Issuer, "http://"+ln.Addr().String()+"/mcp", true
	}
	c.logger.Info("serving", "url", c.resource, "issuer", c.issuer)
	return serve(ctx, c, ln)
}

// runClient logs in and writes into the diary.
func runClient(ctx context.Context, url, text string) error {
	dir, err := os.UserConfigDir()
	if err != nil {
		return err
	}
	return connect(ctx, url, filepath.Join(dir, "mcpkit-diary"), oauthclient.Options{InsecureLoopback: true}, show, func(c *client.Client) error {
		return write(ctx, c, text, os.Stdout)
	})
}

// show prints the address of a page, in case this machine has no browser, and opens it.
func show(ctx context.Context, page string) error {
	fmt.Fprintln(os.Stderr, "log in at", page)
	_ = oauthclient.OpenBrowser(ctx, page)
	return nil
}
