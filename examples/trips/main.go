// Command trips has tools that ask the user questions, with the same code for every protocol
// version, and shows cities.
//
//	trips                serves standard input and output
//	trips -http ADDR     serves HTTP at http://ADDR/mcp
//	trips -photos FOLDER shows the photos in a folder, such as Oslo.jpg
//
// Clients may book as a task, which goes on when they disconnect. Its record is in memory.
//
// Several processes can serve the same clients if TRIPS_KEY holds the same key for all, 32 bytes in
// base64.
package main

import (
	"encoding/base64"
	"flag"
	"log"
	"os"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	addr := flag.String("http", "", "address to serve HTTP on, instead of stdio")
	photos := flag.String("photos", ".", "folder with a photo of each city")
	flag.Parse()
	opts := []mcpkit.Option{tasks.New(), mcpkit.With(NewAtlas(os.DirFS(*photos)))}
	if key := os.Getenv("TRIPS_KEY"); key != "" {
		secret, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			log.Fatalf("TRIPS_KEY: %v", err)
		}
		opts = append(opts, mcpkit.StateKeys(secret))
	}
	if *addr != "" {
		opts = append(opts, mcpkit.Over(streamable.Listen(*addr, nil)))
	}
	if err := mcpkit.Serve(&Trips{}, opts...); err != nil {
		log.Fatal(err)
	}
}
