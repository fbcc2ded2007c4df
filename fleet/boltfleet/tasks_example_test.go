package boltfleet_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Hotels books rooms.
type Hotels struct {
	_ struct {
		Book mcpkit.Tool `task:"optional,durable"`
	}
}

// Book books a room.
func (*Hotels) Book() string { return "booked" }

// docs:begin durable

// newDurableServer returns a server whose tasks are in a file, which it closes with itself.
func newDurableServer(file string, key []byte) (*mcpkit.Server, error) {
	engine, err := boltfleet.Open(file, nil)
	if err != nil {
		return nil, err
	}
	return mcpkit.New(&Hotels{}, mcpkit.Name("hotels", "1.0.0"), mcpkit.StateKeys(key), mcpkit.Fleet(engine), tasks.New())
}

// docs:end durable

// A durable task goes on after a restart.
func Example_tasks() {
	dir, err := os.MkdirTemp("", "tasks")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	srv, err := newDurableServer(filepath.Join(dir, "tasks.db"), []byte("32 random bytes, from a secret..")) // the same at the next start
	if err != nil {
		log.Fatal(err)
	}
	if err := srv.Start(context.Background()); err != nil { // as Serve does
		log.Fatal(err)
	}
	fmt.Println(srv.Close())
	// Output: <nil>
}
