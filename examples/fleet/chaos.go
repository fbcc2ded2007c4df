package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A report counts what happened while replicas were killed.
type report struct {
	mu sync.Mutex

	Kills      int // replicas that were killed and started again
	Calls      int // calls of all clients
	Changes    int // changes that subscriptions were told of
	Reconnects int // of HTTP+SSE, whose stream is the connection
	Lost       int // HTTP responses that were in flight at a killed replica
	Cut        int // streams that the proxy cut, and clients resumed
	InFlight   int // failed calls that were in flight at a killed replica and may not run twice
	Duplicates int // orders that were written twice
	Missing    int // orders whose call succeeded and that were not written
	Deaf       int // subscriptions that were not told of the last change
	Old, Next  int // calls that a replica of each version of the program answered
	Unknown    int // calls of the tool of the next version that reached the other one
	Tasks      int // tasks that were completed
	Continued  int // of them: those that another replica went on with, after a run broke off
	Repeated   int // effects of tasks that were made again with their key, and left out
	GivenUp    int // tasks that failed, since their process ended three times while they ran
	LostTasks  int // tasks that did not end, or ended in another way
	Twice      int // effects of tasks that happened twice
	Undone     int // effects of completed tasks that did not happen
	Failed     []string
}

func (r *report) String() string {
	return fmt.Sprintf(`%d replicas were killed
%d calls; %d responses were in flight at a killed replica, %d streams were cut
%d calls failed that were in flight and may not run twice; %d reconnects of HTTP+SSE
%d changes were told
%d calls told of the program's old version, %d of the next; %d found that a tool is only in the next
%d tasks were completed, %d of them by another replica; %d effects were made again with the same key; %d were given up after three dead processes
%d calls failed for no reason
%d orders twice, %d orders missing, %d subscriptions deaf
%d tasks lost, %d effects of tasks twice, %d effects of tasks missing
`, r.Kills, r.Calls, r.Lost, r.Cut, r.InFlight, r.Reconnects, r.Changes, r.Old, r.Next, r.Unknown, r.Tasks, r.Continued, r.Repeated, r.GivenUp,
		len(r.Failed), r.Duplicates, r.Missing, r.Deaf, r.LostTasks, r.Twice, r.Undone)
}

// err returns what must not happen, or nil.
func (r *report) err() error {
	if len(r.Failed) == 0 && r.Duplicates+r.Missing+r.Deaf+r.LostTasks+r.Twice+r.Undone == 0 {
		return nil
	}
	return fmt.Errorf("clients noticed that replicas were killed:\n%s", strings.Join(r.Failed, "\n"))
}

