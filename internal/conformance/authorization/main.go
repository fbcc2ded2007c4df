// Command authorization runs the authorization server of package oauthtest, which the official
// conformance suite tests. See CONTRIBUTING.md.
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

	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// redirect is the redirect URI of the suite, which allows any port.
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
		// Offer one method only, or the suite chooses the one that it prefers.
		Metadata: func(doc map[string]any) { doc["token_endpoint_auth_methods_supported"] = []string{*auth} },
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving %s", as.Issuer)
	<-ctx.Done()
	as.Close()
}
