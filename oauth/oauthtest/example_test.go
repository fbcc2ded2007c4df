package oauthtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/jwtverify"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resourceserver"
)

// An authorization server, a protected server and a client that logs in, in one program.
func Example() {
	as, err := oauthtest.Start(&oauthtest.Options{Consent: func(a *oauthtest.Authorization) error {
		fmt.Printf("%s wants %q\n", a.ClientName, a.Scopes)
		a.Subject = "ada"
		return nil
	}})
	if err != nil {
		panic(err)
	}
	defer as.Close()

	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	resource := server.URL + "/mcp"
	verifier, err := jwtverify.New(jwtverify.Options{
		Issuer: as.Issuer, Audience: []string{resource}, Fetch: jwtverify.Fetch{InsecureLoopback: true, Client: as.Client()},
	})
	if err != nil {
		panic(err)
	}
	guard, err := resourceserver.New(resourceserver.Options{
		Resource: resource, AuthorizationServers: []string{as.Issuer}, Verifier: verifier, Scopes: []string{"notes:read"},
	})
	if err != nil {
		panic(err)
	}
	guard.Mount(mux)
	mux.Handle("/mcp", guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "Hello,", oauth.FromContext(r.Context()).Subject)
	})))

	browser := oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open})
	transport, err := oauthclient.New(resource, &oauthclient.AuthorizationCode{Name: "My program", Browser: browser},
		&oauthclient.Options{Base: as.Client().Transport, InsecureLoopback: true})
	if err != nil {
		panic(err)
	}
	defer transport.Close()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, resource, nil)
	if err != nil {
		panic(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(body))
	// Output:
	// My program wants ["notes:read"]
	// Hello, ada
}
