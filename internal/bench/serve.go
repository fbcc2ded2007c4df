package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"
)

// A program is a server of the benchmark. Each of its functions is called at most once.
type program struct {
	memory func() answer // without a transport, in a session of 2025-11-25
	stdio  func() error
	http   func() http.Handler
	notify func() // tells the sessions that subscribed to work.URI that it changed
}

// An answer appends the response to a message to dst.
type answer func(dst, msg []byte) []byte

var programs = map[string]func(tools int) program{
	"floor": newFloor, "mcpkit": newMCPKit, "go-sdk": newGoSDK, "mcp-go": newMCPGo,
}

// beServer serves with an SDK until standard input ends. Unless it serves stdio, standard input has
// orders, each of which it answers with a figure.
func beServer(sdk, over string, tools int) error {
	newProgram := programs[sdk]
	if newProgram == nil {
		return fmt.Errorf("there is no SDK %q", sdk)
	}
	p := newProgram(tools)
	orders := bufio.NewScanner(os.Stdin)
	switch over {
	case "stdio":
		if err := p.stdio(); err != nil && err != io.EOF {
			return err
		}
	case "memory":
		return measureInMemory(p.memory(), orders)
	case "http":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(l.Addr())
		go func() { _ = http.Serve(l, p.http()) }() // ends with the process
		for orders.Scan() {
			switch orders.Text() {
			case "notify":
				p.notify()
				fmt.Println(0)
			case "heap":
				var m runtime.MemStats
				runtime.GC() // twice: what pools hold survives one
				runtime.GC()
				runtime.ReadMemStats(&m)
				fmt.Println(m.HeapAlloc)
			case "goroutines":
				fmt.Println(runtime.NumGoroutine())
			}
		}
	}
	return nil
}

// measureInMemory reads orders of a job and a time, and prints the CPU time of one request in
// microseconds.
func measureInMemory(f answer, orders *bufio.Scanner) error {
	f(nil, []byte(initialize))
	f(nil, []byte(initialized))
	for orders.Scan() {
		var i int
		var text string
		if _, err := fmt.Sscan(orders.Text(), &i, &text); err != nil {
			return err
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		msg, _ := jobs[i].body(false)
		out := f(nil, msg)
		if err := jobs[i].check(out); err != nil {
			return err
		}
		runtime.GC()
		from, err := cpuTime(os.Getpid())
		if err != nil {
			return err
		}
		n, now := 0, from
		for now-from < d {
			for range 16 {
				out = f(out[:0], msg)
			}
			n += 16
			if now, err = cpuTime(os.Getpid()); err != nil {
				return err
			}
		}
		fmt.Println(micros(now-from) / float64(n))
	}
	return nil
}

// overPipes returns a server on stdio as a function, for SDKs that can only be called with a
// transport.
func overPipes(serve func(r io.ReadCloser, w io.WriteCloser)) answer {
	in, w := io.Pipe()
	r, out := io.Pipe()
	go serve(in, out) // ends with the process
	lines := bufio.NewReaderSize(r, 8<<20)
	return func(dst, msg []byte) []byte {
		if _, err := w.Write(append(msg[:len(msg):len(msg)], '\n')); err != nil {
			return dst
		}
		if !bytes.Contains(msg[:min(len(msg), 40)], []byte(`"id"`)) {
			return dst
		}
		line, _ := lines.ReadSlice('\n')
		return append(dst, line...)
	}
}
