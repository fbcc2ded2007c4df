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

// An authorizer is an authorization server and the credentials for its introspection endpoint.
type authorizer struct{ Issuer, Introspection, ClientID, Secret string }

// serveProtected runs a server with one tool until a signal arrives. Callers need a token with the
// scope mcp:tools.
func serveProtected(addr string, as authorizer) error {
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
		Resource: resource, AuthorizationServers: []string{as.Issuer}, ScopesSupported: []string{"mcp:tools"},
	}))
	mux.Handle("/mcp", auth.RequireBearerToken(as.verifier(resource), &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: "http://" + addr + where, Scopes: []string{"mcp:tools"},
	})(handler))
	web := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: checkTimeout}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// verifier introspects each token at the authorization server (RFC 7662).
func (as authorizer) verifier(resource string) auth.TokenVerifier {
	return func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, as.Introspection, strings.NewReader(url.Values{"token": {token}}.Encode()))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth(as.ClientID, as.Secret)
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
