package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// books count what the replicas of the shop write. They are a service of its own, and not a replica.
// If hold is set, it is called before a line with a key is confirmed.
type books struct {
	mu    sync.Mutex
	lines map[string]int        // how often each line was written, by kind and ID; guarded by mu
	keys  map[string]bool       // those of the lines that have one; guarded by mu
	again int                   // lines that were left out, since their key was known; guarded by mu
	hold  func(r *http.Request) // guarded by mu
}

func newBooks() *books { return &books{lines: map[string]int{}, keys: map[string]bool{}} }

func (b *books) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.FormValue("key")
	b.write(r.FormValue("kind")+" "+r.FormValue("id"), key)
	if key != "" { // the replica may die before it knows that the line is written
		_ = sleep(r.Context(), mathrand.N(slowBooks))
		b.mu.Lock()
		hold := b.hold
		b.mu.Unlock()
		if hold != nil {
			hold(r)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// slowBooks is how long the books may take to confirm a line that has a key.
const slowBooks = 200 * time.Millisecond

func (b *books) write(line, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case key == "":
		b.lines[line]++
	case b.keys[key]:
		b.again++
	default:
		b.lines[line]++
		b.keys[key] = true
	}
}

func (b *books) repeats() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.again
}

func (b *books) count(kind, id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines[kind+" "+id]
}

// A shop is some replicas behind a proxy, with a store and the books.
type shop struct {
	proxy *proxy
	web   *http.Server
	url   string
	books *books
	env   []string

	replicas []*process
	next     []bool  // which replicas run the next version of the program
	killer   *killer // nil unless clients may let replicas be killed
	close    []func()

	mu     sync.Mutex
	killed time.Time // when a replica was last killed; guarded by mu
}

// A process is a replica that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// options of a shop.
type options struct {
	replicas int
	address  string // of the proxy
	store    string // URL of the store; "" to run redis-server
	kill     bool   // clients may let replicas be killed
}

// open starts replicas behind a proxy.
func open(ctx context.Context, o options) (s *shop, err error) {
	n, store := o.replicas, o.store
	s = &shop{proxy: newProxy(n), books: newBooks(), replicas: make([]*process, n), next: make([]bool, n)}
	opening := s
	defer func() {
		if err != nil {
			opening.Close()
		}
	}()
	listener, err := net.Listen("tcp", o.address) // first, since others may take the port
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, func() { _ = listener.Close() })
	if store == "" {
		address, end, err := startRedis(ctx)
		if err != nil {
			return nil, err
		}
		s.close = append(s.close, end)
		store = address
	}
	ledger := httptest.NewServer(s.books)
	s.close = append(s.close, ledger.Close)
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	s.env = append(os.Environ(), envStore+"="+store, envKey+"="+base64.StdEncoding.EncodeToString(key), envBooks+"="+ledger.URL)
	for i := range n {
		if err := s.start(i); err != nil {
			return nil, err
		}
	}
	s.url = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.Handle("/", s.proxy)
	if o.kill {
		s.killer = newKiller(s)
		mux.Handle("/kill", s.killer)
	}
	s.web = &http.Server{Handler: mux}
	// Ends when Close closes it.
	go func() { _ = s.web.Serve(listener) }()
	return s, nil
}

// startRedis runs redis-server in memory and returns its URL.
func startRedis(ctx context.Context) (address string, end func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	host := free.Addr().String()
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	_, port, _ := net.SplitHostPort(host)
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("install redis-server: %w", err)
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports the signal
	}
	for range 200 {
		conn, err := net.Dial("tcp", host)
		if err == nil {
			return "redis://" + host, end, conn.Close()
		}
		if ctx.Err() != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	end()
	return "", nil, errors.New("redis-server does not accept connections")
}

// start starts a replica and waits until it serves.
func (s *shop) start(i int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program)
	cmd.Env = append(s.env[:len(s.env):len(s.env)], fmt.Sprintf("%s=replica-%d", envReplica, i))
	if s.next[i] {
		cmd.Env = append(cmd.Env, envNext+"=yes")
	}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.replicas[i] = &process{cmd, stdin}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return errors.Join(fmt.Errorf("replica %d does not serve: %w", i, err), s.kill(i))
	}
	s.proxy.set(i, strings.TrimSpace(address))
	return nil
}

// kill ends a replica at once. The proxy is not told, as it would not be.
func (s *shop) kill(i int) error {
	p := s.replicas[i]
	if p == nil {
		return nil
	}
	s.replicas[i] = nil
	s.mu.Lock()
	s.killed = time.Now()
	s.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = p.cmd.Wait() // reports the signal
	_ = p.stdin.Close()
	return nil
}

// killedSince reports whether a replica was killed since then.
func (s *shop) killedSince(then time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed.After(then)
}

// Close ends everything.
func (s *shop) Close() {
	if s.web != nil {
		_ = s.web.Close()
	}
	if s.killer != nil {
		s.killer.close()
	}
	for i := range s.replicas {
		_ = s.kill(i)
		s.proxy.set(i, "")
	}
	for _, close := range s.close {
		close()
	}
}
