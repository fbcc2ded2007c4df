package broker

import (
	"cmp"

	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

func init() {
	resource.RegisterLogin(func(o resource.LoginOptions) (resource.Login, error) { return New(configured(&o)) })
}

// configured returns the options for those of package config.
func configured(o *resource.LoginOptions) Options {
	opts := Options{
		Issuer: o.Issuer, Resource: o.Resource, Name: o.Name, Provider: configuredProvider(o), Domains: o.Domains, Groups: o.Groups,
		Scopes: o.Scopes, Keys: o.Keys, Engine: o.Engine, InsecureLoopback: o.InsecureLoopback, Logger: o.Logger,
	}
	if o.Anyone {
		opts.Decide = Anyone
	}
	return opts
}

func configuredProvider(o *resource.LoginOptions) Provider {
	switch o.Provider {
	case "google":
		return Google(o.ClientID, o.ClientSecret)
	case "github":
		p := GitHub(o.ClientID, o.ClientSecret)
		p.Issuer = cmp.Or(o.At, p.Issuer)
		return p
	case "entra":
		return Entra(o.At, o.ClientID, o.ClientSecret)
	case "okta":
		return Okta(o.At, o.ClientID, o.ClientSecret)
	case "keycloak":
		return Keycloak(o.At, o.ClientID, o.ClientSecret)
	}
	return Provider{Issuer: o.At, ClientID: o.ClientID, ClientSecret: o.ClientSecret, UserInfo: true}
}
