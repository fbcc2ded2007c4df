// Package admission tells the callers of an HTTP server apart, counts the streams that each of them
// has open, and limits the bytes that all of them hold in memory.
package admission

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// Caller returns a text that identifies the caller of r: its principal, or else its [Address].
func Caller(r *http.Request, trusted []netip.Prefix) string {
	if p := oauth.FromContext(r.Context()); p != nil {
		return "principal " + p.Key()
	}
	return "address " + Address(r, trusted)
}

// Address returns the IPv4 address that r came from, or the first 64 bits of its IPv6 address, the
// smallest network that a site gets. Behind trusted proxies it is the nearest address in
// X-Forwarded-For that is not trusted. It is r.RemoteAddr if that is no IP address.
func Address(r *http.Request, trusted []netip.Prefix) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr := from.Addr().Unmap()
	if contains(trusted, addr) {
		hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
		for _, hop := range slices.Backward(hops) {
			before, ok := parse(strings.TrimSpace(hop))
			if !ok || !contains(trusted, addr) {
				break // a trusted proxy that passes on a malformed field counts as the caller
			}
			addr = before
		}
	}
	if addr.Is6() {
		addr = netip.PrefixFrom(addr.WithZone(""), 64).Masked().Addr()
	}
	return addr.String()
}

// parse parses an address with or without a port.
func parse(s string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Unmap(), true
	}
	ap, err := netip.ParseAddrPort(s)
	return ap.Addr().Unmap(), err == nil
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Streams counts the open streams of each caller. Set Max before it is used. It is safe for
// concurrent use.
type Streams struct {
	Max int // of one caller

	mu   sync.Mutex
	open map[string]int // by caller; guarded by mu
}

// Open counts one more stream of a caller until Close. It returns false if the caller has Max.
func (s *Streams) Open(caller string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[caller] >= s.Max {
		return false
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[caller]++
	return true
}

// Close undoes Open.
func (s *Streams) Close(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[caller]--; s.open[caller] == 0 {
		delete(s.open, caller)
	}
}

// Bytes limits the bytes in memory that all requests together have [Held]. Set Max before it is used.
// It is safe for concurrent use.
type Bytes struct {
	Max  int64
	held atomic.Int64
}

// Held is what one request has taken of All, if that is not nil. It is not safe for concurrent use.
type Held struct {
	All   *Bytes
	taken int64
}

// Take counts n more bytes until Close, or gives -n back. It returns false if that is too much; a
// single request may take more than Max.
func (h *Held) Take(n int64) bool {
	if h.All == nil || n == 0 {
		return true
	}
	if all := h.All.held.Add(n); n > 0 && all > h.All.Max && all > h.taken+n {
		h.All.held.Add(-n)
		return false
	}
	h.taken += n
	return true
}

// Close gives back everything.
func (h *Held) Close() {
	h.Take(-h.taken)
}
