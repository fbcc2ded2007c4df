package streamable

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// originRules decide whose requests are served: the first question asked of every request, whatever its method.
// They keep web pages away from servers that were not meant for them, by plain cross-origin requests as by
// DNS rebinding (MCP, Streamable HTTP, security warning).
type originRules struct {
	anyOrigin, anyHost bool
	origins, hosts     []string
}

func newOriginRules(origins, hosts []string) originRules {
	rules := originRules{anyOrigin: slices.Contains(origins, "*"), anyHost: slices.Contains(hosts, "*")}
	for _, o := range origins {
		rules.origins = append(rules.origins, strings.ToLower(strings.TrimSuffix(o, "/")))
	}
	for _, h := range hosts {
		rules.hosts = append(rules.hosts, strings.ToLower(h))
	}
	return rules
}

// refuse says why r is not served, and "" when it is.
func (rules *originRules) refuse(r *http.Request) string {
	if !rules.hostAllowed(r) {
		return "host " + quote(r.Host) + " is not served on a loopback address; name it in AllowedHosts"
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return ""
	}
	if len(origins) > 1 {
		return "more than one Origin header field"
	}
	if !rules.originAllowed(origins[0], r.Host) {
		return "origin " + quote(origins[0]) + " is not allowed; name it in AllowedOrigins"
	}
	return ""
}

// hostAllowed guards servers that are reached by a loopback address from names that were made to resolve to it.
func (rules *originRules) hostAllowed(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() || rules.anyHost {
		return true
	}
	host := hostname(r.Host)
	if isLoopback(host) {
		return true
	}
	return host != "" && (slices.Contains(rules.hosts, strings.ToLower(host)) ||
		slices.Contains(rules.hosts, strings.ToLower(r.Host)))
}

func (rules *originRules) originAllowed(origin, host string) bool {
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
	if host, _, err := net.SplitHostPort(hostport); err == nil {
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
