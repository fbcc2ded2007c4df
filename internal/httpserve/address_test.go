package httpserve

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

func TestCaller(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, test := range []struct {
		name, remote, forwarded, want string
		trusted                       []netip.Prefix
		who                           *oauth.Principal
	}{
		{name: "principal", remote: "192.0.2.1:9", who: &oauth.Principal{Subject: "ann"}, want: "principal " + (&oauth.Principal{Subject: "ann"}).Key()},
		{name: "address", remote: "192.0.2.1:9", want: "address 192.0.2.1"},
		{name: "IPv4 in IPv6", remote: "[::ffff:192.0.2.1]:9", want: "address 192.0.2.1"},
		{name: "IPv6", remote: "[2001:db8:1:2:3:4:5:6]:9", want: "address 2001:db8:1:2::"},
		{name: "IPv6 with a zone", remote: "[fe80::1%eth0]:9", want: "address fe80::"},
		{name: "no network", remote: "@", want: "address @"},
		{name: "nobody is trusted", remote: "10.0.0.1:9", forwarded: "192.0.2.1", want: "address 10.0.0.1"},
		{name: "a proxy", remote: "10.0.0.1:9", forwarded: "192.0.2.1", trusted: trusted, want: "address 192.0.2.1"},
		{name: "a proxy that names ports", remote: "10.0.0.1:9", forwarded: "192.0.2.1:1234", trusted: trusted, want: "address 192.0.2.1"},
		{name: "two proxies", remote: "10.0.0.1:9", forwarded: "192.0.2.1, 10.0.0.2", trusted: trusted, want: "address 192.0.2.1"},
		{name: "made up in front", remote: "10.0.0.1:9", forwarded: "198.51.100.7, 192.0.2.1", trusted: trusted, want: "address 192.0.2.1"},
		{name: "made up by a stranger", remote: "203.0.113.5:9", forwarded: "192.0.2.1", trusted: trusted, want: "address 203.0.113.5"},
		{name: "nonsense", remote: "10.0.0.1:9", forwarded: "unknown", trusted: trusted, want: "address 10.0.0.1"},
		{name: "proxies all the way", remote: "10.0.0.1:9", forwarded: "10.0.0.3", trusted: trusted, want: "address 10.0.0.3"},
		{name: "IPv6 behind a proxy", remote: "[fd00::1]:9", forwarded: "2001:db8:1:2::9", trusted: trusted, want: "address 2001:db8:1:2::"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", strings.NewReader(""))
			r.RemoteAddr = test.remote
			if test.forwarded != "" {
				r.Header.Set("X-Forwarded-For", test.forwarded)
			}
			if test.who != nil {
				r = r.WithContext(oauth.NewContext(context.Background(), test.who))
			}
			require.Equal(t, test.want, Caller(r, test.trusted))
		})
	}
}
