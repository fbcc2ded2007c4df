// Command trips shows tools that ask the user while they work: each is one straight line on every revision.
//
//	trips              serves on standard input and output
//	trips -http ADDR serves over HTTP at http://ADDR/mcp
package main

import (
	"flag"
	"log"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	addr := flag.String("http", "", "address to serve HTTP on, instead of stdio")
	flag.Parse()
	var opts []mcpkit.Option
	if *addr != "" {
		opts = append(opts, mcpkit.Over(streamable.Listen(*addr, nil)))
	}
	if err := mcpkit.Serve(&Trips{}, opts...); err != nil {
		log.Fatal(err)
	}
}
