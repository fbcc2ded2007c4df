// Package admission decides whose requests a server over HTTP takes when there are more than it
// can hold. Callers share what there is: a caller is a principal, or else a network address. Nobody
// else's share shrinks because one caller asks for more.
package admission

import (
	"container/heap"
	"container/list"
	"sync"
	"time"
)

// Places is a bounded number of places for things that last, such as sessions and connections. While there is
// room everyone gets a place. When there is none:
//
//   - a newcomer that would still hold fewer places than the caller with the most takes one of that caller's: an idle one,
//     or else a busy one;
//   - where the places are shared evenly it takes the one that was idle longest, of all callers that hold no fewer than its own.
//
// What nobody has used since it began goes first, then what was used longest ago. So a caller that only opens sessions or
// connections takes its own places away. Make one with [NewPlaces]. It is safe for concurrent use.
type Places struct {
	max   int
	spare time.Duration

	mu     sync.Mutex
	shares map[Key]*share // guarded by mu, as all below
	order  byWeight
	taken  int
}

// A Place is held by one thing. The zero value is ready to be taken.
type Place struct {
	// Busy reports whether the thing is in use in a way that [Places.Use] does not know; nil for never. It must not call
	// the Places.
	Busy func() bool

	// Value is whatever the holder wants to find again in a place that was evicted.
	Value any

	share *share // nil while the place is not taken; guarded by Places.mu, as all below
	elem  *list.Element
	uses  int
	fresh bool // nobody has used it since it was taken
	used  time.Time
}

// A share is what one caller holds.
type share struct {
	key    Key
	n      int
	index  int       // in the heap
	fresh  list.List // of *Place, the oldest first
	recent list.List // of *Place, the one that was used longest ago first
}

// NewPlaces returns so many places. Where they are shared evenly, a newcomer takes none that was used within the last spare.
func NewPlaces(max int, spare time.Duration) *Places {
	return &Places{max: max, spare: spare, shares: make(map[Key]*share)}
}

// Take gives p to a thing of the caller key. It reports false when there is no place; evicted is the place that was taken for it, which its
// holder has lost already, and nil for none.
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
	t.weigh(s, 1)
	return evicted, true
}

// victim returns the place that makes room for a newcomer of the caller key; nil for none. The caller holds mu.
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
	// The places are shared evenly: what was idle longest goes.
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

// before reports whether p goes before q.
func (p *Place) before(q *Place) bool {
	if p.fresh != q.fresh {
		return p.fresh
	}
	return p.used.Before(q.used)
}

// freshFor is how long a place that nobody has used yet is as good as one that is used, where others are until they were idle for
// longer.
const freshFor = 5 * time.Second

// idle returns the place that goes first of those that are not busy and were not used for d; nil for none.
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
			return nil // and so were those behind it
		}
		if p.isIdle() {
			return p
		}
	}
	return nil
}

func (p *Place) isIdle() bool { return p.uses == 0 && (p.Busy == nil || !p.Busy()) }

// first returns the place that goes first, busy or not.
func (s *share) first() *Place {
	if e := s.fresh.Front(); e != nil {
		return e.Value.(*Place)
	}
	return s.recent.Front().Value.(*Place)
}

// Use marks p as used, and busy until [Places.Release]. It reports false when p was lost.
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

// Release takes back one [Places.Use].
func (t *Places) Release(p *Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.uses--
	if p.share != nil {
		t.touch(p)
	}
}

// touch makes p the one of its share that was used last. The caller holds mu.
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

// Leave gives p back. It reports false when p was lost or left before.
func (t *Places) Leave(p *Place) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.share == nil {
		return false
	}
	t.remove(p)
	return true
}

// IdleFor returns the places that nothing used for d, and how long it is until the next one is; zero where there is none.
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

// remove takes p away. The caller holds mu.
func (t *Places) remove(p *Place) {
	s := p.share
	if p.fresh {
		s.fresh.Remove(p.elem)
	} else {
		s.recent.Remove(p.elem)
	}
	p.share, p.elem = nil, nil
	t.weigh(s, -1)
}

// weigh changes how many places s holds. The caller holds mu.
func (t *Places) weigh(s *share, by int) {
	s.n += by
	t.taken += by
	if s.n == 0 {
		heap.Remove(&t.order, s.index)
		delete(t.shares, s.key)
		return
	}
	heap.Fix(&t.order, s.index)
}

// byWeight is a heap of shares, the heaviest first.
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
