package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
)

// A login is what the flags say of logging in.
type login struct {
	wanted bool
	tokens string // folder of what is kept; empty for the usual one
	quiet  bool   // only say where to go
	fixed  bool   // the user gives the Authorization header

	clientID, issuer string // of a registration that there is already
	port             int    // to come back to; 0 for any
	networks         []netip.Prefix
}

func (l *login) flags(flags *flag.FlagSet) {
	flags.BoolVar(&l.wanted, "login", false, "log in with the browser where the server wants that (OAuth 2.1); tokens are kept for the next time")
	l.storeFlags(flags)
	flags.BoolVar(&l.quiet, "no-browser", false, "open no browser: only write the pages to visit")
	flags.StringVar(&l.clientID, "client-id", "", "the `id` that the authorization server knows this program by, where it lets none register; needs -issuer")
	flags.StringVar(&l.issuer, "issuer", "", "the `URL` of the authorization server that -client-id, and "+secretVariable+" in the environment, are for; no other sees them")
	flags.IntVar(&l.port, "callback-port", 0, "the `port` of this machine that the browser comes back to; any when none is given")
	flags.Func("private-network", "a `network`, such as 10.0.0.0/8, in which authorization servers may be; may be repeated", func(s string) error {
		network, err := netip.ParsePrefix(s)
		l.networks = append(l.networks, network)
		return err
	})
}

// secretVariable is where the secret of -client-id is: arguments are seen by all users of a machine.
const secretVariable = "MCPKIT_CLIENT_SECRET"

// known are the registrations that there are already.
func (l *login) known() ([]oauthclient.Credentials, error) {
	switch {
	case l.clientID == "" && l.issuer == "":
		return nil, nil
	case l.clientID == "" || l.issuer == "":
		return nil, errors.New("-client-id and -issuer belong together")
	}
	return []oauthclient.Credentials{{Issuer: l.issuer, ClientID: l.clientID, ClientSecret: os.Getenv(secretVariable)}}, nil
}

func (l *login) storeFlags(flags *flag.FlagSet) {
	flags.StringVar(&l.tokens, "tokens", "", "the `folder` that tokens are kept in; mcpkit/tokens in the folder for settings of users when none is given")
}

// opener shows pages to the person at the terminal. Browse is the way to the browser; nil is that of the system.
func (l *login) opener(to *screen, browse func(ctx context.Context, page string) error) func(ctx context.Context, page string) error {
	if browse == nil {
		browse = oauthclient.OpenBrowser
	}
	return func(ctx context.Context, page string) error {
		to.printf("Go on in the browser, at\n%s\n", clean(page))
		if l.quiet {
			return nil
		}
		if err := browse(ctx, page); err != nil {
			to.printf("The browser does not open (%s); visit the page yourself.\n", clean(err.Error()))
		}
		return nil
	}
}

// transport makes the transport that logs in to the server and keeps what it gets.
func (l *login) transport(server string, open func(ctx context.Context, page string) error) (*oauthclient.Transport, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no http or https URL: there is nobody to log in to", server)
	}
	known, err := l.known()
	if err != nil {
		return nil, err
	}
	dir := l.tokens
	if dir == "" {
		settings, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("there is no folder for tokens (%w); name one by -tokens", err)
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
		// Whoever tries a server on this machine has its authorization server there as well.
		InsecureLoopback: isLoopback(u.Hostname()),
		PrivateNetworks:  l.networks,
	})
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// runLogout is the command logout.
func runLogout(ctx context.Context, args []string, std streams) int {
	out := newScreen(std.err)
	var l login
	flags := flag.NewFlagSet("logout", flag.ContinueOnError)
	l.storeFlags(flags)
	if code, ok := parse(flags, "logout [flags] URL\n\nRevokes and forgets the tokens that -login got for a server.\n", args, out); !ok {
		return code
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return exitUsage
	}
	t, err := l.transport(flags.Arg(0), nil)
	if err == nil {
		defer t.Close()
		err = t.Logout(ctx)
	}
	if err != nil {
		out.printf("mcpkit logout: %s\n", clean(err.Error()))
		return exitFault
	}
	return exitOK
}
