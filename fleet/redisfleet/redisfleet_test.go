package redisfleet_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/fleet/redisfleet"
	"github.com/mcpkit/mcpkit-go/internal/conformance/replicas"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

// kit returns stores with keys of their own in one server.
func kit(s *server) func(t testing.TB) fleettest.Store {
	return func(testing.TB) fleettest.Store {
		opts := &redisfleet.Options{Prefix: fmt.Sprint("kit", prefixes.Add(1))}
		return fleettest.Store{Open: func(t testing.TB) fleet.Engine {
			client := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket(), PoolSize: 10, ContextTimeoutEnabled: true})
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			e, err := redisfleet.New(client, opts)
			require.NoError(t, err)
			return e
		}}
	}
}

func TestEngine(t *testing.T) {
	fleettest.Run(t, kit(start(t)))
}

func TestReplicas(t *testing.T) {
	replicas.Run(t, kit(start(t)))
}

func TestMain(m *testing.M) {
	testkit.VerifyTestMain(m)
}

// A server is a redis-server that writes each change to the disk before it answers. It listens on
// a Unix socket.
type server struct {
	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd
	out  sync.WaitGroup
}

// start starts a server that ends with the test.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redis-server is missing")
		}
		t.Skip("redis-server is missing; make redis installs it on Debian")
	}
	dir, err := os.MkdirTemp("", "redis") // names of sockets are short
	require.NoError(t, err)
	s := &server{t: t, dir: dir, args: args}
	t.Cleanup(func() {
		s.kill()
		require.NoError(t, os.RemoveAll(dir))
	})
	s.run()
	return s
}

func (s *server) socket() string { return filepath.Join(s.dir, "s") }

// run starts the process and waits until it serves.
func (s *server) run() {
	s.t.Helper()
	args := []string{"--port", "0", "--unixsocket", s.socket(), "--dir", s.dir, "--appendonly", "yes", "--appendfsync", "always", "--save", ""}
	s.cmd = exec.Command("redis-server", append(args, s.args...)...)
	pipe, err := s.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	lines := bufio.NewScanner(pipe)
	var log []string
	for lines.Scan() {
		log = append(log, lines.Text())
		if strings.Contains(lines.Text(), "eady to accept connections at "+s.socket()) {
			s.out.Go(func() { _, _ = io.Copy(io.Discard, pipe) })
			return
		}
	}
	require.Fail(s.t, "redis-server does not start", strings.Join(log, "\n"))
}

// kill is kill -9.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	s.out.Wait()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// client returns a client that the test closes.
func (s *server) client(change ...func(o *redis.Options)) *redis.Client {
	opts := &redis.Options{Network: "unix", Addr: s.socket(), PoolSize: 20, ContextTimeoutEnabled: true}
	for _, c := range change {
		c(opts)
	}
	client := redis.NewClient(opts)
	s.t.Cleanup(func() { require.NoError(s.t, client.Close()) })
	return client
}

var prefixes atomic.Int64

// engine returns an engine with keys of its own.
func (s *server) engine(client redis.UniversalClient) *redisfleet.Engine {
	e, err := redisfleet.New(client, &redisfleet.Options{Prefix: fmt.Sprint("test", prefixes.Add(1))})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, e.Close()) })
	return e
}

// A proxy stands between clients and a server. It cuts connections, or hangs.
type proxy struct {
	t      testing.TB
	socket string
	listen net.Listener
	ended  sync.WaitGroup

	cut  atomic.Int64 // after so many more replies, connections are cut before the next; 0 for never
	cuts atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
	hang  chan struct{}     // closed when replies go on; nil if they do; guarded by mu
}

func newProxy(t testing.TB, s *server) *proxy {
	l, err := net.Listen("unix", filepath.Join(s.dir, fmt.Sprint("p", prefixes.Add(1))))
	require.NoError(t, err)
	p := &proxy{t: t, socket: s.socket(), listen: l, conns: map[net.Conn]bool{}}
	p.ended.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.ended.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		p.proceed()
		p.cutAll()
		p.ended.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listen.Addr().String() }

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.socket)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns[client] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		p.mu.Unlock()
	}()
	p.ended.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		hang := p.hang
		p.mu.Unlock()
		if hang != nil {
			<-hang
		}
		// The server has done what was asked, and the client does not learn of it.
		if p.cut.Load() > 0 && p.cut.Add(-1) == 0 {
			p.cuts.Add(1)
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cutAll cuts all connections.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// stop lets all replies wait until proceed.
func (p *proxy) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hang = make(chan struct{})
}

func (p *proxy) proceed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hang != nil {
		close(p.hang)
		p.hang = nil
	}
}
