package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// redirect is an address without a listener: the test reads the code from the redirect itself.
const redirect = "http://127.0.0.1:1/callback"

// A user opens login pages, which approve at once.
type user struct{ scopes []string } // the requested scopes, one entry for each page

func (u *user) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	page, err := url.Parse(args.URL)
	if err != nil {
		return nil, err
	}
	scopes := strings.Fields(page.Query().Get("scope"))
	slices.Sort(scopes) // their order is not defined
	u.scopes = append(u.scopes, strings.Join(scopes, " "))
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
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
		return nil, err
	}
	q := back.Query()
	if got := page.Query().Get("resource"); !strings.HasSuffix(got, "/mcp") {
		return nil, fmt.Errorf("the resource is %q", got)
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// logIn calls examples/diary, which needs a token.
func (s *scenario) logIn() {
	u := new(user)
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, AuthorizationCodeFetcher: u.fetch,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "interop", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
	})
	connect := func(ctx context.Context) error {
		if err != nil {
			return err
		}
		client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, nil)
		transport := &mcp.StreamableClientTransport{Endpoint: s.URL, OAuthHandler: handler}
		session, err := client.Connect(context.WithoutCancel(ctx), transport, &mcp.ClientSessionOptions{ProtocolVersion: s.Version})
		if err != nil {
			return err
		}
		s.session = session
		return same(session.InitializeResult().ProtocolVersion, s.Version)
	}
	s.check("a challenge leads to a login and a session", func(ctx context.Context) error {
		return errors.Join(connect(ctx), same(u.scopes, []string{"diary:read"}))
	})
	if s.session == nil {
		return
	}
	s.check("a tool within its scopes is called", func(ctx context.Context) error {
		return errors.Join(s.returns(ctx, "read", object{}, "[]"), same(len(u.scopes), 1))
	})
	s.check("a tool beyond its scopes leads to another login", func(ctx context.Context) error {
		write := func() error { return s.returns(ctx, "write", object{"text": "It rained."}, "Written, user.") }
		err := write()
		if !s.modern() {
			// The SDK registers a new client for each login. The new client does not own the
			// session.
			if err == nil || !strings.Contains(err.Error(), "session is unknown or has ended") {
				return fmt.Errorf("the session should have ended; instead: %w", err)
			}
			_ = s.session.Close() // fails, since the session has ended
			if err := connect(ctx); err != nil {
				return err
			}
			err = write()
		}
		return errors.Join(err, same(u.scopes, []string{"diary:read", "diary:read diary:write"}))
	})
	s.check("close", func(context.Context) error { return s.session.Close() })
}
