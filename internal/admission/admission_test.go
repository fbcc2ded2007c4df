package admission

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// named is the key of a caller in tests.
func named(name string) Key { return Key{host: name} }

// took takes a place for key, which must be there, and returns it with the name of what was
// evicted.
func took(t *testing.T, places *Places, key, name string) (*Place, string) {
	t.Helper()
	p := &Place{Value: name}
	evicted, ok := places.Take(p, named(key))
	require.True(t, ok, name)
	if evicted == nil {
		return p, ""
	}
	return p, evicted.Value.(string)
}

func TestFloodEvictsItsOwnPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(10, 0)
		var mine []*Place
		for i := range 3 {
			p, _ := took(t, places, "me", fmt.Sprint("mine ", i))
			require.True(t, places.Use(p))
			places.Release(p)
			mine = append(mine, p)
		}
		time.Sleep(time.Hour) // they are idle for longer than anything of the flood
		for i := range 100 {
			p, evicted := took(t, places, "flood", fmt.Sprint("flood ", i))
			require.True(t, places.Use(p))
			places.Release(p)
			if i >= 7 {
				require.Equal(t, fmt.Sprint("flood ", i-7), evicted)
			}
			time.Sleep(time.Second)
		}
		for _, p := range mine {
			require.True(t, places.Leave(p))
		}
	})
}

func TestNewCallerEvictsAPlaceOfTheLargestCaller(t *testing.T) {
	places := NewPlaces(4, 0)
	var heavy []*Place
	for i := range 4 {
		p, _ := took(t, places, "heavy", fmt.Sprint("heavy ", i))
		require.True(t, places.Use(p)) // and does not release it
		heavy = append(heavy, p)
	}
	_, ok := places.Take(&Place{}, named("heavy"))
	require.False(t, ok, "all of its own are busy")
	places.Release(heavy[2])
	_, evicted := took(t, places, "a", "a")
	require.Equal(t, "heavy 2", evicted, "idle ones go first")
	_, evicted = took(t, places, "b", "b")
	require.Equal(t, "heavy 0", evicted, "then busy ones")
	require.False(t, places.Use(heavy[0]))
	require.False(t, places.Leave(heavy[0]))
	places.Release(heavy[0])
	_, evicted = took(t, places, "c", "c")
	require.NotEqual(t, "heavy 3", evicted, "where all hold as much, those that are idle go")
}

func TestLongestIdlePlaceIsEvictedWhenSharesAreEven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(3, time.Minute)
		for _, key := range []string{"a", "b", "c"} {
			p, _ := took(t, places, key, key)
			require.True(t, places.Use(p))
			places.Release(p)
			time.Sleep(10 * time.Second)
		}
		_, ok := places.Take(&Place{}, named("d"))
		require.False(t, ok, "none is idle for a minute")
		time.Sleep(40 * time.Second)
		_, evicted := took(t, places, "d", "d")
		require.Equal(t, "a", evicted)
	})
}

func TestIdlePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(10, 0)
		idle, next := places.IdleFor(time.Hour)
		require.Empty(t, idle)
		require.Zero(t, next)
		a, _ := took(t, places, "x", "a")
		time.Sleep(10 * time.Minute)
		b, _ := took(t, places, "y", "b")
		require.True(t, places.Use(b))
		idle, next = places.IdleFor(time.Hour)
		require.Empty(t, idle)
		require.Equal(t, 50*time.Minute, next)
		time.Sleep(next)
		idle, next = places.IdleFor(time.Hour)
		require.Equal(t, []*Place{a}, idle)
		require.Equal(t, time.Hour, next, "what is busy now is not idle before")
	})
}

func TestPlacesAreLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 6).Draw(t, "max")
		places := NewPlaces(most, 0)
		held := map[*Place]int{} // and how often it is used
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			var all []*Place
			for p := range held {
				all = append(all, p)
			}
			switch step := rapid.IntRange(0, 3).Draw(t, "step"); {
			case step == 0 || len(all) == 0:
				p := &Place{}
				key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
				full := len(held) == most
				evicted, ok := places.Take(p, named(key))
				require.True(t, ok || full, "there was room")
				require.Equal(t, ok && full, evicted != nil)
				delete(held, evicted)
				if ok {
					held[p] = 0
				}
			case step == 1:
				p := rapid.SampledFrom(all).Draw(t, "used")
				require.True(t, places.Use(p))
				held[p]++
			case step == 2:
				if p := rapid.SampledFrom(all).Draw(t, "released"); held[p] > 0 {
					places.Release(p)
					held[p]--
				}
			default:
				p := rapid.SampledFrom(all).Draw(t, "left")
				require.True(t, places.Leave(p))
				require.False(t, places.Leave(p))
				delete(held, p)
			}
			require.Equal(t, len(held), places.taken)
			sum := 0
			for key, s := range places.shares {
				require.Equal(t, key, s.key)
				require.Equal(t, s.n, s.fresh.Len()+s.recent.Len())
				require.Same(t, s, places.order[s.index])
				require.LessOrEqual(t, s.n, places.order[0].n)
				sum += s.n
			}
			require.Equal(t, sum, places.taken)
		}
	})
}

