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

// redirect is where nobody listens: the page's answer is read from the redirect.
const redirect = "http://127.0.0.1:1/callback"

// A user goes to the pages, which agree at once.
type user struct{ scopes []string } // that were asked for, a page each

func (u *user) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	page, err := url.Parse(args.URL)
	if err != nil {
		return nil, err
	}
	scopes := strings.Fields(page.Query().Get("scope"))
	slices.Sort(scopes) // they are asked for in any order
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

// logIn goes through examples/diary, which nobody may call without a token.
func (s *story) logIn() {
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
	s.check("a challenge leads to a login, and that to a session", func(ctx context.Context) error {
		return errors.Join(connect(ctx), same(u.scopes, []string{"diary:read"}))
	})
	if s.session == nil {
		return
	}
	s.check("it calls what its scopes are enough for", func(ctx context.Context) error {
		return errors.Join(s.says(ctx, "read", object{}, "[]"), same(len(u.scopes), 1))
	})
	s.check("for more it logs in again", func(ctx context.Context) error {
		write := func() error { return s.says(ctx, "write", object{"text": "It rained."}, "Written, user.") }
		err := write()
		if !s.modern() {
			// It registers for each login, and so is another client afterwards, whose session this
			// is not.
			if err == nil || !strings.Contains(err.Error(), "session is unknown or has ended") {
				return fmt.Errorf("the session should be over; instead: %w", err)
			}
			_ = s.session.Close() // it is over, and says so
			if err := connect(ctx); err != nil {
				return err
			}
			err = write()
		}
		return errors.Join(err, same(u.scopes, []string{"diary:read", "diary:read diary:write"}))
	})
	s.check("close", func(context.Context) error { return s.session.Close() })
}
