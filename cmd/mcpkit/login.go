package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
)

// A login holds the flags for logging in.
type login struct {
	wanted bool
	logout bool
	tokens string // folder of what is kept; empty for the usual one
	quiet  bool   // only say where to go
	fixed  bool   // the user gives the Authorization header

	clientID, issuer string // of a registration that there is already
	port             int    // to come back to; 0 for any
	networks         []netip.Prefix
}

func (l *login) flags(flags *pflag.FlagSet) {
	flags.BoolVar(&l.wanted, "login", false, "log in with the browser if the server requires it (OAuth 2.1), and store the tokens")
	flags.BoolVar(&l.logout, "logout", false, "only revoke and delete the tokens that --login stored for the server")
	flags.StringVar(&l.tokens, "tokens", "", "the `folder` for tokens; default: mcpkit/tokens in the user's configuration folder")
	flags.BoolVar(&l.quiet, "no-browser", false, "open no browser; only print the pages to visit")
	flags.StringVar(&l.clientID, "client-id", "", "the client `ID` of this program, for authorization servers where it cannot register itself; needs --issuer")
	flags.StringVar(&l.issuer, "issuer", "", "the `URL` of the authorization server that --client-id, and "+secretVariable+" in the environment, are for; no other server receives them")
	flags.IntVar(&l.port, "callback-port", 0, "the `port` on this machine to which the browser returns; default: any free port")
	flags.Func("private-network", "a private `network`, such as 10.0.0.0/8, that may contain authorization servers; may be repeated", func(s string) error {
		network, err := netip.ParsePrefix(s)
		l.networks = append(l.networks, network)
		return err
	})
}

// secretVariable is the environment variable with the secret of --client-id. All users of a machine
// can see arguments.
const secretVariable = "MCPKIT_CLIENT_SECRET"

// known returns the credentials of --client-id.
func (l *login) known() ([]oauthclient.Credentials, error) {
	switch {
	case l.clientID == "" && l.issuer == "":
		return nil, nil
	case l.clientID == "" || l.issuer == "":
		return nil, errors.New("--client-id and --issuer need each other; write both or neither")
	}
	return []oauthclient.Credentials{{Issuer: l.issuer, ClientID: l.clientID, ClientSecret: os.Getenv(secretVariable)}}, nil
}

// opener returns a function that shows a page to the user: it prints the URL and opens it with
// browse. Nil means the system's browser.
func (l *login) opener(to *screen, browse func(ctx context.Context, page string) error) func(ctx context.Context, page string) error {
	if browse == nil {
		browse = oauthclient.OpenBrowser
	}
	return func(ctx context.Context, page string) error {
		to.printf("Continue in the browser:\n%s\n", clean(page))
		if l.quiet {
			return nil
		}
		if err := browse(ctx, page); err != nil {
			to.printf("The browser cannot be opened (%s); open the page yourself.\n", clean(err.Error()))
		}
		return nil
	}
}

// transport returns the HTTP transport that logs in to the server and stores the tokens.
func (l *login) transport(server string, open func(ctx context.Context, page string) error) (*oauthclient.Transport, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--login and --logout need a server at an http or https URL; %q is not one", server)
	}
	known, err := l.known()
	if err != nil {
		return nil, err
	}
	dir := l.tokens
	if dir == "" {
		settings, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("no folder for tokens: %w; write --tokens FOLDER", err)
		}
		dir = filepath.Join(settings, "mcpkit", "tokens")
	}
	store, err := oauthclient.NewFileStore(dir)
	if err != nil {
		return nil, err
	}
	return oauthclient.New(server, &oauthclient.AuthorizationCode{
		Name:    "mcpkit",
		Known:   known,
		Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Port: l.port, Open: open}),
	}, &oauthclient.Options{
		Store: store,
		// A server on this machine is a development server, whose authorization server may be here
		// too.
		InsecureLoopback: isLoopback(u.Hostname()),
		PrivateNetworks:  l.networks,
	})
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// forget revokes and deletes the stored tokens for the server.
func (l *login) forget(ctx context.Context, server string) error {
	t, err := l.transport(server, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Logout(ctx)
}
