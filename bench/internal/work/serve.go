package work

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

// Main runs a contender: with -http it serves handler on a loopback port, whose address it prints, until its
// standard input ends; otherwise it serves on stdio.
func Main(handler func() http.Handler, stdio func() error) {
	overHTTP := flag.Bool("http", false, "serve HTTP on a loopback port")
	flag.Parse()
	if !*overHTTP {
		if err := stdio(); err != nil && err != io.EOF {
			log.Fatal(err)
		}
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	// Ends with the process, which ends when whoever started it does.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(http.Serve(l, handler()))
}
