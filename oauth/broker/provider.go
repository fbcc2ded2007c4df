package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// A Provider is the identity provider that users log in at, with the broker's registration there.
// Register the redirect URI [Broker.CallbackURL]. Any provider of OpenID Connect can be used; [Google],
// [Entra], [Okta], [Keycloak] and [GitHub] return what theirs needs.
type Provider struct {
	// Name is what users see, such as "Google".
	Name string
	// Issuer is the issuer of OpenID Connect, under which its metadata is found.
	Issuer string
	// ClientID and ClientSecret are the registration of the broker.
	ClientID, ClientSecret string

	// Scopes are requested from the provider besides openid, profile and email. Add those that
	// methods need for [Broker.Upstream].
	Scopes []string
	// GroupScope is requested too if groups decide about a login. Empty means none.
	GroupScope string
	// GroupClaim is the claim that lists the groups of a user. Empty means "groups".
	GroupClaim string
	// UserInfo asks for the claims of a user at the userinfo endpoint, besides those of the ID token.
	UserInfo bool
	// Params are further parameters of the authorization request.
	Params map[string]string

	github bool
}

const googleIssuer = "https://accounts.google.com"

// discoverAgain is how long a failure to read the metadata of a provider is remembered.
const discoverAgain = 5 * time.Second

// Google returns the provider for Google accounts, with an OAuth client of the type "web application".
// Options.Domains are then domains of Google Workspace.
func Google(clientID, clientSecret string) Provider {
	return Provider{
		Name: "Google", Issuer: googleIssuer, ClientID: clientID, ClientSecret: clientSecret,
		// Google issues a refresh token only with both.
		Params: map[string]string{"access_type": "offline", "prompt": "consent"},
	}
}

// Entra returns the provider for the accounts of one tenant of Microsoft Entra ID, named by its ID.
// Entra does not say whether it has verified an address, so use Options.Groups, or admit the whole
// tenant with [Anyone]. Groups are object IDs, and are in the claims if the app registration adds them.
func Entra(tenantID, clientID, clientSecret string) Provider {
	return Provider{
		Name: "Microsoft", Issuer: "https://login.microsoftonline.com/" + tenantID + "/v2.0",
		ClientID: clientID, ClientSecret: clientSecret, Scopes: []string{oidc.ScopeOfflineAccess},
	}
}

// Okta returns the provider for an authorization server of Okta, such as "https://acme.okta.com".
func Okta(issuer, clientID, clientSecret string) Provider {
	return Provider{
		Name: "Okta", Issuer: issuer, ClientID: clientID, ClientSecret: clientSecret,
		Scopes: []string{oidc.ScopeOfflineAccess}, GroupScope: "groups", UserInfo: true,
	}
}

// Keycloak returns the provider for a realm, such as "https://login.example.com/realms/acme". Groups
// need a mapper of the type "Group Membership" for the claim "groups".
func Keycloak(realm, clientID, clientSecret string) Provider {
	return Provider{
		Name: "Keycloak", Issuer: realm, ClientID: clientID, ClientSecret: clientSecret,
		Scopes: []string{oidc.ScopeOfflineAccess},
	}
}

// GitHub returns the provider for GitHub accounts, with an OAuth app. Groups are organizations
// ("acme") and teams ("acme/platform"), the first 100 of each that the user has. For GitHub Enterprise
// Server, set Issuer to its URL.
func GitHub(clientID, clientSecret string) Provider {
	return Provider{
		Name: "GitHub", Issuer: "https://github.com", ClientID: clientID, ClientSecret: clientSecret,
		GroupScope: "read:org", github: true,
	}
}

