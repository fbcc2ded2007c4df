// Package program is the main function of the benchmark's servers. It is not part of package work,
// so that programs with one tool do not link net/http for it.
package program

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// A Program is a server of the benchmark.
type Program struct {
	HTTP   func(stateless bool) http.Handler
	Stdio  func() error
	Notify func() // tells the clients that subscribed to work.URI that it changed
}

// Main runs a server with a number of tools. With -http it serves on a loopback port and prints the
// address; then, for each line of its standard input, it notifies its clients ("notify") or prints
// the number of allocations, the bytes of its heap and the number of connections that it has
// accepted ("stats"), until the input ends. Otherwise it serves stdio.
func Main(build func(tools int) Program) {
	overHTTP := flag.Bool("http", false, "serve HTTP on a loopback port")
	stateless := flag.Bool("stateless", false, "serve legacy clients without sessions")
	certificate := flag.String("tls", "", "serve HTTPS, with HTTP/2, and write the certificate to this file")
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
	var conns atomic.Int64
	server := &http.Server{Handler: p.HTTP(*stateless), ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}}
	serve := server.Serve
	if *certificate != "" {
		if server.TLSConfig, err = selfSigned(*certificate); err != nil {
			log.Fatal(err)
		}
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	fmt.Println(l.Addr())
	// Ends with the process, which ends when the program that started it closes its standard input.
	go func() { _ = serve(l) }()
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
		fmt.Println(allocs, m.HeapAlloc, conns.Load())
	}
}

// selfSigned makes a certificate for this machine and writes it to a file.
func selfSigned(path string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, os.WriteFile(path, text, 0o600)
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
