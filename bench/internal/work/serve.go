package work

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
)

// Main runs a server. With -http it serves handler on a loopback port, prints the address, and
// returns when the standard input ends. Otherwise it serves stdio.
func Main(handler func() http.Handler, stdio func() error) {
	overHTTP := flag.Bool("http", false, "serve HTTP on a loopback port")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	defer ProfileTo(*profile)()
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
	// Ends with the process, which ends when the program that started it closes its standard input.
	go func() { _ = http.Serve(l, handler()) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// ProfileTo starts a CPU profile if path is not empty. It returns a function that stops it.
func ProfileTo(path string) func() {
	if path == "" {
		return func() {}
	}
	f, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		log.Fatal(err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}
}