func TestBudget(t *testing.T) {
	b := NewBudget(5, 10)
	require.True(t, b.Spend(named("a"), 5))
	require.False(t, b.Spend(named("a"), 1), "the caller's own limit")
	require.True(t, b.Spend(named("b"), 2))
	require.False(t, b.Spend(named("b"), 2), "more than what is left for all others")
	require.True(t, b.Spend(named("b"), 1))
	require.True(t, b.Spend(named("c"), 1), "a newcomer finds some left")
	require.True(t, b.Spend(named("d"), 1))
	require.False(t, b.Spend(named("e"), 1), "until nothing is left")
	require.Equal(t, int64(10), b.Spent())
	b.Return(named("a"), 5)
	b.Return(named("b"), 3)
	b.Return(named("c"), 1)
	b.Return(named("d"), 1)
	require.Zero(t, b.Spent())
	require.Empty(t, b.spent)
	require.True(t, b.Spend(named("a"), 100), "one alone may be larger")
	require.False(t, b.Spend(named("a"), 1))
}

func TestCaller(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, test := range []struct {
		name, remote, forwarded string
		want                    Key
		trusted                 []netip.Prefix
		who                     *oauth.Principal
	}{
		{name: "principal", remote: "192.0.2.1:9", who: &oauth.Principal{Subject: "ann"}, want: Key{principal: (&oauth.Principal{Subject: "ann"}).Key()}},
		{name: "address", remote: "192.0.2.1:9", want: Key{addr: netip.MustParseAddr("192.0.2.1")}},
		{name: "IPv4 in IPv6", remote: "[::ffff:192.0.2.1]:9", want: Key{addr: netip.MustParseAddr("192.0.2.1")}},
		{name: "IPv6", remote: "[2001:db8:1:2:3:4:5:6]:9", want: Key{addr: netip.MustParseAddr("2001:db8:1:2::")}},
		{name: "IPv6 with a zone", remote: "[fe80::1%eth0]:9", want: Key{addr: netip.MustParseAddr("fe80::")}},
		{name: "no network", remote: "@", want: Key{host: "@"}},
		{name: "nobody is trusted", remote: "10.0.0.1:9", forwarded: "192.0.2.1", want: Key{addr: netip.MustParseAddr("10.0.0.1")}},
		{name: "a proxy", remote: "10.0.0.1:9", forwarded: "192.0.2.1", trusted: trusted, want: Key{addr: netip.MustParseAddr("192.0.2.1")}},
		{name: "a proxy that names ports", remote: "10.0.0.1:9", forwarded: "192.0.2.1:1234", trusted: trusted, want: Key{addr: netip.MustParseAddr("192.0.2.1")}},
		{name: "two proxies", remote: "10.0.0.1:9", forwarded: "192.0.2.1, 10.0.0.2", trusted: trusted, want: Key{addr: netip.MustParseAddr("192.0.2.1")}},
		{name: "made up in front", remote: "10.0.0.1:9", forwarded: "198.51.100.7, 192.0.2.1", trusted: trusted, want: Key{addr: netip.MustParseAddr("192.0.2.1")}},
		{name: "made up by a stranger", remote: "203.0.113.5:9", forwarded: "192.0.2.1", trusted: trusted, want: Key{addr: netip.MustParseAddr("203.0.113.5")}},
		{name: "nonsense", remote: "10.0.0.1:9", forwarded: "unknown", trusted: trusted, want: Key{addr: netip.MustParseAddr("10.0.0.1")}},
		{name: "proxies all the way", remote: "10.0.0.1:9", forwarded: "10.0.0.3", trusted: trusted, want: Key{addr: netip.MustParseAddr("10.0.0.3")}},
		{name: "IPv6 behind a proxy", remote: "[fd00::1]:9", forwarded: "2001:db8:1:2::9", trusted: trusted, want: Key{addr: netip.MustParseAddr("2001:db8:1:2::")}},
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
