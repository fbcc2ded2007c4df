package main

import (
	"net/http/httptest"
	"testing"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func TestTheAppServesTheList(t *testing.T) {
	srv, err := mcpkit.New(&Todo{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(newApp(srv))
	defer server.Close()
	c, err := client.Dial(t.Context(), server.URL+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	items, err := client.Call[[]Item](t.Context(), c, "list", nil)
	if err != nil || len(items) != 0 {
		t.Errorf("got %v and error %v, want no items", items, err)
	}
}
