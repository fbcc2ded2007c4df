package oauthclient_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
)

// A program without a user gets a token for itself, at the first request that needs one.
func ExampleNew() {
	transport, err := oauthclient.New("https://notes.example.com/mcp", &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{
		Issuer: "https://login.example.com", ClientID: "reporter", ClientSecret: "from the environment",
	}}, nil)
	fmt.Println(err)
	defer transport.Close()
	dial := func(ctx context.Context) (*client.Client, error) {
		return client.Dial(ctx, "https://notes.example.com/mcp", client.HTTPClient(&http.Client{Transport: transport}))
	}
	_ = dial
	// Output: <nil>
}
