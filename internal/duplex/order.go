package duplex

import "sync"

// order handles notifications one after the other, and starts requests, all in the order in which
// they came. A request starts when the notifications before it have returned, however long that
// takes. The exception is a notification whose handler asks the peer something and waits for the
// answer: the peer may want one of its requests answered first.
type order struct {
	link *Link

	mu      sync.Mutex
	queue   []*call // guarded by mu
	working bool    // a goroutine works off the queue; guarded by mu
}

// add handles c when it is its turn.
func (o *order) add(c *call) {
	o.mu.Lock()
	if !o.working && !c.req.IsNotification() {
		o.mu.Unlock()
		o.link.workers.run(c.serve)
		return
	}
	o.queue = append(o.queue, c)
	begin := !o.working
	o.working = true
	o.mu.Unlock()
	if begin {
		// Ends when the queue is empty.
		go o.work()
	}
}

// work works off the queue until it is empty or another goroutine took over.
func (o *order) work() {
	var current *call
	defer func() {
		if current != nil { // its handler ended this goroutine
			o.handOver(current)
		}
	}()
	for {
		c := o.next()
		if c == nil {
			return
		}
		if !c.req.IsNotification() {
			o.link.workers.run(c.serve)
			continue
		}
		current = c
		c.handle()
		current = nil
		if o.wentOn(c) {
			return
		}
	}
}

// next takes the next call from the queue; nil when there is none, which ends the work.
func (o *order) next() *call {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.working, o.queue = false, nil
		return nil
	}
	c := o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	return c
}

// wentOn reports whether another goroutine works off the queue since c was handed over.
func (o *order) wentOn(c *call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return c.left
}

// handOver lets another goroutine work off the queue, since the one that handles the notification c
// is about to wait for the peer, or ended.
func (o *order) handOver(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !c.left {
		c.left = true
		// Ends when the queue is empty.
		go o.work()
	}
}
