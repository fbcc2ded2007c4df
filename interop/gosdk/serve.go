package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A guard is the authorization server of a server, and how that asks it about tokens.
type guard struct{ Issuer, Introspection, ClientID, Secret string }

// serve is a server with one tool, for those who have a token with the scope mcp:tools, until a
// signal ends it.
func serve(addr string, g guard) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	resource := "http://" + addr + "/mcp"
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1.0.0"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name + "!"}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	const where = "/.well-known/oauth-protected-resource/mcp"
	mux := http.NewServeMux()
	mux.Handle(where, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: resource, AuthorizationServers: []string{g.Issuer}, ScopesSupported: []string{"mcp:tools"},
	}))
	mux.Handle("/mcp", auth.RequireBearerToken(g.verifier(resource), &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: "http://" + addr + where, Scopes: []string{"mcp:tools"},
	})(handler))
	web := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: patience}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// verifier asks the authorization server about each token (RFC 7662).
func (g guard) verifier(resource string) auth.TokenVerifier {
	return func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.Introspection, strings.NewReader(url.Values{"token": {token}}.Encode()))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth(g.ClientID, g.Secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		var got struct {
			Active          bool
			Sub, Scope, Aud string
			Exp             int64
		}
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			return nil, err
		}
		if !got.Active || got.Aud != resource {
			return nil, fmt.Errorf("%w: active %v, for %q", auth.ErrInvalidToken, got.Active, got.Aud)
		}
		return &auth.TokenInfo{Scopes: strings.Fields(got.Scope), Expiration: time.Unix(got.Exp, 0), UserID: got.Sub}, nil
	}
}