func (r *report) add(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// chaos lets n clients of each version call the shop, and n clients of each version that has tasks
// run tasks, while one replica after the other is killed and started again, each of them after a
// pause. Each starts again as the other version of the program.
func chaos(ctx context.Context, s *shop, d time.Duration, n int, pause time.Duration) (*report, error) {
	r := &report{}
	var customers []*customer
	var all sync.WaitGroup
	stop := make(chan struct{})
	for _, v := range protocol.Supported {
		kinds := []string{"calls"}
		if v >= protocol.V20251125 {
			kinds = append(kinds, "tasks")
		}
		for i := range n * len(kinds) {
			kind := kinds[i%len(kinds)]
			c := &customer{shop: s, r: r, version: v, name: fmt.Sprintf("%s-%s-%d", v, kind, i), tasks: kind == "tasks", stop: stop}
			if err := c.connect(ctx); err != nil {
				return r, fmt.Errorf("%s: %w", c.name, err)
			}
			customers = append(customers, c)
			all.Go(func() { c.run(ctx) })
		}
	}
	err := s.killAll(ctx, r, d, pause)
	close(stop)
	all.Wait()
	for _, c := range customers {
		c.check(ctx)
	}
	if err == nil {
		err = lastChange(ctx, s, r, customers)
	}
	for _, c := range customers {
		c.close()
	}
	r.Lost, r.Cut = s.proxy.counts()
	r.Repeated = s.books.repeats()
	return r, errors.Join(err, r.err())
}

// killAll kills replicas and starts them again.
func (s *shop) killAll(ctx context.Context, r *report, d, pause time.Duration) error {
	for begun, i := time.Now(), 0; time.Since(begun) < d && ctx.Err() == nil; i++ {
		if err := s.killOne(ctx, i%len(s.replicas), pause); err != nil {
			return err
		}
		r.Kills++
	}
	return ctx.Err()
}

// killOne kills a replica after a pause, and starts it again as the other version of the program.
func (s *shop) killOne(ctx context.Context, i int, pause time.Duration) error {
	if err := sleep(ctx, pause+rand.N(pause)); err != nil {
		return err
	}
	if err := s.kill(i); err != nil {
		return err
	}
	if err := sleep(ctx, rand.N(pause)); err != nil {
		return err
	}
	s.next[i] = !s.next[i]
	return s.start(i)
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

// lastChange pins a note when all is quiet. Each subscription must be told.
func lastChange(ctx context.Context, s *shop, r *report, customers []*customer) error {
	before := make([]int, len(customers))
	for i, c := range customers {
		before[i] = c.told()
	}
	c := &customer{shop: s, r: r, version: protocol.Latest, name: "last"}
	if err := c.connect(ctx); err != nil {
		return err
	}
	defer c.close()
	if _, err := client.Call[string](ctx, c.client, "pin", map[string]string{"note": "last"}); err != nil {
		return err
	}
	deadline := time.Now().Add(40 * time.Second) // streams are opened again after up to 16 s
	for i, c := range customers {
		for c.told() == before[i] && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		if c.told() == before[i] {
			r.Deaf++
			r.Failed = append(r.Failed, c.name+": was not told of the last change")
		}
	}
	return nil
}

// A customer is a client of one version that makes one call after the other.
type customer struct {
	shop    *shop
	r       *report
	version protocol.Version
	name    string
	tasks   bool // it runs tasks, instead of calls
	stop    <-chan struct{}

	client  *client.Client
	changes *client.Subscription
	ended   chan struct{} // closed when changes has ended
	orders  int
	parcels []string // the IDs of all tasks
	ordered []string // the orders whose calls succeeded

	mu      sync.Mutex
	changed int // guarded by mu
}

// Elicit answers the questions of the desk.
func (c *customer) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	time.Sleep(rand.N(50 * time.Millisecond))
	content := `{"name":"red"}`
	if p.Message != "Which colour?" {
		content = `{"confirm":true}`
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(content)}, nil
}

// Sample is the model of the client.
func (c *customer) Sample(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	return &protocol.CreateMessageResult{Role: protocol.RoleAssistant, Model: "m", Content: protocol.SamplingContents{mcpkit.Text("cold")}}, nil
}

func (c *customer) overSSE() bool { return c.version == protocol.V20241105 }

func (c *customer) connect(ctx context.Context) error {
	opts := []client.DialOption{
		client.Version(c.version), client.Handlers(c), client.Tasks(), client.Header(headerClient, c.name), client.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))),
	}
	var target any = c.shop.url + "/mcp"
	switch {
	case c.overSSE():
		target = client.HTTPSSE(c.shop.url + "/sse")
	case !c.version.Modern():
		opts = append(opts, client.Header(headerCut, "yes"))
	}
	var err error
	if c.client, err = client.Dial(ctx, target, opts...); err != nil {
		return err
	}
	for _, err := range c.client.Tools(ctx) { // the client learns their hints
		if err != nil {
			return errors.Join(err, c.client.Close())
		}
	}
	if c.changes, err = c.client.Subscribe(ctx, boardURI); err != nil {
		return errors.Join(err, c.client.Close())
	}
	c.ended = make(chan struct{})
	// Ends with the subscription.
	go func() {
		defer close(c.ended)
		for _, err := range c.changes.All(ctx) {
			if err != nil {
				return
			}
			c.mu.Lock()
			c.changed++
			c.mu.Unlock()
			c.r.add(func() { c.r.Changes++ })
		}
	}()
	return nil
}

func (c *customer) told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *customer) close() {
	_ = c.changes.Close()
	_ = c.client.Close()
	<-c.ended
}

