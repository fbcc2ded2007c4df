package admission

import "sync"

// A Budget limits an amount, such as calls in flight or bytes in memory, for each caller and in all. A caller may
// have at most as much as is left for everyone else, so there is always some left for a newcomer. A single thing may be larger than
// the limit of a caller. It is safe for concurrent use.
type Budget struct {
	caller, total int64

	mu    sync.Mutex
	spent map[Key]int64 // of each caller that has spent something; guarded by mu
	sum   int64         // of spent; guarded by mu
}

// NewBudget returns a Budget of so much for a caller and so much in all.
func NewBudget(caller, total int64) *Budget {
	return &Budget{caller: caller, total: total, spent: make(map[Key]int64)}
}

// Spend takes n for the caller key. It reports false, and takes nothing, when that is too much.
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

// Return gives back n that the caller key has spent.
func (b *Budget) Return(key Key, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum -= n
	if b.spent[key] -= n; b.spent[key] == 0 {
		delete(b.spent, key)
	}
}

// Spent is how much all callers have spent.
func (b *Budget) Spent() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}
