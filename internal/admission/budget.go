package admission

import "sync"

// A Budget limits an amount, such as calls in flight or bytes in memory, for each caller and in
// total. A caller may have at most as much as is left for everyone else, so something is always
// left for a new caller. A single item may exceed the limit of a caller. It is safe for concurrent
// use.
type Budget struct {
	caller, total int64

	mu    sync.Mutex
	spent map[Key]int64 // by caller, without zeros; guarded by mu
	sum   int64         // of spent; guarded by mu
}

// NewBudget returns a Budget with limits for each caller and in total.
func NewBudget(caller, total int64) *Budget {
	return &Budget{caller: caller, total: total, spent: make(map[Key]int64)}
}

// Spend spends n for the caller key. If that is too much, it spends nothing and returns false.
func (b *Budget) Spend(key Key, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	has, left := b.spent[key], b.total-b.sum
	if b.sum > 0 && n > left || has > 0 && has+n > min(b.caller, left) {
		return false
	}
	b.spent[key] = has + n
	b.sum += n
	return true
}

// Return returns n that the caller key has spent.
func (b *Budget) Return(key Key, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum -= n
	if b.spent[key] -= n; b.spent[key] == 0 {
		delete(b.spent, key)
	}
}

// Spent returns how much all callers have spent.
func (b *Budget) Spent() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}
