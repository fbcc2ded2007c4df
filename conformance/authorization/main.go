// Command authorization is the authorization server that the official conformance suite tests: that
// of package oauthtest. docs/howto/run-conformance.md says how to run the suite.
//
//	authorization -addr 127.0.0.1:3002 -auth client_secret_post
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpkit/mcpkit-go/oauth/metadata"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// redirect is where users of the suite come back to, at whatever port.
const redirect = "http://127.0.0.1/callback"

func main() {
	addr := flag.String("addr", "127.0.0.1:3002", "address to listen on")
	auth := flag.String("auth", "none", "how clients authenticate")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	as, err := oauthtest.Start(&oauthtest.Options{
		Addr: *addr,
		Clients: []oauthtest.Client{
			{ID: "public", RedirectURIs: []string{redirect}},
			{ID: "confidential", Secret: "conformance-secret", RedirectURIs: []string{redirect}},
		},
		// The suite takes the method that it likes best of those that there are.
		Metadata: func(as *metadata.AuthorizationServer) { as.TokenEndpointAuthMethodsSupported = []string{*auth} },
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving %s", as.Issuer)
	<-ctx.Done()
	as.Close()
}
