package fleet

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
)

// MemoryOptions limits what an engine in memory keeps. The zero value is ready to use.
type MemoryOptions struct {
	MaxBytes int64 // of records and logs, with their indexes; zero means 512 MiB
}

// defaultMaxBytes is the default of [MemoryOptions].MaxBytes.
const defaultMaxBytes = 512 << 20

// NewMemory returns an engine in the memory of the process, which is lost with it. When it is full,
// it refuses what is new until something expires or is deleted.
func NewMemory(opts MemoryOptions) *Local {
	return NewLocal(new(memoryTable), cmp.Or(max(opts.MaxBytes, 0), defaultMaxBytes))
}

// A memoryTable is a [Table] in memory: sorted chunks of sorted pairs.
type memoryTable struct {
	mu     sync.Mutex
	chunks [][]pair // not empty; guarded by mu
	used   int64    // guarded by mu
}

type pair struct {
	key   string
	value []byte // not nil
}

const (
	maxChunk     = 512 // pairs
	pairOverhead = 64  // bytes, about
)

// find returns where a key is, or where it belongs.
func (m *memoryTable) find(key string) (chunk, place int, found bool) {
	// The last chunk that begins with this key or an earlier one.
	chunk = max(sort.Search(len(m.chunks), func(i int) bool { return m.chunks[i][0].key > key })-1, 0)
	if len(m.chunks) == 0 {
		return 0, 0, false
	}
	place, found = slices.BinarySearchFunc(m.chunks[chunk], key, func(p pair, key string) int { return cmp.Compare(p.key, key) })
	return chunk, place, found
}

// set stores a value, or removes the key if it is nil. It returns what the key had before.
func (m *memoryTable) set(key string, value []byte) (old []byte) {
	chunk, place, found := m.find(key)
	if found {
		old = m.chunks[chunk][place].value
		m.used -= int64(len(key) + len(old) + pairOverhead)
	}
	if value != nil {
		m.used += int64(len(key) + len(value) + pairOverhead)
	}
	switch {
	case found && value != nil:
		m.chunks[chunk][place].value = value
	case found:
		m.chunks[chunk] = slices.Delete(m.chunks[chunk], place, place+1)
		if len(m.chunks[chunk]) == 0 {
			m.chunks = slices.Delete(m.chunks, chunk, chunk+1)
		}
	case value != nil && len(m.chunks) == 0:
		m.chunks = [][]pair{{{key, value}}}
	case value != nil:
		all := slices.Insert(m.chunks[chunk], place, pair{key, value})
		m.chunks[chunk] = all
		if len(all) > maxChunk {
			m.chunks = slices.Insert(m.chunks, chunk+1, slices.Clone(all[maxChunk/2:]))
			m.chunks[chunk] = slices.Clip(slices.Delete(all, maxChunk/2, len(all)))
		}
	}
	return old
}

// View implements [Table].
func (m *memoryTable) View(read func(Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return read(&memoryTx{m: m})
}

// Update implements [Table].
func (m *memoryTable) Update(_ context.Context, change func(Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &memoryTx{m: m}
	err := change(t)
	if err != nil {
		for _, p := range slices.Backward(t.undo) {
			m.set(p.key, p.value)
		}
	}
	return err
}

// Close implements [Table].
func (m *memoryTable) Close() error { return nil }

// A memoryTx is a [Tx] of a memoryTable.
type memoryTx struct {
	m    *memoryTable
	undo []pair // what the keys had before
}

// Get implements [Tx].
func (t *memoryTx) Get(key []byte) []byte {
	chunk, place, found := t.m.find(string(key))
	if !found {
		return nil
	}
	return t.m.chunks[chunk][place].value
}

// Put implements [Tx].
func (t *memoryTx) Put(key, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	t.undo = append(t.undo, pair{string(key), t.m.set(string(key), value)})
	return nil
}

// Delete implements [Tx].
func (t *memoryTx) Delete(key []byte) error {
	t.undo = append(t.undo, pair{string(key), t.m.set(string(key), nil)})
	return nil
}

// Scan implements [Tx].
func (t *memoryTx) Scan(prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		chunk, place, _ := t.m.find(string(prefix) + string(from))
		for ; chunk < len(t.m.chunks); chunk, place = chunk+1, 0 {
			for _, p := range t.m.chunks[chunk][place:] {
				if !strings.HasPrefix(p.key, string(prefix)) || !yield([]byte(p.key), p.value) {
					return
				}
			}
		}
	}
}

// Used implements [Tx].
func (t *memoryTx) Used() int64 { return t.m.used }
