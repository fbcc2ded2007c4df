package boltfleet_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
)

// What is in the file is there after a restart.
func Example() {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "fleet.db")
	for range 2 {
		engine, err := boltfleet.Open(file, nil) // give it to mcpkit.Fleet
		if err != nil {
			log.Fatal(err)
		}
		_, err = engine.Create(context.Background(), "notes", fleet.Record{Key: "first", Data: []byte("hello"), TTL: time.Hour})
		fmt.Println(err)
		if err := engine.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// <nil>
	// fleet: there is such a record already
}
