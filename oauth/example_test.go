package oauth_test

import (
	"context"
	"fmt"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// What authenticates puts the principal into the context; methods get it as a parameter.
func ExampleNewContext() {
	ctx := oauth.NewContext(context.Background(), &oauth.Principal{
		Issuer: "https://login.example.com", Subject: "ann", Scopes: []string{"notes:read"},
	})
	p := oauth.FromContext(ctx)
	fmt.Println(p.Subject, p.Has("notes:read"), p.Has("notes:write"))
	// Output: ann true false
}
