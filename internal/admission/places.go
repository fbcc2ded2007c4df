// Package admission decides which requests an HTTP server accepts when it has more than it can
// hold. It shares the capacity among callers, which are principals or else network addresses, so
// that one caller cannot take the share of another.
package admission

import (
	"container/heap"
	"container/list"
	"sync"
	"time"
)

// Places is a limited number of places for lasting things, such as sessions and connections. While
// places are free, every caller gets one. When none is free:
//
//   - If the new caller would still hold fewer places than the caller with the most, it evicts one
//     of that caller's: an idle one if possible, or else a busy one.
//   - If the places are shared evenly, it evicts the place that was idle longest, among the callers
//     that hold at least as many as the new caller.
//
// Places that were never used are evicted first, then the least recently used. So a caller that
// only opens sessions or connections evicts its own. Create Places with [NewPlaces]. It is safe for
// concurrent use.
type Places struct {
	max   int
	spare time.Duration

	mu     sync.Mutex
	shares map[Key]*share // guarded by mu, as all below
	order  byWeight
	taken  int
}

// A Place is held by one thing. The zero value is ready for [Places.Take].
type Place struct {
	// Busy reports whether the thing is in use besides [Places.Use]. Nil means never. It must not
	// call the Places.
	Busy func() bool

	// Value belongs to the holder, which finds it in an evicted place.
	Value any

	share *share // nil while the place is not taken; guarded by Places.mu, as all below
	elem  *list.Element
	uses  int
	fresh bool // it was not used since it was taken
	used  time.Time
}

// A share is the places of one caller.
type share struct {
	key    Key
	n      int
	index  int       // in Places.order
	fresh  list.List // of *Place, oldest first
	recent list.List // of *Place, least recently used first
}

// NewPlaces returns max places. When they are shared evenly, a place that was used within the last
// spare is not evicted.
func NewPlaces(max int, spare time.Duration) *Places {
	return &Places{max: max, spare: spare, shares: make(map[Key]*share)}
}

// Take gives p to the caller key. It returns false if there is no place. evicted is the place that
// p replaces, nil if none; its holder has already lost it.
func (t *Places) Take(p *Place, key Key) (evicted *Place, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken >= t.max {
		if evicted = t.victim(key); evicted == nil {
			return nil, false
		}
		t.remove(evicted)
	}
	s := t.shares[key]
	if s == nil {
		s = &share{key: key}
		t.shares[key] = s
		heap.Push(&t.order, s)
	}
	p.share, p.fresh, p.uses, p.used = s, true, 0, time.Now()
	p.elem = s.fresh.PushBack(p)
	t.addTo(s, 1)
	return evicted, true
}

// victim returns the place to evict for the caller key, or nil. The caller holds mu.
func (t *Places) victim(key Key) *Place {
	heaviest, holds := t.order[0], 0
	if own := t.shares[key]; own != nil {
		holds = own.n
	}
	if heaviest.n >= holds+2 {
		if p := heaviest.idle(0); p != nil {
			return p
		}
		return heaviest.first()
	}
	// The places are shared evenly: evict the place that was idle longest.
	var longest *Place
	for _, s := range t.shares {
		if s.n < max(holds, 1) {
			continue
		}
		if p := s.idle(t.spare); p != nil && (longest == nil || p.before(longest)) {
			longest = p
		}
	}
	return longest
}

// before reports whether p is evicted before q.
func (p *Place) before(q *Place) bool {
	if p.fresh != q.fresh {
		return p.fresh
	}
	return p.used.Before(q.used)
}

// freshFor is how long a place that was never used is protected, if used places are protected for
// longer.
const freshFor = 5 * time.Second

// idle returns the first place to evict among those that are not busy and were not used for d, or
// nil.
func (s *share) idle(d time.Duration) *Place {
	if p := firstIdle(&s.fresh, min(d, freshFor)); p != nil {
		return p
	}
	return firstIdle(&s.recent, d)
}

func firstIdle(l *list.List, d time.Duration) *Place {
	for e := l.Front(); e != nil; e = e.Next() {
		p := e.Value.(*Place)
		if time.Since(p.used) < d {
			return nil // and so were the rest
		}
		if p.isIdle() {
			return p
		}
	}
	return nil
}

func (p *Place) isIdle() bool { return p.uses == 0 && (p.Busy == nil || !p.Busy()) }

// first returns the first place to evict, busy or not.
func (s *share) first() *Place {
	if e := s.fresh.Front(); e != nil {
		return e.Value.(*Place)
	}
	return s.recent.Front().Value.(*Place)
}

// Use marks p as used, and as busy until [Places.Release]. It returns false if p was evicted.
func (t *Places) Use(p *Place) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.share == nil {
		return false
	}
	p.uses++
	t.touch(p)
	return true
}

// Release undoes one [Places.Use].
func (t *Places) Release(p *Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.uses--
	if p.share != nil {
		t.touch(p)
	}
}

// touch makes p the most recently used place of its share. The caller holds mu.
func (t *Places) touch(p *Place) {
	p.used = time.Now()
	if !p.fresh {
		p.share.recent.MoveToBack(p.elem)
		return
	}
	p.share.fresh.Remove(p.elem)
	p.fresh = false
	p.elem = p.share.recent.PushBack(p)
}

// Leave gives up p. It returns false if p was evicted or given up before.
func (t *Places) Leave(p *Place) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.share == nil {
		return false
	}
	t.remove(p)
	return true
}

// IdleFor returns the places that were not used for d, and the time until the next place may be;
// zero if there is none.
func (t *Places) IdleFor(d time.Duration) (idle []*Place, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, s := range t.shares {
		for _, l := range []*list.List{&s.fresh, &s.recent} {
			for e := l.Front(); e != nil; e = e.Next() {
				p := e.Value.(*Place)
				rest := d - now.Sub(p.used)
				if !p.isIdle() {
					rest = d
				} else if rest <= 0 {
					idle = append(idle, p)
					continue
				}
				if next == 0 || rest < next {
					next = rest
				}
			}
		}
	}
	return idle, next
}

// remove removes p. The caller holds mu.
func (t *Places) remove(p *Place) {
	s := p.share
	if p.fresh {
		s.fresh.Remove(p.elem)
	} else {
		s.recent.Remove(p.elem)
	}
	p.share, p.elem = nil, nil
	t.addTo(s, -1)
}

// addTo changes how many places s holds. The caller holds mu.
func (t *Places) addTo(s *share, by int) {
	s.n += by
	t.taken += by
	if s.n == 0 {
		heap.Remove(&t.order, s.index)
		delete(t.shares, s.key)
		return
	}
	heap.Fix(&t.order, s.index)
}

// byWeight is a heap of shares, the largest first.
type byWeight []*share

func (h byWeight) Len() int           { return len(h) }
func (h byWeight) Less(i, j int) bool { return h[i].n > h[j].n }
func (h byWeight) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *byWeight) Push(x any) {
	s := x.(*share)
	s.index = len(*h)
	*h = append(*h, s)
}
func (h *byWeight) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}
