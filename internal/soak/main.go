// Command soak kills the replicas of a server with kill -9, one after the other, while clients of
// all versions call tools, answer questions, run durable tasks and listen. It fails if an effect
// that a client was told of is lost, an effect happens twice, a call returns something wrong or
// fails for no reason, a subscription goes deaf, or an event that was emitted does not arrive.
// Meanwhile people log in at replicas of a broker, which are killed in each request of a login. It
// fails if a person gets the login of another, loses one for no reason, or is not told what to do.
//
//	make soak SOAK=5m
//
// It runs redis-server, which the replicas share, three replicas, which are this program again, and
// a proxy in front of them. The proxy sends each request to the next replica, and cuts streams. The
// ledger, which stays alive, counts the effects.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol"
)

const (
	replicas  = 3
	killPause = 400 * time.Millisecond // between kills, and up to twice as long
	deafAfter = 40 * time.Second       // clients open their streams again after up to 16 s
)

// versions are those whose clients need no sticky routing.
var versions = []protocol.Version{protocol.V20250326, protocol.V20250618, protocol.V20251125, protocol.V20260728}

func main() {
	if os.Getenv(envName) != "" {
		if err := serveReplica(); err != nil {
			log.Fatal(err)
		}
		return
	}
	duration := flag.Duration("for", time.Minute, "how long replicas are killed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := soak(ctx, *duration)
	fmt.Print(r)
	if err := errors.Join(err, r.err()); err != nil {
		log.Fatal(err)
	}
}

// soak runs everything, and returns what happened.
func soak(ctx context.Context, d time.Duration) (*report, error) {
	r := &report{Struck: map[string]int{}}
	redisURL, end, err := startRedis(ctx)
	if err != nil {
		return r, err
	}
	defer end()
	cert, trusted, err := certificate()
	if err != nil {
		return r, err
	}
	defer os.Remove(trusted)
	bell, err := newListener(cert, r)
	if err != nil {
		return r, err
	}
	defer bell.web.Close()
	books := newLedger()
	ledger := httptest.NewServer(books)
	defer ledger.Close()
	f := newFleet(redisURL, ledger.URL, trusted)
	defer f.close()
	for i := range replicas {
		if err := f.start(ctx, i); err != nil {
			return r, err
		}
	}
	front := httptest.NewServer(f.proxy)
	defer front.Close()
	defer front.CloseClientConnections()

	var customers []*customer
	for _, v := range versions {
		for _, kind := range []string{"calls", "more-calls", "tasks", "more-tasks"} {
			tasks := strings.HasSuffix(kind, "tasks")
			if tasks && v < protocol.V20251125 {
				continue
			}
			name := fmt.Sprintf("%s-%s", v, kind)
			c := &customer{name: name, version: v, tasks: tasks, proxy: f.proxy, books: books, report: r}
			if err := c.connect(ctx, front.URL); err != nil {
				return r, fmt.Errorf("%s: %w", c.name, err)
			}
			defer c.close()
			customers = append(customers, c)
		}
	}
	var all sync.WaitGroup
	stop := make(chan struct{})
	if err := bell.start(ctx, front.URL, stop); err != nil {
		return r, fmt.Errorf("events: %w", err)
	}
	all.Go(func() {
		if err := logIn(ctx, stop, redisURL, r); err != nil {
			r.fail("logins: %v", err)
		}
	})
	all.Go(func() { bell.refuse(ctx, d/4, min(d/4, time.Minute)) })
	for _, c := range customers {
		all.Go(func() { c.run(ctx, stop) }) // ends when stop is closed
	}
	err = f.killFor(ctx, d, r)
	close(stop)
	all.Wait()
	if err == nil {
		err = lastChange(ctx, customers)
	}
	bell.end(ctx)
	r.Lost, r.Cut, r.Repeated = f.proxy.lost, f.proxy.cut, books.repeated
	for line, n := range books.lines {
		if n > 1 && !strings.HasPrefix(line, "run ") && !strings.HasPrefix(line, "note ") {
			r.fail("%s happened %d times", line, n)
		}
	}
	return r, err
}

// lastChange pins a note when nothing is killed any longer. Each subscription must be notified.
func lastChange(ctx context.Context, customers []*customer) error {
	before := make([]int64, len(customers))
	for i, c := range customers {
		before[i] = c.changes.Load()
	}
	if _, err := customers[0].callTool(ctx, "pin", "last"); err != nil {
		return err
	}
	deadline := time.Now().Add(deafAfter)
	for i, c := range customers {
		for c.changes.Load() == before[i] && time.Now().Before(deadline) && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if c.changes.Load() == before[i] {
			c.report.fail("%s was not notified of the last change", c.name)
		}
	}
	return ctx.Err()
}

// A report counts what happened. Its counters are written by [report.add].
type report struct {
	mu       sync.Mutex
	Kills    int // replicas that were killed and started again
	Calls    int // calls that succeeded
	Orders   int // of them, those with an effect
	Changes  int // notifications to subscriptions
	Renewed  int // subscriptions that their clients gave up, and opened again
	Lost     int // responses that were in flight at a killed replica
	Cut      int // streams that the proxy cut
	InFlight int // failed calls that were in flight at a killed replica and may not be repeated
	Tasks    int // tasks that were completed
	Moved    int // of them, those that another replica went on with
	Repeated int // effects of tasks that were asked for again with their key, and left out
	GivenUp  int // tasks that failed, since their process ended three times while they ran
	Rung     int // events that replicas said they had emitted
	Received int // webhooks, each ID once
	Again    int // webhooks whose ID had arrived

	Outage   time.Duration // for how long webhooks were refused
	Refused  int           // webhooks that were
	Held     int           // events of which they told
	Backlog  int           // events that had not arrived when it ended
	CaughtUp time.Duration // how long it then took until they had

	Logins int            // people who logged in
	Begun  int            // logins that began again, since a response was lost
	Struck map[string]int // requests of logins whose replica was killed, by leg

	failed []string
}

func (r *report) add(counter *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter++
}

func (r *report) strike(leg string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Struck[leg]++
}

// fail records what must not happen.
func (r *report) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

func (r *report) String() string {
	return fmt.Sprintf(`%d replicas were killed; %d responses were in flight at them; %d streams were cut
%d calls succeeded, %d of them with an effect; %d that may not be repeated failed with their replica
%d notifications reached subscriptions, of which %d were given up and opened again
%d tasks were completed, %d of them by another replica; %d effects were asked for again with their key
%d tasks were given up after their process ended three times
%d events were emitted, and arrived as %d webhooks and over a stream; %d webhooks came again with their ID
for %v, %d webhooks of %d events were refused; the %d events of this time arrived within %v
%d people logged in; %d of their logins began again, after their replica was killed in one of %v
`, r.Kills, r.Lost, r.Cut, r.Calls, r.Orders, r.InFlight, r.Changes, r.Renewed, r.Tasks, r.Moved, r.Repeated, r.GivenUp,
		r.Rung, r.Received, r.Again, r.Outage, r.Refused, r.Held, r.Backlog, r.CaughtUp.Round(time.Millisecond),
		r.Logins, r.Begun, r.Struck)
}

// err returns what must not have happened, or nil.
func (r *report) err() error {
	if len(r.failed) == 0 && r.Kills > 0 && r.Orders > 0 && r.Changes > 0 && r.Tasks > 0 && r.Rung > 0 && len(r.Struck) == len(legs) {
		return nil
	}
	return fmt.Errorf("%d faults:\n%s", len(r.failed), strings.Join(r.failed, "\n"))
}

// A fleet is the processes of the replicas, and the proxy in front of them.
type fleet struct {
	proxy *proxy
	env   []string
	procs [replicas]*exec.Cmd
}

func newFleet(redisURL, ledgerURL, trusted string) *fleet {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	env := append(os.Environ(), envStore+"="+redisURL, envLedger+"="+ledgerURL,
		envKey+"="+base64.StdEncoding.EncodeToString(key), "SSL_CERT_FILE="+trusted)
	return &fleet{proxy: newProxy(), env: env}
}

// start starts a replica and waits until it serves.
func (f *fleet) start(ctx context.Context, i int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(f.env[:len(f.env):len(f.env)], fmt.Sprintf("%s=%d", envName, i))
	cmd.Stderr = os.Stderr
	if _, err = cmd.StdinPipe(); err != nil { // the replica ends when this program does
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.procs[i] = cmd
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("replica %d does not serve: %w", i, err)
	}
	f.proxy.set(i, strings.TrimSpace(address))
	return nil
}

// keep starts a replica again when it ends, until ctx does.
func (f *fleet) keep(ctx context.Context, i int, r *report) {
	for {
		_ = f.procs[i].Wait() // reports the signal
		if ctx.Err() != nil {
			return
		}
		if err := f.start(ctx, i); err != nil && ctx.Err() == nil {
			r.fail("%v", err)
			return
		}
	}
}

// kill is kill -9. The proxy is not told.
func (f *fleet) kill(i int) {
	if cmd := f.procs[i]; cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports the signal
	}
}

