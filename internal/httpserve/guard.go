package httpserve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// A Guard decides which requests are served, by their Origin and Host, before anything else is read.
// It protects servers from foreign web pages, both from cross-origin requests and from DNS rebinding
// (MCP, Streamable HTTP, security warning). The zero value is the strictest. A Guard is safe for
// concurrent use.
type Guard struct {
	origins, hosts []string // in lower case; "*" is any
}

// NewGuard returns a guard that allows these origins besides the server's own, and these hosts
// besides loopback hosts; "*" allows all. Without hosts, requests that did not arrive at a loopback
// address may name any host.
func NewGuard(origins, hosts []string) Guard { return Guard{lower(origins), lower(hosts)} }

func lower(names []string) (all []string) {
	for _, name := range names {
		all = append(all, strings.ToLower(strings.TrimSuffix(name, "/")))
	}
	return all
}

// Refuse returns why r is refused, or "" if it is allowed.
func (g *Guard) Refuse(r *http.Request) string {
	origins := r.Header["Origin"]
	switch {
	case !g.hostAllowed(r):
		return fmt.Sprintf("host %+.100q is not allowed; name it in AllowedHosts", r.Host)
	case len(origins) > 1:
		return "more than one Origin header field"
	case len(origins) == 1 && !g.originAllowed(origins[0], r.Host):
		return fmt.Sprintf("origin %+.100q is not allowed; name it in AllowedOrigins", origins[0])
	}
	return ""
}

// hostAllowed protects against DNS rebinding: names that were made to resolve to the address of the
// server. If hosts are set, they apply to every request. Otherwise a request that did not arrive at
// a loopback address may name any host, since the names of the server are unknown. Loopback hosts
// are always allowed, since they cannot be rebound. Only the Host field counts: anyone can send
// X-Forwarded-Host.
func (g *Guard) hostAllowed(r *http.Request) bool {
	if len(g.hosts) == 0 && !onLoopback(r) {
		return true
	}
	host := hostname(r.Host)
	return IsLoopback(host) || slices.ContainsFunc(g.hosts, func(allowed string) bool {
		return allowed == "*" || host != "" && (allowed == strings.ToLower(host) || allowed == strings.ToLower(r.Host))
	})
}

// onLoopback reports whether r arrived at a loopback address.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

func (g *Guard) originAllowed(origin, host string) bool {
	// Any page can send "null" from a sandboxed frame.
	if slices.Contains(g.origins, "*") || origin != "null" && slices.Contains(g.origins, strings.ToLower(origin)) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host {
		return false
	}
	// The scheme that the client used is that of the origin: a proxy may terminate TLS.
	port, isWeb := defaultPorts[u.Scheme]
	if isWeb && strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(host, port)) {
		return true
	}
	return isWeb && IsLoopback(u.Hostname()) && IsLoopback(hostname(host))
}

var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

// hostname returns the host of a Host header field without port and brackets, or "" if it is
// malformed.
func hostname(hostport string) string {
	u, err := url.Parse("//" + hostport)
	if err != nil || u.Host != hostport || u.User != nil {
		return ""
	}
	name := u.Hostname()
	if strings.Contains(name, ":") && hostport[0] != '[' {
		return ""
	}
	return name
}

// IsLoopback reports whether host always means this machine. A name that starts like an address
// ("127.0.0.1.example.com") is not one.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
