// Command server is the server that the official conformance suite tests. It uses mcpkit's
// annotations, as a user would. See CONTRIBUTING.md.
//
//	server -addr 127.0.0.1:3001   serves Streamable HTTP at http://127.0.0.1:3001/mcp, HTTP+SSE at
//	                              /sse and WebSocket at /ws
//	server -stdio                 serves standard input and output
package main

import (
	"context"
	"embed"
	"flag"
	"log"
	"net"
	"time"

	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
)

//go:embed skills
var skillFiles embed.FS

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

// newServer returns a server for all scenarios in all protocol versions.
func newServer() (*mcpkit.Server, error) {
	f := &Fixture{}
	srv, err := mcpkit.New(f, mcpkit.With(&Questions{}), mcpkit.With(&Jobs{}), mcpkit.RawSchemas(rawschema.Compile),
		skills.FS(skillFiles, skills.Dir("skills")), tasks.New(tasks.PollInterval(100*time.Millisecond)))
	if err != nil {
		return nil, err
	}
	f.srv = srv
	srv.Use(askFirst)
	return srv, addRaw(srv)
}
