package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
)

// given is the context that the suite gives an authorization scenario.
type given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Issuer       string `json:"issuer"`

	PrivateKey string `json:"private_key_pem"`

	IDPClientID      string `json:"idp_client_id"`
	IDPIDToken       string `json:"idp_id_token"`
	IDPIssuer        string `json:"idp_issuer"`
	IDPTokenEndpoint string `json:"idp_token_endpoint"`

	ValidJWT string `json:"valid_jwt"`
}

// credentials returns the client credentials of the context. Their ClientID is empty if it has
// none.
func (g *given) credentials() (oauthclient.Credentials, error) {
	c := oauthclient.Credentials{Issuer: g.Issuer, ClientID: g.ClientID, ClientSecret: g.ClientSecret}
	if g.PrivateKey == "" {
		return c, nil
	}
	block, _ := pem.Decode([]byte(g.PrivateKey))
	if block == nil {
		return c, errors.New("the private key is not valid PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return c, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return c, fmt.Errorf("the private key is a %T", key)
	}
	c.Key = signer
	return c, nil
}

// trustIssuer sets the issuer to the one that the server's metadata names. Grants with secrets must
// know the issuer beforehand, and the suite does not name it.
func (g *given) trustIssuer(ctx context.Context, server string) error {
	if g.Issuer != "" {
		return nil
	}
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	u.Path = "/.well-known/oauth-protected-resource" + u.Path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var prm struct {
		AuthorizationServers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&prm); err != nil {
		return fmt.Errorf("%s: %w", u, err)
	}
	if len(prm.AuthorizationServers) == 0 {
		return fmt.Errorf("%s names no authorization server", u)
	}
	g.Issuer = prm.AuthorizationServers[0]
	return nil
}

// grant returns the grant of a scenario.
func (g *given) grant(ctx context.Context, scenario, server string) (oauthclient.Grant, error) {
	switch scenario {
	case "auth/client-credentials-jwt", "auth/client-credentials-basic",
		"auth/wif-jwt-bearer", "auth/enterprise-managed-authorization":
		if err := g.trustIssuer(ctx, server); err != nil {
			return nil, err
		}
	}
	c, err := g.credentials()
	if err != nil {
		return nil, err
	}
	switch scenario {
	case "auth/client-credentials-jwt", "auth/client-credentials-basic":
		return &oauthclient.ClientCredentials{Credentials: c}, nil
	case "auth/wif-jwt-bearer":
		return &oauthclient.WorkloadIdentity{
			Issuer:    g.Issuer,
			ClientID:  g.ClientID,
			Assertion: func(context.Context, oauthclient.Audience) (string, error) { return g.ValidJWT, nil },
		}, nil
	case "auth/enterprise-managed-authorization":
		return &oauthclient.EnterpriseManaged{
			Credentials:           c,
			Provider:              oauthclient.Credentials{Issuer: g.IDPIssuer, ClientID: g.IDPClientID},
			ProviderTokenEndpoint: g.IDPTokenEndpoint,
			Subject: func(context.Context) (string, string, error) {
				return g.IDPIDToken, oauthclient.TokenTypeID, nil
			},
		}, nil
	}
	code := &oauthclient.AuthorizationCode{
		Name: "mcpkit-conformance-client", Browser: browser,
		MetadataURL: "https://conformance-test.local/client-metadata.json",
	}
	if c.ClientID != "" {
		code.Known = []oauthclient.Credentials{c}
		code.Name, code.MetadataURL = "", ""
	}
	return code, nil
}

// browser opens the suite's login page, which approves at once. It reads the redirect itself, whose
// address has no listener.
func browser(_ context.Context, login oauthclient.LoginRequest) (*oauthclient.Login, error) {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	redirect := "http://localhost:3000/callback"
	if login.Distinct {
		redirect += "/" + url.PathEscape(login.Issuer)
	}
	return &oauthclient.Login{RedirectURI: redirect, Visit: func(ctx context.Context, page string) (url.Values, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
		if err != nil {
			return nil, err
		}
		resp, err := browser.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		back, err := resp.Location()
		if err != nil {
			return nil, fmt.Errorf("HTTP status %d: %w", resp.StatusCode, err)
		}
		return back.Query(), nil
	}}, nil
}

// mustRefuse holds the error texts of the scenarios in which the client must refuse to use a token.
var mustRefuse = map[string]string{
	"auth/resource-mismatch":        "the resource metadata is for",
	"auth/iss-supported-missing":    "the response has no iss parameter",
	"auth/iss-wrong-issuer":         "the response is not from the authorization server",
	"auth/iss-unexpected":           "the response is not from the authorization server",
	"auth/iss-normalized":           "the response is not from the authorization server",
	"auth/metadata-issuer-mismatch": "names the issuer",
	"auth/scope-retry-limit":        "HTTP status 403",
}

// authorized runs an authorization scenario. All of them call the same tool; only the grant
// differs.
func authorized(ctx context.Context, server string) error {
	name := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	var g given
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	grant, err := g.grant(ctx, name, server)
	if err != nil {
		return err
	}
	opts := &oauthclient.Options{InsecureLoopback: true}
	if strings.HasPrefix(name, "auth/dpop") {
		if opts.DPoP, err = oauthclient.NewProver(nil); err != nil {
			return err
		}
	}
	t, err := oauthclient.New(server, grant, opts)
	if err != nil {
		return err
	}
	run := calls("test-tool", nil, client.HTTPClient(&http.Client{Transport: t}))
	err = errors.Join(run(ctx, server), t.Close())
	if want := mustRefuse[name]; want != "" {
		if err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("the error must contain %q; it is: %w", want, err)
		}
		return nil
	}
	return err
}
