package admission

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// A Key tells one caller from another. Each request makes one, so it is put together from what the request has, without
// allocations.
type Key struct {
	principal string     // empty for callers without one
	addr      netip.Addr // invalid for all others
	host      string     // an address that is not an IP address
}

// Caller returns the caller of r: its principal, or else the address that it came from.
func Caller(r *http.Request, trusted []netip.Prefix) Key {
	if p := oauth.FromContext(r.Context()); p != nil {
		return Key{principal: p.Key()}
	}
	return address(r, trusted)
}

// address returns the network that r came from: an IPv4 address, or the first 64 bits of an IPv6 address, which is the least that a
// site is given. Behind trusted proxies it is the address that the first of them saw, by X-Forwarded-For.
func address(r *http.Request, trusted []netip.Prefix) Key {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return Key{host: r.RemoteAddr} // of a listener that is no network's
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return Key{host: host}
	}
	addr = addr.Unmap()
	if len(trusted) > 0 {
		addr = behind(addr, r.Header["X-Forwarded-For"], trusted)
	}
	return Key{addr: network(addr)}
}

func network(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return addr
	}
	p, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return addr
	}
	return p.Addr()
}

// behind follows the addresses in front of trusted proxies, from the nearest on, up to the first that is not trusted.
func behind(addr netip.Addr, lines []string, trusted []netip.Prefix) netip.Addr {
	var hops []string
	for _, line := range lines {
		hops = append(hops, strings.Split(line, ",")...)
	}
	for _, hop := range slices.Backward(hops) {
		if !contains(trusted, addr) {
			break
		}
		before, ok := parse(strings.TrimSpace(hop))
		if !ok {
			break // a trusted proxy passed on what it did not write; it is its own caller
		}
		addr = before
	}
	return addr
}

// parse reads an address with or without a port.
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
