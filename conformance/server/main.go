// Command server is the "everything server" that the official conformance suite tests: written with
// mcpkit's own annotations, as a user would write it. docs/howto/run-conformance.md says how to run
// the suite.
//
//	server -addr 127.0.0.1:3001   serves at http://127.0.0.1:3001/mcp, with HTTP+SSE of 2024-11-05 at /sse and WebSockets at /ws
//	server -stdio                 serves on standard input and output
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3001", "address to listen on")
	onStdio := flag.Bool("stdio", false, "serve on standard input and output instead")
	flag.Parse()

	srv, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	if *onStdio {
		err = srv.Serve(context.Background())
	} else {
		err = srv.Serve(context.Background(), endpoints{addr: *addr, onListen: func(a net.Addr) {
			log.Printf("serving on http://%s/mcp", a)
		}})
	}
	if err != nil {
		log.Fatal(err)
	}
}

// newServer serves every scenario on every protocol version.
func newServer() (*mcpkit.Server, error) {
	f := &Fixture{}
	srv, err := mcpkit.New(f, mcpkit.With(&Questions{}))
	if err != nil {
		return nil, err
	}
	f.srv = srv
	return srv, addRaw(srv)
}
