// Package config configures a server from a file and the environment:
//
//	c, err := config.Load("server.yaml")
//	err = c.Serve(ctx, &Notes{})
//
// The file is YAML or JSON. Each of its keys is an environment variable as well. The file overrides
// options of code, and the environment overrides the file; but false for exposeErrors or stepUp
// does not turn off what an option of code turns on. Unknown keys and variables and invalid
// values are errors; the error lists all of them with file, line and key. docs/reference/config.md
// lists all keys.
//
// A file does not contain secrets. Their values are references: env:NAME for a variable, file:PATH
// for a file. This package never prints secrets.
//
// [Load] and [Parse] return a [Config], whose methods apply it: [Config.Serve] does everything,
// [Config.New], [Config.Options], [Config.Middlewares] and [Config.Transports] do one part. The
// other types are the sections of a file.
package config

import (
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/mcpkit/mcpkit-go/ext/catalog"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A Config is a configuration. Fields that are zero are not set. The zero value configures nothing,
// so the server uses standard input and output.
type Config struct {
	// Name, limits and behaviour of the server.
	Server Server `yaml:"server" prefix:"server."`

	// The program's log, on standard error. If set, it replaces the logger passed in code.
	Log Log `yaml:"log" prefix:"log."`

	// The transports. The default is standard input and output. Several may be set.
	Transport Transport `yaml:"transport" prefix:"transport."`

	// What the server offers of its tools, prompts and resources.
	Select catalog.Selection `yaml:"select" prefix:"select."`

	// JSON file with names, texts and defaults for clients. Variables such as
	// MCPKIT_TOOL_SEARCH_DESCRIPTION override it.
	Overrides Path `yaml:"overrides"`

	// Require access tokens of an authorization server. For HTTP only.
	Auth Auth `yaml:"auth" prefix:"auth." validate:"omitzero"`

	// The engine that replicas share, such as redis://host:6379 or bolt:///path, whose package the
	// program imports. Requires server.stateKeys, and the same server.name for all replicas.
	Fleet EngineURL `yaml:"fleet"`

	// Middleware inside that of code. From the outermost to the innermost, it is logging, audit,
	// errorCodes, rateLimit, concurrency, timeout, maxResult and cache.
	Middleware Middleware `yaml:"middleware" prefix:"middleware."`

	texts    mcpkit.Option  // of the overrides; nil for none
	onListen func(net.Addr) // for tests
}

// Server configures the server itself.
type Server struct {
	// Name of the server; requires version.
	Name string `yaml:"name" validate:"required_with=Version"`

	// Version of the server; requires name.
	Version string `yaml:"version" validate:"required_with=Name"`

	// Instructions for models.
	Instructions string `yaml:"instructions"`

	// How long a tool call may take; 0 for no limit.
	ToolTimeout *time.Duration `yaml:"toolTimeout" validate:"omitempty,min=0"`

	// Show clients the text of every error.
	ExposeErrors bool `yaml:"exposeErrors"`

	// Mistakes in arguments to accept; see mcpkit.Leniency.
	Lenient []mcpkit.Leniency `yaml:"lenient" validate:"dive,oneof=unknown null scalars lists json"`

	// Show callers what they lack scopes for.
	StepUp bool `yaml:"stepUp"`

	// Scopes of the user who runs the server, on stdio and the Unix socket.
	TrustLocal []string `yaml:"trustLocal"`

	// Keys of at least 32 bytes, the current one first, that encrypt state which travels through
	// clients. Every replica needs the same keys.
	StateKeys []Secret `yaml:"stateKeys"`
}

// Log configures the program's log.
type Log struct {
	// Lowest level that is logged.
	Level *slog.Level `yaml:"level"`

	// Format of a line.
	Format string `yaml:"format" validate:"omitempty,oneof=text json"`
}

// Transport configures the transports.
type Transport struct {
	// Serve on standard input and output.
	Stdio Stdio `yaml:"stdio" prefix:"stdio."`

	// Serve over Streamable HTTP, and optionally over HTTP+SSE and WebSockets.
	HTTP HTTP `yaml:"http" prefix:"http." validate:"omitzero"`

	// Serve on a Unix socket. Only the user who runs the server can connect.
	Unix Unix `yaml:"unix" prefix:"unix." validate:"omitzero"`
}

// Stdio configures standard input and output.
type Stdio struct {
	// The default is true if no other transport is set.
	Enabled *bool `yaml:"enabled"`

	// Messages on lines, with header fields as in the Language Server Protocol, or as clients
	// begin.
	Framing string `yaml:"framing" validate:"omitempty,oneof=lines headers any"`

	// Most bytes of a message.
	MaxMessage Size `yaml:"maxMessage" validate:"min=0"`

	// How long calls may take to finish at shutdown.
	ShutdownTimeout time.Duration `yaml:"shutdownTimeout" validate:"min=0"`
}

// Unix configures a Unix socket.
type Unix struct {
	// Path of the socket.
	Path Path `yaml:"path" validate:"required"`

	// As for stdio.
	Framing string `yaml:"framing" validate:"omitempty,oneof=lines headers any"`

	// As for stdio.
	MaxMessage Size `yaml:"maxMessage" validate:"min=0"`

	// As for stdio.
	ShutdownTimeout time.Duration `yaml:"shutdownTimeout" validate:"min=0"`
}

// HTTP configures Streamable HTTP, HTTP+SSE and WebSockets on one address.
type HTTP struct {
	// Address to listen on, such as 127.0.0.1:8080.
	Addr string `yaml:"addr" validate:"required,address"`

	// Path of the MCP endpoint. The default is /mcp.
	Path string `yaml:"path" validate:"omitempty,path,ne=/livez,ne=/readyz"`

	// Path for HTTP+SSE, such as /sse. Off by default.
	SSE string `yaml:"sse" validate:"omitempty,path,ne=/livez,ne=/readyz,nefield=Path"`

	// Path for WebSockets, such as /ws. Off by default.
	WebSocket string `yaml:"websocket" validate:"omitempty,path,ne=/livez,ne=/readyz,nefield=Path,nefield=SSE"`

	// Serve https and wss. Without it, a proxy in front must.
	TLS TLS `yaml:"tls" prefix:"tls." validate:"omitzero"`

	// Origins whose pages may send requests, besides the server's own.
	Origins []string `yaml:"origins" validate:"dive,origin"`

	// Hosts that requests may name. By default only loopback addresses are restricted.
	Hosts []string `yaml:"hosts"`

	// Networks of proxies whose X-Forwarded-For gives the address of the caller, such as
	// 10.0.0.0/8.
	TrustedProxies []netip.Prefix `yaml:"trustedProxies"`

	// Serve legacy clients without sessions.
	Stateless bool `yaml:"stateless"`

	// Never open an event stream.
	JSONOnly bool `yaml:"jsonOnly"`

	// Most bytes of a request body, and of a message on a WebSocket.
	MaxBody Size `yaml:"maxBody" validate:"min=0"`

	// Most legacy sessions that hold something in memory; also most HTTP+SSE streams, and most
	// WebSockets.
	MaxSessions int `yaml:"maxSessions" validate:"min=0"`

	// How long HTTP+SSE or a WebSocket may be unused; 0 for no limit.
	SessionIdle *time.Duration `yaml:"sessionIdle" validate:"omitempty,min=0"`

	// How long a stream may be silent before the server sends a comment; 0 for no limit.
	KeepAlive *time.Duration `yaml:"keepAlive" validate:"omitempty,min=0"`

	// How long requests may take to finish at shutdown.
	ShutdownTimeout time.Duration `yaml:"shutdownTimeout" validate:"min=0"`

	// Answer health checks at /livez and /readyz.
	Health bool `yaml:"health"`

	// How long /readyz reports "not ready" before the server stops.
	Drain time.Duration `yaml:"drain" validate:"min=0"`
}

// TLS configures the certificate of the server.
type TLS struct {
	// PEM file with the certificate and the intermediate ones. It is read again when it changes.
	Certificate Path `yaml:"certificate" validate:"required"`

	// PEM file with the private key.
	Key Path `yaml:"key" validate:"required"`
}

// Auth configures which access tokens are accepted.
type Auth struct {
	// URL of the authorization server.
	Issuer string `yaml:"issuer" validate:"required,http_url"`

	// URL of the MCP endpoint as clients know it, for which tokens must be issued.
	Resource string `yaml:"resource" validate:"required,http_url"`

	// Other names of the resource in tokens of the authorization server.
	Audience []string `yaml:"audience"`

	// URL of the issuer's keys; by default the issuer's metadata names it.
	JWKSURI string `yaml:"jwksURI" validate:"omitempty,http_url"`

	// Signature algorithms of tokens; by default all asymmetric ones.
	Algorithms []string `yaml:"algorithms"`

	// Also accept tokens whose typ is missing or JWT, not at+jwt (RFC 9068). Many authorization
	// servers need this.
	AllowUntyped bool `yaml:"allowUntyped"`

	// Log users in at an identity provider with oauth/broker, which the program imports. Without
	// fleet, a restart ends all logins.
	Login Login `yaml:"login" prefix:"login." validate:"omitzero"`

	// Ask the authorization server about every token (RFC 7662): for those that are not JWTs, or
	// can be revoked.
	Introspection Introspection `yaml:"introspection" prefix:"introspection." validate:"omitzero"`

	// Accept or require tokens that are bound to a key of the client (RFC 9449), not refuse them.
	// Without fleet, each replica remembers only its own proofs.
	DPoP string `yaml:"dpop" validate:"omitempty,oneof=accept require"`

	// Scopes that every request needs.
	Scopes []string `yaml:"scopes"`

	// Scopes that clients may ask for.
	ScopesSupported []string `yaml:"scopesSupported"`

	// Accept requests without a token, for whatever requires no scopes.
	Anonymous bool `yaml:"anonymous"`

	// Name of the resource, for people.
	Name string `yaml:"name"`

	// Private networks that may contain the authorization server.
	PrivateNetworks []netip.Prefix `yaml:"privateNetworks"`

	// Allow an authorization server on this machine, also without TLS, for development.
	InsecureLoopback bool `yaml:"insecureLoopback"`
}

// Login configures the login at an identity provider. At least one of domains, groups and anyone is
// required.
type Login struct {
	// Where users log in; oidc is any other provider.
	Provider string `yaml:"provider" validate:"required,oneof=google github entra okta keycloak oidc"`

	// Tenant ID of Entra, or the URL of the issuer, the realm of Keycloak or GitHub Enterprise.
	At string `yaml:"at" validate:"required_unless=Provider google Provider github,excluded_if=Provider google"`

	// Client ID of this server at the provider.
	ClientID string `yaml:"clientID" validate:"required"`

	// Client secret for clientID.
	ClientSecret Secret `yaml:"clientSecret" validate:"required"`

	// Domains whose users may log in.
	Domains []string `yaml:"domains"`

	// Groups whose members may log in.
	Groups []string `yaml:"groups"`

	// Every account of the provider may log in.
	Anyone bool `yaml:"anyone"`

	// Scopes, each with its groups; none for all users. The variable has JSON.
	Scopes map[string][]string `yaml:"scopes"`
}

// Introspection configures requests to the authorization server about tokens.
type Introspection struct {
	// URL of the introspection endpoint.
	Endpoint string `yaml:"endpoint" validate:"required,http_url"`

	// Client ID of this server, if the endpoint requires authentication.
	ClientID string `yaml:"clientID"`

	// Client secret for clientID.
	ClientSecret Secret `yaml:"clientSecret"`

	// How long an active token is cached. A revoked token may work that long; 0 asks every time.
	CacheTime *time.Duration `yaml:"cacheTime" validate:"omitempty,min=0"`
}

// Middleware configures the middleware around every method.
type Middleware struct {
	// Log one line for each call.
	Logging bool `yaml:"logging"`

	// With logging: log the arguments, too, without secrets.
	LogArguments bool `yaml:"logArguments"`

	// Append a record of each call to a file.
	Audit Audit `yaml:"audit" prefix:"audit." validate:"omitzero"`

	// Report failures as JSON-RPC errors instead of tool errors.
	ErrorCodes bool `yaml:"errorCodes"`

	// Limit the calls per second of each caller.
	RateLimit RateLimit `yaml:"rateLimit" prefix:"rateLimit." validate:"omitzero"`

	// Most calls that run at a time. Further calls are refused.
	Concurrency int `yaml:"concurrency" validate:"min=0"`

	// How long a call of any method that runs code may take.
	Timeout time.Duration `yaml:"timeout" validate:"min=0"`

	// Most bytes of a result. Larger results are truncated.
	MaxResult Size `yaml:"maxResult" validate:"min=0"`

	// How long results of tools that only read are cached, for each authenticated caller.
	Cache time.Duration `yaml:"cache" validate:"min=0"`
}

// Audit configures middleware.Audit.
type Audit struct {
	// Path of the file.
	File Path `yaml:"file" validate:"required"`

	// Include the arguments, without secrets.
	Arguments bool `yaml:"arguments"`
}

// RateLimit configures middleware.RateLimit.
type RateLimit struct {
	// Average calls per second.
	PerSecond float64 `yaml:"perSecond" validate:"required,gt=0"`

	// Most calls at once.
	Burst int `yaml:"burst" validate:"required,min=1"`
}

// A Size is a number of bytes: 4096, 64KiB, 4MiB, 1GiB.
type Size int64

// A Path is the path of a file. It is relative to the folder of the configuration file, also in the
// environment.
type Path string
