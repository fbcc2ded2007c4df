// Package publicnet tells public addresses from those inside of networks, for requests to URLs that
// others name.
package publicnet

import (
	"fmt"
	"net/netip"
	"syscall"
)

// notPublic lists the networks of the special-purpose address registries (RFC 6890) that the
// methods of netip.Addr do not recognize, including those that embed another address. For IPv6, they
// are those in global.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by carriers
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), // with Teredo, IPv4 inside
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // IPv4 inside
	netip.MustParsePrefix("3fff::/20"), // documentation
}

// global is where all public addresses of IPv6 are. What is outside is for special purposes, or has an
// IPv4 address inside.
var global = netip.MustParsePrefix("2000::/3")

// Check returns an error if the address is not public.
func Check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	public := ip.IsGlobalUnicast() && !ip.IsPrivate() && (ip.Is4() || global.Contains(ip))
	for _, network := range notPublic {
		public = public && !network.Contains(ip)
	}
	if !public {
		return fmt.Errorf("the address %s is not public", ip)
	}
	return nil
}

// Control returns a function for net.Dialer that checks the address that is dialled, after its name was
// resolved: it cannot change any more.
func Control(check func(netip.Addr) error) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("the address %q cannot be checked", address)
		}
		return check(addr.Addr())
	}
}
