package resource_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

// The guard answers requests without a valid token with the place of the metadata, where clients
// learn how to log in.
func ExampleNew() {
	guard, err := resource.New(resource.Options{Issuer: "https://login.example.com", Resource: "https://notes.example.com/mcp"})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	guard.Mount(mux)                                       // the metadata
	mux.Handle("/mcp", guard.Wrap(http.NotFoundHandler())) // streamable.NewHandler(srv, nil)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("POST", "https://notes.example.com/mcp", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output: 401 Bearer resource_metadata="https://notes.example.com/.well-known/oauth-protected-resource/mcp"
}
