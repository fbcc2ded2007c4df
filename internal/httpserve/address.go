package httpserve

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

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
