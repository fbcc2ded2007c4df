package client

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Limits of the cache.
const (
	maxCached      = 1000           // results in the cache
	maxCachedBytes = 64 << 20       // bytes of the cache
	maxTTL         = 24 * time.Hour // time that a result stays in the cache
)

// A cache stores results of modern servers for as long as the servers allow (2026-07-28,
// basic/caching). Private results are only for the authorization context that they were requested
// in. A key is the method and the parameters of the result. The zero value is empty.
type cache struct {
	off   bool
	owner func() (owner uint64, known bool) // the authorization context of new requests; nil if it never changes

	mu      sync.Mutex
	entries map[string]cached // guarded by mu
	bytes   int               // guarded by mu
	drops   uint64            // number of calls of drop; guarded by mu
}

type cached struct {
	raw     json.RawMessage
	until   time.Time
	private bool
	owner   uint64
}

// A cacheMark is the state of a cache, and its authorization context, before a request.
type cacheMark struct {
	drops, owner uint64
	known        bool // whether private results can be cached
}

// cacheable reports whether results may come from the cache: the server may look at the members of
// _meta, except those of trace contexts.
func (cc *callConfig) cacheable() bool {
	for name := range cc.meta {
		switch name {
		case protocol.MetaTraceParent, protocol.MetaTraceState, protocol.MetaBaggage:
		default:
			return false
		}
	}
	return true
}

// get returns the result of key if it is fresh.
func (k *cache) get(key string) (json.RawMessage, bool) {
	now := k.mark()
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.entries[key]
	if !ok || time.Now().Before(e.until) && (!e.private || now.known && e.owner == now.owner) {
		return e.raw, ok
	}
	k.remove(key)
	return nil, false
}

// mark returns the argument of put. Call it before sending the request: put does not store a result
// if drop was called in between, because the result may be older than the change, and no private
// result if the credentials changed in between.
func (k *cache) mark() cacheMark {
	m := cacheMark{known: true}
	if k.owner != nil {
		m.owner, m.known = k.owner()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	m.drops = k.drops
	return m
}

// put stores a result for its ttlMs.
func (k *cache) put(key string, raw json.RawMessage, mark cacheMark) {
	var ttl struct {
		TTLMs      float64 `json:"ttlMs"`
		CacheScope string  `json:"cacheScope"`
	}
	if k.off || jsonx.Unmarshal(raw, &ttl) != nil || !(ttl.TTLMs > 0) {
		return
	}
	keep := maxTTL
	if ms := float64(maxTTL / time.Millisecond); ttl.TTLMs < ms {
		keep = time.Duration(ttl.TTLMs * float64(time.Millisecond))
	}
	private, now := ttl.CacheScope != protocol.CachePublic, k.mark()
	if private && (!now.known || now.owner != mark.owner) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.drops != mark.drops || len(raw) > maxCachedBytes/4 {
		return
	}
	k.remove(key)
	for old := range k.entries { // evict in random order
		if len(k.entries) < maxCached && k.bytes+len(raw) <= maxCachedBytes {
			break
		}
		k.remove(old)
	}
	if k.entries == nil {
		k.entries = map[string]cached{}
	}
	k.entries[key] = cached{raw, time.Now().Add(keep), private, now.owner}
	k.bytes += len(raw)
}

// remove removes key. The caller holds mu.
func (k *cache) remove(key string) {
	k.bytes -= len(k.entries[key].raw)
	delete(k.entries, key)
}

// drop removes all keys with the prefix.
func (k *cache) drop(prefix string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drops++
	for key := range k.entries {
		if strings.HasPrefix(key, prefix) {
			k.remove(key)
		}
	}
}
