package config

import (
	"errors"
	"net"
	"net/url"
	gopath "path"
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"
)

// check finds values that are not valid, and settings that contradict each other.
func (l *loader) check(c *Config) {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return f.Tag.Get("yaml") })
	for name, valid := range map[string]func(string) bool{"address": isAddress, "origin": isOrigin, "path": isPath} {
		// It fails only for names that are not valid.
		_ = v.RegisterValidation(name, func(f validator.FieldLevel) bool { return valid(f.Field().String()) })
	}
	if all, ok := errors.AsType[validator.ValidationErrors](v.Struct(c)); ok {
		for _, e := range all {
			_, path, _ := strings.Cut(e.Namespace(), ".")
			why := rules[e.Tag()]
			if strings.HasPrefix(why, "want") && e.Param() != "" {
				why += " " + strings.ReplaceAll(e.Param(), " ", ", ")
			}
			l.fault(path, "%s", why)
		}
	}
	a, keys := &c.Auth, c.Server.StateKeys
	in, checked := &a.Introspection, a.JWKSURI != "" || a.Algorithms != nil || a.AllowUntyped
	elsewhere := checked || in.Endpoint != "" || a.Audience != nil || a.ScopesSupported != nil || a.PrivateNetworks != nil
	refuse := func(found bool, path, why string) {
		if found {
			l.fault(path, "%s", why)
		}
	}
	refuse(a.Issuer != "" && c.Transport.HTTP.Addr == "", "auth", "auth needs HTTP; set transport.http.addr")
	refuse(c.Fleet.URL() != "" && keys == nil, "fleet", "it needs server.stateKeys, the same for all replicas")
	refuse(in.Endpoint != "" && checked, "auth.introspection", "remove it, or jwksURI, algorithms and allowUntyped")
	refuse((in.ClientID != "") != (in.ClientSecret.from != ""), "auth.introspection", "set both clientID and clientSecret")
	if login := &a.Login; login.Provider != "" {
		refuse(keys == nil, "auth.login", "it needs server.stateKeys, the same for all replicas")
		refuse(login.Domains == nil && login.Groups == nil && !login.Anyone, "auth.login", "set domains, groups or anyone")
		refuse(elsewhere, "auth.login", "the tokens are the server's own; remove audience, jwksURI, algorithms, allowUntyped, "+
			"introspection, scopesSupported and privateNetworks")
	}
}

// rules say what the rules of validator want.
var rules = map[string]string{
	"required":        "it is missing",
	"excluded_if":     "remove it: the provider has one address",
	"required_unless": "it is missing; want the tenant or the URL of the provider",
	"required_with":   "it is missing; set both name and version, or neither",
	"oneof":           "want one of",
	"http_url":        `want a URL such as "https://login.example.com"`,
	"address":         `want an address such as "127.0.0.1:8080", or ":8080" for all of this machine`,
	"origin":          `want an origin such as "https://app.example.com"`,
	"path":            `want a path such as "/v1"`,
	"ne":              "want a path other than",
	"nefield":         "another endpoint has this path",
	"gt":              "want more than",
	"min":             "want at least",
}

func isAddress(text string) bool {
	_, _, err := net.SplitHostPort(text)
	return err == nil
}

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return text == "*" || err == nil && u.Host != "" && strings.TrimSuffix(text, "/") == u.Scheme+"://"+u.Host
}

// isPath reports whether a request can have the path. Paths that are not clean are redirected.
func isPath(text string) bool {
	clean := gopath.Clean(text) == text || gopath.Clean(text)+"/" == text
	return clean && strings.HasPrefix(text, "/") && !strings.ContainsAny(text, "{} ?#")
}