// run makes calls until stop is closed.
func (c *customer) run(ctx context.Context) {
	for {
		select {
		case <-c.stop:
			return
		case <-ctx.Done():
			return
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
		if c.tasks {
			c.deliver(ctx)
		} else if !c.call(ctx) && !c.reconnect(ctx) {
			return
		}
	}
}

// A kind of call says what a customer calls and what it expects.
type kind struct {
	tool  string
	args  any
	want  string
	risky bool // it may not run twice
}

func (c *customer) choose() kind {
	if rand.IntN(8) == 0 {
		// Only the next version of the program has it, so the client may not know its hints.
		return kind{tool: "hours", want: "nine to five", risky: true}
	}
	kinds := []kind{{tool: "where"}, {tool: "count", want: "5"}, {tool: "describe", args: map[string]string{"city": "Oslo"}, want: "cold"}}
	if c.version >= protocol.V20250618 {
		kinds = append(kinds, kind{tool: "colour", want: "red"})
	}
	c.orders++
	id := fmt.Sprintf("%s-%d", c.name, c.orders)
	kinds = append(kinds,
		kind{tool: "order", args: map[string]string{"id": id}, want: "ordered " + id, risky: true},
		kind{tool: "pin", args: map[string]string{"note": id}, want: "pinned " + id})
	return kinds[rand.IntN(len(kinds))]
}

// call makes one call. It returns false if the connection is over.
func (c *customer) call(ctx context.Context) bool {
	if rand.IntN(8) == 0 {
		return c.list(ctx)
	}
	k := c.choose()
	begun := time.Now()
	text, err := client.Call[string](ctx, c.client, k.tool, k.args)
	if ctx.Err() != nil {
		return true
	}
	c.r.add(func() { c.r.Calls++ })
	broke := c.wasInFlight(begun, err)
	over := errors.Is(err, transport.ErrClosed) && c.overSSE()
	switch {
	case err == nil && (k.want == "" || text == k.want):
		switch {
		case k.tool == "order":
			c.ordered = append(c.ordered, k.want[len("ordered "):])
		case k.tool == "where" && strings.HasSuffix(text, nextVersion):
			c.r.add(func() { c.r.Next++ })
		case k.tool == "where":
			c.r.add(func() { c.r.Old++ })
		}
	case err == nil:
		c.fail(k, fmt.Errorf("%q instead of %q", text, k.want))
	case k.tool == "hours" && isUnknownTool(err):
		c.r.add(func() { c.r.Unknown++ })
	case (k.risky || c.overSSE()) && broke, over:
		c.r.add(func() { c.r.InFlight++ })
	default:
		c.fail(k, fmt.Errorf("after %s (it was in flight: %t): %w", time.Since(begun).Round(time.Millisecond), broke, err))
	}
	return !over
}

// wasInFlight reports whether a request that began then, and failed with err, was in flight at a
// replica that was killed: the proxy lost a response to the customer, or had cut its stream before,
// so that another replica had to tell the customer.
func (c *customer) wasInFlight(begun time.Time, err error) bool {
	told := err != nil && strings.Contains(err.Error(), "the process that ran the request has ended")
	return c.shop.proxy.brokeSince(c.name, begun) || told && c.shop.killedSince(begun)
}

func (c *customer) fail(k kind, err error) {
	c.r.add(func() { c.r.Failed = append(c.r.Failed, fmt.Sprintf("%s: %s: %v", c.name, k.tool, err)) })
}

// reconnect opens another connection of HTTP+SSE.
func (c *customer) reconnect(ctx context.Context) bool {
	c.close()
	var err error
	for range 10 {
		if err = c.connect(ctx); err == nil {
			c.r.add(func() { c.r.Reconnects++ })
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.fail(kind{tool: "reconnect"}, err)
	return false
}

// check counts what the orders and tasks did, and reconnects if the connection is over.
func (c *customer) check(ctx context.Context) {
	for i := 1; i <= c.orders; i++ {
		if c.shop.books.count("order", fmt.Sprintf("%s-%d", c.name, i)) > 1 {
			c.r.Duplicates++
		}
	}
	for _, id := range c.ordered {
		if c.shop.books.count("order", id) == 0 {
			c.r.Missing++
		}
	}
	for _, id := range c.parcels {
		for _, effect := range effects {
			if c.shop.books.count(effect, id) > 1 {
				c.r.Twice++
			}
		}
	}
	if c.overSSE() && c.client.Ping(ctx) != nil {
		c.reconnect(ctx)
	}
}
