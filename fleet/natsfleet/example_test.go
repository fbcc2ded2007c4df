package natsfleet_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet/natsserver"
)

// Two replicas share a server, which runs in this process here.
func Example() {
	server, err := natsserver.Start(context.Background(), natsserver.Options{}) // with Dir, it survives restarts
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	for range 2 {
		conn, err := server.Connect() // or nats.Connect(url, nats.MaxReconnects(-1))
		if err != nil {
			log.Fatal(err)
		}
		defer conn.Close()
		engine := natsfleet.New(conn, &natsfleet.Options{Memory: true}) // give it to mcpkit.Fleet
		defer engine.Close()
		_, err = engine.Create(context.Background(), "notes", fleet.Record{Key: "first", Data: []byte("hello"), TTL: time.Hour})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// fleet: there is such a record already
}
