package metadata_test

import (
	"fmt"

	"github.com/mcpkit/mcpkit-go/oauth/metadata"
)

// The challenge of a 401 says where the metadata is, and which scopes are missing.
func ExampleParseChallenges() {
	challenges, err := metadata.ParseChallenges([]string{`Bearer resource_metadata="https://notes.example.com/.well-known/oauth-protected-resource/mcp", scope="notes:read"`})
	if err != nil {
		panic(err)
	}
	c := challenges[0]
	fmt.Println(c.Is("bearer"), c.Param("resource_metadata"), c.Scopes())
	// Output: true https://notes.example.com/.well-known/oauth-protected-resource/mcp [notes:read]
}

func ExampleProtectedResourceURLs() {
	urls, err := metadata.ProtectedResourceURLs("https://notes.example.com/mcp")
	fmt.Println(urls[0], err)
	// Output: https://notes.example.com/.well-known/oauth-protected-resource/mcp <nil>
}
