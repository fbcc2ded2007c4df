package duplex

import "sync"

// An order handles notifications one after the other and starts requests, in the order in which
// they arrived. A request starts after the notifications before it have returned, however long that
// takes. The exception is a notification whose handler sends a request to the peer: the peer may
// need the response to one of its requests first.
type order struct {
	link *Link

	mu      sync.Mutex
	queue   []*call // guarded by mu
	working bool    // a goroutine handles the queue; guarded by mu
}

// add queues c. It returns false if c is a request that starts at once.
func (o *order) add(c *call) (queued bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.working && !c.entry.Request.IsNotification() {
		return false
	}
	o.queue = append(o.queue, c)
	if !o.working {
		o.working = true
		// Ends when the queue is empty.
		go o.work()
	}
	return true
}

// work handles the queue until it is empty or another goroutine has taken over.
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
		if !c.entry.Request.IsNotification() {
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

// next takes the next call from the queue. It returns nil, and work ends, if the queue is empty.
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

// wentOn reports whether another goroutine has taken over the queue from c.
func (o *order) wentOn(c *call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return c.left
}

// handOver makes another goroutine handle the queue, because the notification c is about to wait
// for the peer or has ended its goroutine.
func (o *order) handOver(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !c.left {
		c.left = true
		// Ends when the queue is empty.
		go o.work()
	}
}
