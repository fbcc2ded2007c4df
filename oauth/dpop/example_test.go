package dpop_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"

	"github.com/mcpkit/mcpkit-go/oauth/dpop"
)

// The client proves for each request that it has the key that the token is bound to.
func Example() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	prover, err := dpop.NewProver(key)
	if err != nil {
		panic(err)
	}
	proof, err := prover.Proof("POST", "https://notes.example.com/mcp", "the token", "")
	if err != nil {
		panic(err)
	}

	verifier, err := dpop.NewVerifier(dpop.Options{})
	if err != nil {
		panic(err)
	}
	request := dpop.Request{Verb: "POST", URL: "https://notes.example.com/mcp", Token: "the token", Thumbprint: prover.Thumbprint()}
	_, err = verifier.Verify(context.Background(), proof, request)
	fmt.Println(err)
	_, err = verifier.Verify(context.Background(), proof, request)
	fmt.Println(err != nil) // a proof is good for one request
	// Output:
	// <nil>
	// true
}
