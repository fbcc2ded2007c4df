package oauthtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
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
	target := server.URL + "/mcp"
	guard, err := resource.New(resource.Options{
		Issuer: as.Issuer, Resource: target, Scopes: []string{"notes:read"}, InsecureLoopback: true, Client: as.Client(),
	})
	if err != nil {
		panic(err)
	}
	guard.Mount(mux)
	mux.Handle("/mcp", guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "Hello,", oauth.FromContext(r.Context()).Subject)
	})))

	browser := oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open})
	transport, err := oauthclient.New(target, &oauthclient.AuthorizationCode{Name: "My program", Browser: browser},
		&oauthclient.Options{Base: as.Client().Transport, InsecureLoopback: true})
	if err != nil {
		panic(err)
	}
	defer transport.Close()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, target, nil)
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
