package config

import (
	"fmt"
	"net/netip"
	"net/url"
	gopath "path"
	"strings"

	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// consistent finds settings that contradict each other. A setting whose value is not valid was
// reported before, and counts as set.
func (l *loader) consistent(c *Config) {
	if l.given("server.name", c.Server.Name != "") != l.given("server.version", c.Server.Version != "") {
		l.fault("server.name", "set both name and version, or neither")
	}
	if c.Auth != nil && !l.given("transport.http", c.Transport.HTTP != nil) {
		l.fault("auth", "auth needs HTTP; set transport.http.addr")
	}
	for i, key := range c.Server.StateKeys {
		l.longEnough(fmt.Sprintf("server.stateKeys[%d]", i), key)
	}
	if l.given("fleet", c.Fleet.url != "") && !l.given("server.stateKeys", len(c.Server.StateKeys) > 0) {
		l.fault("fleet", "replicas encrypt what they share; set server.stateKeys to keys that all of them have")
	}
	if c.Transport.HTTP != nil {
		l.distinct(c.Transport.HTTP)
		l.networks("transport.http.trustedProxies", c.Transport.HTTP.TrustedProxies)
		l.origins(c.Transport.HTTP.Origins)
	}
	if c.Auth != nil {
		l.consistentAuth(c.Auth)
	}
}

// given reports whether a setting has a value, valid or not.
func (l *loader) given(at string, valid bool) bool {
	_, there := l.places[at]
	return valid || there
}

// longEnough finds keys that are too short.
func (l *loader) longEnough(at string, key Secret) {
	if n := len(key.value); n < 32 {
		l.fault(at, "the key has %d bytes; want at least 32 random bytes", n)
	}
}

const notNetwork = "%q is not a network; write for example 10.1.0.0/16"

func (l *loader) networks(at string, texts []string) {
	for i, text := range texts {
		if _, err := netip.ParsePrefix(text); err != nil {
			l.fault(fmt.Sprintf("%s[%d]", at, i), notNetwork, clip(text))
		}
	}
}

// origins finds origins that no request has.
func (l *loader) origins(texts []string) {
	for i, text := range texts {
		u, err := url.Parse(strings.TrimSuffix(text, "/"))
		if text != "*" && (err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "") {
			l.fault(fmt.Sprintf("transport.http.origins[%d]", i), `%q is not an origin; write for example "https://app.example.com"`, clip(text))
		}
	}
}

// absolute finds texts that are not URLs.
func (l *loader) absolute(at, text string) {
	if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		l.fault(at, `%q is not a URL; write for example "https://login.example.com"`, clip(text))
	}
}

// distinct finds paths that are not valid, and paths that are used twice.
func (l *loader) distinct(h *HTTP) {
	taken := map[string]string{}
	if or(h.Health, false) {
		taken[livePath], taken[readyPath] = "transport.http.health", "transport.http.health"
	}
	endpoint := h.Path
	if endpoint == "" {
		endpoint = streamable.DefaultPath
	}
	for _, p := range [][2]string{{"path", endpoint}, {"sse", h.SSE}, {"websocket", h.WebSocket}} {
		at, path := "transport.http."+p[0], p[1]
		if path == "" {
			continue
		}
		if by := taken[path]; by != "" {
			l.fault(at, "%q is already the path of %s", path, by)
			continue
		}
		clean := gopath.Clean(path) == path || gopath.Clean(path)+"/" == path // others are redirected
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "{} ?#") || !clean {
			l.fault(at, "%q is not a path; write for example %q", clip(path), "/v1")
		}
		taken[path] = at
	}
}

// consistentAuth finds settings of auth that contradict each other.
func (l *loader) consistentAuth(a *Auth) {
	l.networks("auth.privateNetworks", a.PrivateNetworks)
	l.absolute("auth.issuer", a.Issuer)
	l.absolute("auth.resource", a.Resource)
	l.absolute("auth.jwksURI", a.JWKSURI)
	if a.Introspection != nil {
		l.absolute("auth.introspection.endpoint", a.Introspection.Endpoint)
	}
	if a.DPoP != nil && a.DPoP.NonceKey != nil {
		l.longEnough("auth.dpop.nonceKey", *a.DPoP.NonceKey)
	}
	in := a.Introspection
	if in == nil {
		return
	}
	for _, k := range []struct {
		key string
		set bool
	}{{"jwksURI", a.JWKSURI != ""}, {"algorithms", a.Algorithms != nil}, {"allowUntyped", a.AllowUntyped != nil}} {
		if k.set {
			l.fault("auth."+k.key, "it applies only without auth.introspection; remove one of the two")
		}
	}
	if l.given("auth.introspection.clientID", in.ClientID != "") != l.given("auth.introspection.clientSecret", in.ClientSecret != nil) {
		l.fault("auth.introspection", "set both clientID and clientSecret, or neither")
	}
}
