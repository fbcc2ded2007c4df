package apps

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// checkOrigin checks an origin that a page may use: a scheme, a host and perhaps a port. The host may
// begin with "*.".
func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Opaque != "" || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil ||
		!slices.Contains([]string{"https", "http", "wss", "ws"}, u.Scheme) || strings.ContainsAny(origin, " ;,'\"") ||
		strings.Contains(strings.TrimPrefix(u.Host, "*."), "*") || strings.HasSuffix(origin, "#") {
		return fmt.Errorf("%q is not an origin; write for example \"https://api.example.com\" or \"https://*.example.com\"", origin)
	}
	return nil
}

// originOf returns the origin of an absolute URL.
func originOf(u *url.URL) string { return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) }

var defaultPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443"}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return defaultPorts[u.Scheme]
}

// allows reports whether a browser matches u with one of the origins, as in a content security
// policy: http: also allows https:, and ws: also wss:.
func allows(origins []string, u *url.URL) bool {
	return slices.ContainsFunc(origins, func(origin string) bool {
		o, err := url.Parse(origin)
		if err != nil {
			return false
		}
		upgraded := o.Scheme == "http" && u.Scheme == "https" || o.Scheme == "ws" && u.Scheme == "wss"
		if o.Scheme != strings.ToLower(u.Scheme) && !upgraded {
			return false
		}
		if portOf(o) != portOf(u) && !(upgraded && portOf(o) == "80" && portOf(u) == "443") {
			return false
		}
		have, want := strings.ToLower(u.Hostname()), strings.ToLower(o.Hostname())
		if suffix, ok := strings.CutPrefix(want, "*"); ok {
			return strings.HasSuffix(have, suffix)
		}
		return have == want
	})
}
