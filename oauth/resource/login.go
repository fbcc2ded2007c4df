package resource

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// A Login is an authorization server that runs beside the resource, and logs users in at an identity
// provider. Package oauth/broker has it, and registers it for package config.
type Login interface {
	// Mount registers the endpoints, with an *http.ServeMux or a similar router.
	Mount(mux interface{ Handle(string, http.Handler) })
	// ResourceOptions returns the options of a guard that accepts the tokens.
	ResourceOptions() Options
	// Close releases what the login holds. It does not close the engine.
	Close() error
}

// LoginOptions configures a [Login] as package config does: see the options of package oauth/broker.
type LoginOptions struct {
	Issuer, Resource, Name string

	Provider               string // google, github, entra, okta, keycloak or oidc
	At                     string // tenant of Entra, or a URL
	ClientID, ClientSecret string

	Domains, Groups  []string
	Anyone           bool
	Scopes           map[string][]string
	Keys             [][]byte
	Engine           fleet.Engine // nil for the memory
	InsecureLoopback bool
	Logger           *slog.Logger
}

var newLogin = func(LoginOptions) (Login, error) {
	return nil, errors.New(`the program has no login: import _ "github.com/mcpkit/mcpkit-go/oauth/broker"`)
}

// RegisterLogin sets what [NewLogin] returns. Package oauth/broker calls it in init.
func RegisterLogin(open func(LoginOptions) (Login, error)) { newLogin = open }

// NewLogin returns the login of package oauth/broker. The program has to import it:
//
//	import _ "github.com/mcpkit/mcpkit-go/oauth/broker"
//
// If it does not, the error says so.
func NewLogin(opts LoginOptions) (Login, error) { return newLogin(opts) }
