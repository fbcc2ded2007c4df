// Package ordered keeps what an engine of a fleet has in memory in the orders in which the engine
// returns it: by key in each group, by the time when it is due, and by expiry.
package ordered

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// An Index has items by key. It is not safe for concurrent use. Create one with [New].
type Index[T any] struct {
	items         map[string]*Item[T]
	groups        map[string]*group[T] // not empty
	due, expiring timers[T]
}

// An Item is what an index has for a key.
type Item[T any] struct {
	Key, Group   string // not to be changed
	Value        T
	place        int // in the group
	due, expires timer[T]
}

// A group is sorted when it is listed, since most groups are only counted.
type group[T any] struct {
	items  []*Item[T]
	sorted bool
}

// Expires returns when the item expires.
func (i *Item[T]) Expires() time.Time { return i.expires.at }

// New returns an empty index.
func New[T any]() *Index[T] {
	return &Index[T]{items: map[string]*Item[T]{}, groups: map[string]*group[T]{}}
}

// Get returns the item with the key, or nil.
func (x *Index[T]) Get(key string) *Item[T] { return x.items[key] }

// Count returns how many items a group has; "" counts all.
func (x *Index[T]) Count(group string) int {
	if group == "" {
		return len(x.items)
	}
	if g := x.groups[group]; g != nil {
		return len(g.items)
	}
	return 0
}

// Add adds an item, whose key is new. The group may be "".
func (x *Index[T]) Add(key, in string, value T) *Item[T] {
	i := &Item[T]{Key: key, Group: in, Value: value}
	i.due.of, i.expires.of = i, i
	x.items[key] = i
	if in != "" {
		g := x.groups[in]
		if g == nil {
			g = new(group[T])
			x.groups[in] = g
		}
		i.place = len(g.items)
		g.items, g.sorted = append(g.items, i), false
	}
	return i
}

// Schedule sets the times of an item. The zero time means never.
func (x *Index[T]) Schedule(i *Item[T], due, expires time.Time) {
	x.due.set(&i.due, due)
	x.expiring.set(&i.expires, expires)
}

// Remove removes an item of the index.
func (x *Index[T]) Remove(i *Item[T]) {
	x.Schedule(i, time.Time{}, time.Time{})
	delete(x.items, i.Key)
	g := x.groups[i.Group]
	if g == nil {
		return
	}
	last := len(g.items) - 1
	g.items[last].place = i.place
	g.items[i.place], g.items[last] = g.items[last], nil
	g.items, g.sorted = g.items[:last], g.sorted && i.place == last
	if last == 0 {
		delete(x.groups, i.Group)
	}
}

// Expire removes what has expired, and returns it.
func (x *Index[T]) Expire(now time.Time) []*Item[T] {
	var gone []*Item[T]
	for len(x.expiring) > 0 && !x.expiring[0].at.After(now) {
		i := x.expiring[0].of
		x.Remove(i)
		gone = append(gone, i)
	}
	return gone
}

// Due returns up to limit items that are due, those that have been due longest first.
func (x *Index[T]) Due(now time.Time, limit int) []*Item[T] {
	var all []*Item[T]
	for len(x.due) > 0 && !x.due[0].at.After(now) && len(all) < limit {
		all = append(all, heap.Pop(&x.due).(*timer[T]).of)
	}
	for _, i := range all {
		heap.Push(&x.due, &i.due)
	}
	return all
}

// List returns up to limit items of a group whose keys come after the given one, sorted by key.
func (x *Index[T]) List(group, after string, limit int) []*Item[T] {
	g := x.groups[group]
	if g == nil {
		return nil
	}
	if !g.sorted {
		slices.SortFunc(g.items, func(a, b *Item[T]) int { return cmp.Compare(a.Key, b.Key) })
		for place, i := range g.items {
			i.place = place
		}
		g.sorted = true
	}
	first, found := slices.BinarySearchFunc(g.items, after, func(i *Item[T], key string) int { return cmp.Compare(i.Key, key) })
	if found {
		first++
	}
	rest := g.items[first:]
	return slices.Clone(rest[:min(limit, len(rest))])
}

// A timer is in a heap, unless at is zero.
type timer[T any] struct {
	at    time.Time
	place int
	of    *Item[T]
}

// timers is a heap: the first is the earliest.
type timers[T any] []*timer[T]

// Len implements [heap.Interface].
func (h timers[T]) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h timers[T]) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

// Swap implements [heap.Interface].
func (h timers[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements [heap.Interface].
func (h *timers[T]) Push(x any) {
	t := x.(*timer[T])
	t.place = len(*h)
	*h = append(*h, t)
}

// Pop implements [heap.Interface].
func (h *timers[T]) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

// set moves the timer to a time; the zero time removes it.
func (h *timers[T]) set(t *timer[T], at time.Time) {
	was := t.at
	t.at = at
	switch {
	case was.IsZero() && !at.IsZero():
		heap.Push(h, t)
	case !was.IsZero() && at.IsZero():
		heap.Remove(h, t.place)
	case !was.IsZero():
		heap.Fix(h, t.place)
	}
}
