package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

var secret = []byte("a secret for tests, and for nothing else")

// startApp starts the app, and returns the URL of its server.
func startApp(t *testing.T) string {
	srv, err := mcpkit.New(NewNotes())
	if err != nil {
		t.Fatal(err)
	}
	app, handler := newApp(srv, secret)
	server := httptest.NewServer(app)
	t.Cleanup(server.Close)
	t.Cleanup(func() { handler.Close() })
	return server.URL + "/mcp"
}

func TestCallersWithATokenAreKnown(t *testing.T) {
	token, err := newToken("ann", secret)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), startApp(t), client.Header("Authorization", "Bearer "+token))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	name, err := client.Call[string](t.Context(), c, "whoami", nil)
	if err != nil || name != "ann" {
		t.Errorf("got %q and error %v, want ann", name, err)
	}
}

func TestCallersWithoutATokenAreRefused(t *testing.T) {
	_, err := client.Dial(t.Context(), startApp(t))
	var status *client.StatusError
	if !errors.As(err, &status) || status.Code != http.StatusUnauthorized {
		t.Errorf("got %v, want status 401", err)
	}
}
