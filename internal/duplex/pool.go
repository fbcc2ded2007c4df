package duplex

import "sync"

// maxIdle is how many goroutines a pool keeps.
const maxIdle = 32

// A pool runs functions in goroutines. It keeps those that are done for the next functions, since
// the stack of a new goroutine has to grow first. The zero value is ready to use.
type pool struct {
	mu     sync.Mutex
	idle   []chan func() // each gives an idle goroutine its next function; the last one idled last; guarded by mu
	closed bool          // no goroutine is kept; guarded by mu
}

// run calls f in a goroutine.
func (p *pool) run(f func()) {
	p.mu.Lock()
	last := len(p.idle) - 1
	if last < 0 {
		p.mu.Unlock()
		// Ends when enough others are idle, or with the pool.
		go p.work(f)
		return
	}
	next := p.idle[last]
	p.idle = p.idle[:last]
	p.mu.Unlock()
	next <- f // it has room for one
}

// work calls f, and then other functions.
func (p *pool) work(f func()) {
	next := make(chan func(), 1)
	for f != nil {
		f()
		if !p.keep(next) {
			return
		}
		f = <-next // nil when the pool is closed
	}
}

// keep makes a goroutine idle. It returns false if enough are idle.
func (p *pool) keep(next chan func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdle {
		return false
	}
	p.idle = append(p.idle, next)
	return true
}

// close ends the idle goroutines. Functions that come later get new ones.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, next := range p.idle {
		close(next)
	}
	p.idle, p.closed = nil, true
}
