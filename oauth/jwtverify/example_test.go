package jwtverify_test

import (
	"context"
	"fmt"

	"github.com/mcpkit/mcpkit-go/oauth/jwtverify"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// A verifier accepts the access tokens of one issuer for one resource.
func ExampleNew() {
	as, err := oauthtest.Start(nil) // in production, your authorization server
	if err != nil {
		panic(err)
	}
	defer as.Close()
	resource := "https://notes.example.com/mcp"
	verifier, err := jwtverify.New(jwtverify.Options{
		Issuer: as.Issuer, Audience: []string{resource},
		Fetch: jwtverify.Fetch{InsecureLoopback: true, Client: as.Client()}, // only for this example
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	p, err := verifier.Verify(ctx, as.Token(oauthtest.Token{Subject: "ann", Audience: []string{resource}, Scopes: []string{"notes:read"}}))
	fmt.Println(p.Subject, p.Scopes, err)
	_, err = verifier.Verify(ctx, as.Token(oauthtest.Token{Subject: "ann", Audience: []string{"https://other.example.com"}}))
	fmt.Println(err != nil)
	// Output:
	// ann [notes:read] <nil>
	// true
}
