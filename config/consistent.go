package config

import (
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// consistent finds settings that contradict each other.
func (l *loader) consistent(c *Config) {
	if (c.Server.Name == "") != (c.Server.Version == "") {
		l.fault("server.name", "set both name and version, or neither")
	}
	if c.Auth != nil && c.Transport.HTTP == nil {
		l.fault("auth", "auth needs HTTP; set transport.http.addr")
	}
	for i, key := range c.Server.StateKeys {
		l.longEnough(fmt.Sprintf("server.stateKeys[%d]", i), key)
	}
	if c.Transport.HTTP != nil {
		l.distinct(c.Transport.HTTP)
	}
	if c.Auth != nil {
		l.consistentAuth(c.Auth)
	}
}

// longEnough finds keys that are too short.
func (l *loader) longEnough(at string, key Secret) {
	if n := len(key.value); n < 32 {
		l.fault(at, "the key has %d bytes; want at least 32 random bytes", n)
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
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "{} ?#") {
			l.fault(at, "%q is not a path; write for example %q", clip(path), "/v1")
		}
		taken[path] = at
	}
}

// consistentAuth finds settings of auth that contradict each other.
func (l *loader) consistentAuth(a *Auth) {
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
	if (in.ClientID == "") != (in.ClientSecret == nil) {
		l.fault("auth.introspection", "set both clientID and clientSecret, or neither")
	}
}