// killFor kills one replica after the other and starts it again, for a time.
func (f *fleet) killFor(ctx context.Context, d time.Duration, r *report) error {
	for begun, i := time.Now(), 0; time.Since(begun) < d; i = (i + 1) % replicas {
		if err := sleep(ctx, killPause+mathrand.N(killPause)); err != nil {
			return err
		}
		f.kill(i)
		if err := sleep(ctx, mathrand.N(killPause)); err != nil {
			return err
		}
		if err := f.start(ctx, i); err != nil {
			return err
		}
		r.add(&r.Kills)
	}
	return nil
}

func (f *fleet) close() {
	for i := range f.procs {
		f.kill(i)
	}
}

// startRedis runs redis-server without a disk and returns its URL.
func startRedis(ctx context.Context) (url string, end func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := free.Addr().String()
	_ = free.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "")
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("install redis-server: %w", err)
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports the signal
	}
	for range 200 {
		if conn, err := net.Dial("tcp", address); err == nil {
			return "redis://" + address, end, conn.Close()
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			break
		}
	}
	end()
	return "", nil, errors.New("redis-server does not accept connections")
}

// sleep returns an error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A ledger counts what the replicas write. It ignores a line whose key it has seen.
type ledger struct {
	mu       sync.Mutex
	lines    map[string]int  // how often each line was written, by kind and ID; guarded by mu
	keys     map[string]bool // guarded by mu
	repeated int             // lines that were left out; guarded by mu
}

func newLedger() *ledger { return &ledger{lines: map[string]int{}, keys: map[string]bool{}} }

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line, _ := io.ReadAll(io.LimitReader(r.Body, 1024))
	l.write(string(line), r.Header.Get("Idempotency-Key"))
	// The replica may die before it knows that the line is written.
	_ = sleep(r.Context(), mathrand.N(100*time.Millisecond))
}

func (l *ledger) write(line, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key != "" && l.keys[key] {
		l.repeated++
		return
	}
	l.lines[line]++
	l.keys[key] = true
}

func (l *ledger) count(line string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[line]
}
