// Package program is the main function of the benchmark's servers. It is not part of package work,
// so that programs with one tool do not link net/http for it.
package program

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/mcpkit/mcpkit-go/bench/internal/work"
)

// A Program is a server of the benchmark.
type Program struct {
	HTTP   func(stateless bool) http.Handler
	Stdio  func() error
	Notify func() // tells the clients that subscribed to work.URI that it changed
}

// Main runs a server with a number of tools. With -http it serves on a loopback port and prints the
// address; then, for each line of its standard input, it notifies its clients ("notify") or prints
// the number of allocations and the bytes of its heap ("stats"), until the input ends. Otherwise it
// serves stdio.
func Main(build func(tools int) Program) {
	overHTTP := flag.Bool("http", false, "serve HTTP on a loopback port")
	stateless := flag.Bool("stateless", false, "serve legacy clients without sessions")
	tools := flag.Int("tools", len(work.Names), "the number of tools")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	defer ProfileTo(*profile)()
	p := build(*tools)
	if !*overHTTP {
		if err := p.Stdio(); err != nil && err != io.EOF {
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
	go func() { _ = http.Serve(l, p.HTTP(*stateless)) }()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "notify" {
			p.Notify()
			continue
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		allocs := m.Mallocs
		runtime.GC() // twice: what pools hold survives one
		runtime.GC()
		runtime.ReadMemStats(&m)
		fmt.Println(allocs, m.HeapAlloc)
	}
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