// A User is who logged in, as the provider describes the user.
type User struct {
	// Subject identifies the user at the provider. It never changes.
	Subject string `json:"subject"`
	// Email is an address that the provider has verified. Empty if there is none.
	Email string `json:"email,omitempty"`
	// Name is for people, and may be chosen by the user.
	Name   string   `json:"name,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Claims are all claims of the provider, or what GitHub says of the user.
	Claims map[string]any `json:"claims,omitempty"`
}

// in reports whether the user has an address of a domain. A Google account may have an address of a
// company that does not manage it, so Google's claim hd decides.
func (u *User) in(domain, issuer string) bool {
	_, have, _ := strings.Cut(u.Email, "@")
	if issuer == googleIssuer {
		have, _ = u.Claims["hd"].(string)
	}
	return have != "" && strings.EqualFold(have, domain)
}

// An upstream is a provider as the broker uses it.
type upstream interface {
	// config returns the configuration for requests to the provider.
	config(ctx context.Context) (*oauth2.Config, error)
	// user returns the user of a new token. nonce is "" for a refreshed token. before is what is known
	// of the user, or nil at a login. The error is ErrEnded if the provider refuses the token.
	user(ctx context.Context, t *oauth2.Token, nonce string, before *User) (*User, error)
}

// newUpstream checks a provider. groups says whether groups of users matter.
func newUpstream(p Provider, redirect string, groups bool, policy metadata.Policy) (upstream, error) {
	if p.ClientID == "" || p.ClientSecret == "" {
		return nil, errors.New("Provider needs a ClientID and a ClientSecret")
	}
	// The operator chose the provider, so its addresses may be private.
	u, err := metadata.Policy{InsecureLoopback: policy.InsecureLoopback, PrivateNetworks: everywhere}.CheckURL(p.Issuer)
	if err != nil {
		return nil, fmt.Errorf("Provider.Issuer: %w", err)
	}
	config := oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: redirect, Scopes: slices.Clone(p.Scopes),
	}
	if groups && p.GroupScope != "" {
		config.Scopes = append(config.Scopes, p.GroupScope)
	}
	if p.github {
		base := strings.TrimSuffix(p.Issuer, "/")
		config.Scopes = append([]string{"read:user", "user:email"}, config.Scopes...)
		config.Endpoint = oauth2.Endpoint{
			AuthURL: base + "/login/oauth/authorize", TokenURL: base + "/login/oauth/access_token",
			AuthStyle: oauth2.AuthStyleInParams,
		}
		api := base + "/api/v3"
		if u.Host == "github.com" {
			api = "https://api.github.com"
		}
		return &githubUpstream{base: config, api: api, groups: groups}, nil
	}
	config.Scopes = append([]string{oidc.ScopeOpenID, "profile", "email"}, config.Scopes...)
	return &oidcUpstream{p: p, base: config, slot: make(chan struct{}, 1)}, nil
}

// An oidcUpstream is a provider of OpenID Connect. It reads the provider's metadata when it is first
// needed, so that the broker starts while the provider is down.
type oidcUpstream struct {
	p    Provider
	base oauth2.Config

	slot  chan struct{}  // held during an attempt; callers stop waiting for it when their context ends
	found *oidc.Provider // guarded by slot
	err   error          // of the last attempt; guarded by slot
	tried time.Time      // the last attempt; guarded by slot
}

func (o *oidcUpstream) discover(ctx context.Context) (*oidc.Provider, error) {
	select {
	case o.slot <- struct{}{}:
		defer func() { <-o.slot }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if o.found == nil && time.Since(o.tried) > discoverAgain {
		// The outcome is for all, so it does not depend on the caller.
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		o.found, o.err = oidc.NewProvider(ask, o.p.Issuer)
		o.tried = time.Now()
	}
	return o.found, o.err
}

func (o *oidcUpstream) config(ctx context.Context) (*oauth2.Config, error) {
	found, err := o.discover(ctx)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&doc); err != nil {
		return nil, err
	}
	c := o.base
	c.Endpoint = found.Endpoint()
	// Otherwise x/oauth2 tries both, and a failed refresh is sent twice, which looks like a theft.
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if doc.Methods != nil && !slices.Contains(doc.Methods, "client_secret_basic") {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &c, nil
}

func (o *oidcUpstream) user(ctx context.Context, t *oauth2.Token, nonce string, before *User) (*User, error) {
	found, err := o.discover(ctx)
	if err != nil {
		return nil, err
	}
	raw, issued := t.Extra("id_token").(string)
	endpoint := found.UserInfoEndpoint()
	if before != nil && !issued && endpoint == "" {
		return before, nil // the provider has renewed the token, and says no more
	}
	claims := map[string]any{}
	if endpoint != "" && (o.p.UserInfo || before != nil && !issued) {
		if err := fetch(ctx, t, endpoint, &claims); err != nil {
			return nil, err
		}
	}
	switch {
	case issued:
		subject := claims["sub"]
		token, err := found.VerifierContext(ctx, &oidc.Config{ClientID: o.base.ClientID}).Verify(ctx, raw)
		if err != nil {
			return nil, err
		}
		if before == nil && token.Nonce != nonce {
			return nil, errors.New("the ID token belongs to another login: its nonce differs")
		}
		if err := token.Claims(&claims); err != nil {
			return nil, err
		}
		if subject != nil && subject != token.Subject {
			return nil, errors.New("the ID token and the userinfo endpoint name different users")
		}
	case before == nil:
		return nil, errors.New("the token response has no ID token")
	}
	u := &User{Claims: claims}
	u.Subject, _ = claims["sub"].(string)
	u.Name, _ = claims["name"].(string)
	if verified := claims["email_verified"]; verified == true || verified == "true" {
		u.Email, _ = claims["email"].(string)
	}
	list, _ := claims[cmp.Or(o.p.GroupClaim, "groups")].([]any)
	for _, item := range list {
		if name, ok := item.(string); ok {
			u.Groups = append(u.Groups, name)
		}
	}
	return u, nil
}

// A githubUpstream is GitHub, which has OAuth and an API, but no OpenID Connect for users.
type githubUpstream struct {
	base   oauth2.Config
	api    string
	groups bool
}

func (g *githubUpstream) config(context.Context) (*oauth2.Config, error) {
	c := g.base
	return &c, nil
}

func (g *githubUpstream) user(ctx context.Context, t *oauth2.Token, _ string, _ *User) (*User, error) {
	var profile struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
		Name  string `json:"name"`
	}
	var emails []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if err := fetch(ctx, t, g.api+"/user", &profile); err != nil {
		return nil, err
	}
	if err := fetch(ctx, t, g.api+"/user/emails", &emails); err != nil {
		return nil, err
	}
	if profile.ID == 0 {
		return nil, errors.New("GitHub does not name the user")
	}
	u := &User{
		Subject: strconv.FormatInt(profile.ID, 10), Name: profile.Name, Claims: map[string]any{"login": profile.Login},
	}
	for _, e := range emails {
		if e.Primary && e.Verified {
			u.Email = e.Email
		}
	}
	if !g.groups {
		return u, nil
	}
	var orgs []struct {
		Login string `json:"login"`
	}
	var teams []struct {
		Slug         string `json:"slug"`
		Organization struct {
			Login string `json:"login"`
		} `json:"organization"`
	}
	if err := fetch(ctx, t, g.api+"/user/orgs?per_page=100", &orgs); err != nil {
		return nil, err
	}
	if err := fetch(ctx, t, g.api+"/user/teams?per_page=100", &teams); err != nil {
		return nil, err
	}
	for _, org := range orgs {
		u.Groups = append(u.Groups, org.Login)
	}
	for _, team := range teams {
		u.Groups = append(u.Groups, team.Organization.Login+"/"+team.Slug)
	}
	return u, nil
}

// fetch reads a document of the provider with the token of a user. The error is ErrEnded if the
// provider refuses the token.
func fetch(ctx context.Context, t *oauth2.Token, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	t.SetAuthHeader(req)
	client, _ := ctx.Value(oauth2.HTTPClient).(*http.Client)
	err = metadata.JSON(client, req, v)
	if refused, ok := errors.AsType[*metadata.StatusError](err); ok && refused.Status == http.StatusUnauthorized {
		return ErrEnded
	}
	if err != nil {
		return fmt.Errorf("%s: %w", metadata.Shown(url), err)
	}
	return nil
}
