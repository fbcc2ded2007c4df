package metadata

import (
	"fmt"
	"net/url"
	"strings"
)

// Well-known paths of documents.
const (
	PathProtectedResource   = "/.well-known/oauth-protected-resource"
	PathAuthorizationServer = "/.well-known/oauth-authorization-server"
	PathOpenID              = "/.well-known/openid-configuration"
)

// ProtectedResourceURLs returns the URLs at which to look for the metadata of a resource, in this
// order: the well-known path followed by the path of the resource (RFC 9728, section 3.1), then the
// root of the origin, as MCP defines. It returns an error if resource is not an absolute URL, or
// has a fragment or a user name.
func ProtectedResourceURLs(resource string) ([]string, error) {
	u, err := parse("resource", resource)
	if err != nil {
		return nil, err
	}
	root := place(u, PathProtectedResource)
	if path := trimmed(u); path != "" {
		return []string{place(u, PathProtectedResource+path), root}, nil
	}
	return []string{root}, nil
}

// AuthorizationServerURLs returns the URLs at which to look for the metadata of an issuer, in the
// order that MCP defines: RFC 8414 with the path appended, OpenID Connect with the path appended,
// OpenID Connect with the path in front. It returns an error if issuer is not an absolute URL, or
// has a fragment or a user name.
func AuthorizationServerURLs(issuer string) ([]string, error) {
	u, err := parse("issuer", issuer)
	if err != nil {
		return nil, err
	}
	path := trimmed(u)
	urls := []string{place(u, PathAuthorizationServer+path), place(u, PathOpenID+path)}
	if path != "" {
		urls = append(urls, place(u, path+PathOpenID))
	}
	return urls, nil
}

// parse checks an identifier (RFC 8414, section 2, and RFC 9728, section 1.2): an absolute URL
// without a fragment. The caller decides which schemes it accepts.
func parse(what, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		// Anything before an "@" may be a password.
		return nil, fmt.Errorf("%s %q is not a URL", what, s[strings.LastIndexByte(s, '@')+1:])
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, fmt.Errorf("%s %q is not an absolute https URL", what, s)
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return nil, fmt.Errorf("%s %q has a fragment; it must have none", what, s)
	case u.User != nil:
		return nil, fmt.Errorf("%s %q has a user name; it must have none", what, u.Redacted())
	}
	return u, nil
}

// Origin returns the scheme and the host of an absolute URL as they are compared: in lower case, and
// without the default port.
func Origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host
}

func trimmed(u *url.URL) string { return strings.TrimSuffix(u.EscapedPath(), "/") }

// place returns the URL of a path at the origin of u. It keeps the query (RFC 9728, section 3.1).
func place(u *url.URL, path string) string {
	s := u.Scheme + "://" + u.Host + path
	if u.RawQuery != "" {
		s += "?" + u.RawQuery
	}
	return s
}
