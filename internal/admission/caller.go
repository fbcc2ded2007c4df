package admission

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// A Key identifies a caller. It allocates nothing, since each request creates one.
type Key struct {
	principal string     // empty if the caller has none
	addr      netip.Addr // invalid if the caller has a principal or another kind of address
	host      string     // an address that is not an IP address
}

// String returns a text that differs for each caller.
func (k Key) String() string {
	switch {
	case k.principal != "":
		return "principal " + k.principal
	case k.addr.IsValid():
		return "address " + k.addr.String()
	default:
		return "host " + k.host
	}
}

// Caller returns the caller of r: its principal, or else its address.
func Caller(r *http.Request, trusted []netip.Prefix) Key {
	if p := oauth.FromContext(r.Context()); p != nil {
		return Key{principal: p.Key()}
	}
	return address(r, trusted)
}

// address returns the IPv4 address that r came from, or the first 64 bits of its IPv6 address, the
// smallest network that a site gets. Behind trusted proxies it is the client address in
// X-Forwarded-For.
func address(r *http.Request, trusted []netip.Prefix) Key {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // the listener is not a TCP listener
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			return Key{host: host}
		}
		return Key{host: r.RemoteAddr}
	}
	addr := from.Addr().Unmap()
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

// behind returns the address of the client in front of the trusted proxies: the nearest address
// that is not trusted.
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
			break // a trusted proxy passed on a malformed field; the proxy counts as the caller
		}
		addr = before
	}
	return addr
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
