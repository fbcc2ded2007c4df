// Package httpguard is the first question that every binding over HTTP asks of a request: may its sender be served at
// all? It looks at Origin and Host alone, whatever the method, and before anything else is read.
package httpguard

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Rules decide whose requests are served. They keep web pages away from servers that were not meant for them, by plain
// cross-origin requests as by DNS rebinding (MCP, Streamable HTTP, security warning). The zero value is the
// strictest. They are safe for concurrent use.
type Rules struct {
	anyOrigin, anyHost bool
	origins, hosts     []string
}

// New returns rules that let pages of these origins in besides the server's own, and requests to these hosts besides
// loopback ones; "*" stands for all. Without hosts, requests that did not come to a loopback address may name any.
func New(origins, hosts []string) Rules {
	rules := Rules{anyOrigin: slices.Contains(origins, "*"), anyHost: slices.Contains(hosts, "*")}
	for _, o := range origins {
		rules.origins = append(rules.origins, strings.ToLower(strings.TrimSuffix(o, "/")))
	}
	for _, h := range hosts {
		rules.hosts = append(rules.hosts, strings.ToLower(h))
	}
	return rules
}

// Refuse says why r is not served, and "" when it is.
func (rules *Rules) Refuse(r *http.Request) string {
	if !rules.hostAllowed(r) {
		return "host " + Quote(r.Host) + " is not allowed; name it in AllowedHosts"
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return ""
	}
	if len(origins) > 1 {
		return "more than one Origin header field"
	}
	if !rules.originAllowed(origins[0], r.Host) {
		return "origin " + Quote(origins[0]) + " is not allowed; name it in AllowedOrigins"
	}
	return ""
}

// hostAllowed guards servers from names that were made to resolve to their addresses (DNS rebinding). Once hosts are set they hold for
// every request. Otherwise any host may be named off loopback addresses, where nothing is known of the names of the server. Loopback
// hosts are always allowed: their addresses cannot be rebound. Only the Host field counts, since anyone can send X-Forwarded-Host.
func (rules *Rules) hostAllowed(r *http.Request) bool {
	if rules.anyHost || len(rules.hosts) == 0 && !onLoopback(r) {
		return true
	}
	host := hostname(r.Host)
	if isLoopback(host) {
		return true
	}
	return host != "" && (slices.Contains(rules.hosts, strings.ToLower(host)) ||
		slices.Contains(rules.hosts, strings.ToLower(r.Host)))
}

// onLoopback reports whether r came to a loopback address of this machine.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

func (rules *Rules) originAllowed(origin, host string) bool {
	if rules.anyOrigin {
		return true
	}
	// "null" is what sandboxed frames and files send: anybody's.
	if origin == "null" {
		return false
	}
	if slices.Contains(rules.origins, strings.ToLower(origin)) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	// What the client sees of the scheme is not known here: TLS may end before this server.
	if strings.EqualFold(withPort(u.Host, u.Scheme), withPort(host, u.Scheme)) {
		return true
	}
	return isLoopback(u.Hostname()) && isLoopback(hostname(host))
}

// withPort returns host with the default port of scheme where it names none.
func withPort(host, scheme string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	if scheme == "https" {
		return host + ":443"
	}
	return host + ":80"
}

// hostname returns the host of a Host header field without its port and brackets, and "" where it is malformed.
func hostname(hostport string) string {
	if host, port, err := net.SplitHostPort(hostport); err == nil {
		if strings.Trim(port, "0123456789") != "" || strings.ContainsAny(host, "@/") {
			return ""
		}
		return host
	}
	if h, ok := strings.CutPrefix(hostport, "["); ok {
		h, ok = strings.CutSuffix(h, "]")
		if !ok {
			return ""
		}
		return h
	}
	if strings.ContainsAny(hostport, ":@/[]") {
		return ""
	}
	return hostport
}

// isLoopback reports whether host always means this machine. A name that merely starts like an address
// ("127.0.0.1.example.com") does not parse as one.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Quote quotes what a peer sent, cut to a length that is fit for messages.
func Quote(s string) string {
	const most = 100
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
