// Command fleet serves one MCP server from three processes behind a round-robin proxy.
//
//	fleet              serves http://127.0.0.1:8080/mcp, and HTTP+SSE at /sse
//	fleet -chaos 30s   kills the processes all the time, while clients of all versions call them
//	fleet -kill        serves, and lets clients of tests kill processes: see killer.go
//
// The processes share what clients need in redis-server, which this program runs. With
// -store redis://host:6379 it uses one that runs already.
//
// Kill a process with kill -9 while a client uses it: the client goes on. With -chaos and -kill, each
// process starts again as the other one of two versions of the program, as in a rolling deployment.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if os.Getenv(envReplica) != "" {
		runReplica()
		return
	}
	address := flag.String("http", "127.0.0.1:8080", "address of the proxy")
	replicas := flag.Int("replicas", 3, "number of replicas")
	store := flag.String("store", "", "URL of the store; by default this program runs redis-server")
	duration := flag.Duration("chaos", 0, "kill replicas for this time while clients call them")
	clients := flag.Int("clients", 2, "with -chaos: clients of each protocol version")
	kill := flag.Bool("kill", false, "let clients kill replicas with POST /kill?n=NUMBER")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *duration > 0 {
		*address = "127.0.0.1:0"
	}
	s, err := open(ctx, options{replicas: *replicas, address: *address, store: *store, kill: *kill})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if *duration == 0 {
		for i, p := range s.replicas {
			fmt.Printf("replica %d is process %d\n", i, p.cmd.Process.Pid)
		}
		fmt.Printf("serving %s/mcp and, for 2024-11-05, %s/sse\n", s.url, s.url)
		<-ctx.Done()
		return
	}
	r, err := chaos(ctx, s, *duration, *clients, 400*time.Millisecond)
	fmt.Print(r)
	if err != nil {
		s.Close()
		log.Fatal(err)
	}
}
