package taskbolt_test

import (
	"log"
	"os"
	"path/filepath"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/tasks"
	"github.com/mcpkit/mcpkit-go/tasks/taskbolt"
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

// newDurableServer returns a server whose tasks are in a file. Close the store after the server.
func newDurableServer(file string, key []byte) (*mcpkit.Server, *taskbolt.Store, error) {
	store, err := taskbolt.Open(file)
	if err != nil {
		return nil, nil, err
	}
	srv, err := mcpkit.New(&Hotels{}, mcpkit.StateKeys(key), tasks.New(tasks.StoreIn(store)))
	return srv, store, err
}

// docs:end durable

func Example() {
	dir, err := os.MkdirTemp("", "tasks")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	srv, store, err := newDurableServer(filepath.Join(dir, "tasks.db"), []byte("32 random bytes, from a secret..")) // the same at the next start
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	defer srv.Close()
	// Output:
}
