// Command trips shows tools that ask the user while they work, in the same straight-line code on
// every protocol version.
//
//	trips              serves on standard input and output
//	trips -http ADDR   serves over HTTP at http://ADDR/mcp
//
// Several processes serve the same clients when they have the same key, 32 bytes in base64, in
// TRIPS_KEY.
package main

import (
	"encoding/base64"
	"flag"
	"log"
	"net"
	"os"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	addr := flag.String("http", "", "address to serve HTTP on, instead of stdio")
	flag.Parse()
	var opts []mcpkit.ServeOption
	if key := os.Getenv("TRIPS_KEY"); key != "" {
		secret, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			log.Fatalf("TRIPS_KEY: %v", err)
		}
		opts = append(opts, mcpkit.StateKeys(secret))
	}
	if *addr != "" {
		opts = append(opts, mcpkit.Over(streamable.Listen(*addr, &streamable.Options{
			OnListen: func(a net.Addr) { log.Printf("serving on http://%s/mcp", a) },
		})))
	}
	if err := mcpkit.Serve(&Trips{}, opts...); err != nil {
		log.Fatal(err)
	}
}
