// Package config configures a server from a file and the environment:
//
//	c, err := config.Load("server.yaml")
//	err = c.Serve(ctx, &Notes{})
//
// The file is YAML or JSON. Each of its keys is an environment variable as well. The file overrides
// options of code, and the environment overrides the file; but false for exposeErrors, repair or
// stepUp does not turn off what an option of code turns on. Unknown keys and variables and invalid
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
	"time"
)

// A Config is a configuration. Fields that are nil or empty are not set. The zero value configures
// nothing, so the server uses standard input and output.
type Config struct {
	Server     Server     `key:"server" doc:"Name, limits and behaviour of the server."`
	Log        Log        `key:"log" doc:"The program's log, on standard error. If set, it replaces the logger passed in code."`
	Transport  Transport  `key:"transport" doc:"The transports. The default is standard input and output. Several may be set."`
	Auth       *Auth      `key:"auth" doc:"Require access tokens that an authorization server issues. For HTTP only."`
	Fleet      EngineURL  `key:"fleet" doc:"What replicas of the server share, so that they may stand behind any load balancer: sessions, streams, tasks and used proofs. For example redis://host:6379 or bolt:///path; the program imports the package of the engine. Requires server.stateKeys, and server.name must be the same for all replicas."`
	Middleware Middleware `key:"middleware" doc:"Middleware around every method. From the outermost to the innermost, it is logging, audit, errorCodes, rateLimit, concurrency, timeout, resultLimit and cache. All of it runs inside the middleware that code passed to Use before."`

	onListen func(net.Addr) // for tests
}

// Server configures the server itself.
type Server struct {
	Name           string         `key:"name" doc:"Name of the server; requires version."`
	Version        string         `key:"version" doc:"Version of the server; requires name."`
	Instructions   string         `key:"instructions" doc:"Instructions for models on how to use the server."`
	PageSize       *int           `key:"pageSize" min:"1" doc:"Items on each page of a list."`
	ListTTL        *time.Duration `key:"listTTL" doc:"How long clients may cache lists."`
	ToolTimeout    *time.Duration `key:"toolTimeout" doc:"How long a tool call may take; 0 for no limit. A tool's timeout tag overrides it."`
	MaxResultBytes *Size          `key:"maxResultBytes" min:"1" doc:"Most bytes collected from a reader or iterator that a method returns."`
	ExposeErrors   *bool          `key:"exposeErrors" doc:"Show clients the text of every error."`
	Repair         *bool          `key:"repair" doc:"Accept arguments with unambiguous mistakes, such as \"5\" for 5."`
	StepUp         *bool          `key:"stepUp" doc:"Show callers what they lack scopes for."`
	TrustLocal     []string       `key:"trustLocal" doc:"Scopes of the user who runs the server, on standard input and output and on the Unix socket."`
	StateKeys      []Secret       `key:"stateKeys" doc:"Keys of at least 32 bytes, the current one first, that encrypt state which travels through clients. Every replica needs the same keys. White space at the end of a file is ignored; base64: before the reference decodes the content."`
}

// Log configures the program's log.
type Log struct {
	Level  *slog.Level `key:"level" doc:"Lowest level that is logged."`
	Format string      `key:"format" enum:"text json" doc:"Format of a line."`
}

// Transport configures the transports.
type Transport struct {
	Stdio *Stdio `key:"stdio" doc:"Serve on standard input and output. An empty map uses the defaults. Standard output has no write timeout by default."`
	HTTP  *HTTP  `key:"http" doc:"Serve over Streamable HTTP, and optionally over HTTP+SSE and WebSockets."`
	Unix  *Unix  `key:"unix" doc:"Serve on a Unix socket. Only the user who runs the server can connect."`
}

// A Stream has the limits of a connection that carries messages one after the other.
type Stream struct {
	MaxMessage       *Size          `key:"maxMessage" min:"1" doc:"Most bytes of a message."`
	MaxInFlight      *int           `key:"maxInFlight" min:"1" doc:"Most unanswered requests of a connection."`
	MaxInFlightBytes *Size          `key:"maxInFlightBytes" min:"1" doc:"Most bytes of the unanswered requests of a connection."`
	MaxUnsent        *Size          `key:"maxUnsent" min:"1" doc:"Most bytes of responses that wait for a client that does not read."`
	WriteTimeout     *time.Duration `key:"writeTimeout" doc:"How long a client may read nothing of what waits for it before it is disconnected; 0 means no limit."`
	Framing          string         `key:"framing" enum:"lines headers any" doc:"Framing of messages: one on each line, with header fields as in the Language Server Protocol, or as the client begins (any)."`
	ShutdownTimeout  *time.Duration `key:"shutdownTimeout" min:"1" doc:"How long calls may take to finish when the server shuts down."`
}

// Stdio configures standard input and output.
type Stdio struct {
	Enabled *bool `key:"enabled" doc:"Serve on standard input and output. The default is true if stdio is set, or if no other transport is."`
	Stream
}

// Unix configures a Unix socket.
type Unix struct {
	Path           Path `key:"path" required:"" doc:"Path of the socket."`
	MaxConnections *int `key:"maxConnections" min:"1" doc:"Most clients connected at a time."`
	Stream
}

// HTTP configures Streamable HTTP, HTTP+SSE and WebSockets on one address.
type HTTP struct {
	Addr                  string         `key:"addr" required:"" address:"" doc:"Address to listen on, such as 127.0.0.1:8080, or :8080 for all addresses of this machine."`
	Path                  string         `key:"path" doc:"Path of the MCP endpoint."`
	SSE                   string         `key:"sse" doc:"Path for HTTP+SSE, the transport of 2024-11-05 clients, such as /sse. Off by default."`
	WebSocket             string         `key:"websocket" doc:"Path for WebSockets, such as /ws. Off by default."`
	TLS                   *TLS           `key:"tls" doc:"Serve https and wss. Without it, a proxy in front must."`
	Origins               []string       `key:"origins" doc:"Origins whose pages may send requests, besides the server's own."`
	Hosts                 []string       `key:"hosts" doc:"Hosts that requests may name. If set, it applies to every request; by default only loopback addresses are restricted."`
	TrustedProxies        []string       `key:"trustedProxies" doc:"Networks of proxies whose X-Forwarded-For gives the address of the caller, such as 10.0.0.0/8. Limits count callers without a token by address."`
	Stateless             *bool          `key:"stateless" doc:"Serve legacy clients without sessions."`
	JSONOnly              *bool          `key:"jsonOnly" doc:"Never open an event stream."`
	MaxBody               *Size          `key:"maxBody" min:"1" doc:"Most bytes of a request body, and of a message on a WebSocket."`
	MaxSessions           *int           `key:"maxSessions" min:"1" doc:"Most legacy sessions. The same number applies to open HTTP+SSE streams, and to open WebSockets."`
	MaxInFlight           *int           `key:"maxInFlight" min:"1" doc:"Most unanswered requests of a caller; with HTTP+SSE and WebSockets, of a connection."`
	MaxInFlightTotal      *int           `key:"maxInFlightTotal" min:"1" doc:"Most unanswered requests of all callers of Streamable HTTP."`
	MaxInFlightBytes      *Size          `key:"maxInFlightBytes" min:"1" doc:"Most bytes of the unanswered requests and unread responses of a caller; with HTTP+SSE and WebSockets, of the unanswered requests of a connection."`
	MaxInFlightBytesTotal *Size          `key:"maxInFlightBytesTotal" min:"1" doc:"Most bytes of the unanswered requests and unread responses of all callers of Streamable HTTP."`
	MaxSubscriptions      *int           `key:"maxSubscriptions" min:"1" doc:"Most open streams of a caller of Streamable HTTP that only listen."`
	MaxSubscriptionsTotal *int           `key:"maxSubscriptionsTotal" min:"1" doc:"Most open streams of all callers of Streamable HTTP that only listen."`
	SessionIdle           *time.Duration `key:"sessionIdle" doc:"How long an unused session lives; 0 means forever."`
	KeepAlive             *time.Duration `key:"keepAlive" doc:"How long a stream may be silent before the server sends a comment; 0 means forever."`
	MessageTimeout        *time.Duration `key:"messageTimeout" doc:"How long a message on a WebSocket may take from its first frame to its last; 0 means no limit."`
	WriteTimeout          *time.Duration `key:"writeTimeout" min:"1" doc:"How long a client of HTTP+SSE or a WebSocket may read nothing of what waits for it before it is disconnected."`
	Retry                 *time.Duration `key:"retry" doc:"How long clients wait before they resume a broken stream."`
	ShutdownTimeout       *time.Duration `key:"shutdownTimeout" doc:"How long requests may take to finish when the server shuts down."`
	Health                *bool          `key:"health" doc:"Answer health checks at /livez and /readyz."`
	Drain                 *time.Duration `key:"drain" doc:"How long /readyz reports \"not ready\" before the server stops accepting requests."`
}

// TLS configures the certificate of the server.
type TLS struct {
	Certificate Path `key:"certificate" required:"" doc:"PEM file with the certificate, followed by the intermediate certificates. The server reads it again when it changes."`
	Key         Path `key:"key" required:"" doc:"PEM file with the private key."`
}

// Auth configures which access tokens are accepted.
type Auth struct {
	Issuer           string         `key:"issuer" required:"" doc:"URL of the authorization server."`
	Resource         string         `key:"resource" required:"" doc:"URL of the MCP endpoint as clients know it. Tokens must be issued for it."`
	Audience         []string       `key:"audience" doc:"Other names of the resource in tokens of the authorization server."`
	JWKSURI          string         `key:"jwksURI" doc:"URL of the issuer's keys; by default the issuer's metadata names it."`
	Algorithms       []string       `key:"algorithms" doc:"Signature algorithms of tokens; by default every asymmetric algorithm."`
	AllowUntyped     *bool          `key:"allowUntyped" doc:"Also accept tokens whose typ is missing or JWT. By default it must be at+jwt (RFC 9068). Many authorization servers need this setting."`
	Introspection    *Introspection `key:"introspection" doc:"Ask the authorization server about every token (RFC 7662), for tokens that are not JWTs or that must stop working once they are revoked."`
	DPoP             *DPoP          `key:"dpop" doc:"Accept tokens that are bound to a key of the client (RFC 9449). Without it they are refused. Without fleet, each replica remembers only the proofs that it received itself."`
	Scopes           []string       `key:"scopes" doc:"Scopes that every request needs."`
	ScopesSupported  []string       `key:"scopesSupported" doc:"Scopes that clients may ask for."`
	Anonymous        *bool          `key:"anonymous" doc:"Accept requests without a token, for whatever requires no scopes."`
	Name             string         `key:"name" doc:"Name of the resource, for people."`
	Documentation    string         `key:"documentation" doc:"URL of the documentation for client developers."`
	Policy           string         `key:"policy" doc:"URL of the data policy."`
	Terms            string         `key:"terms" doc:"URL of the terms of service."`
	PrivateNetworks  []string       `key:"privateNetworks" doc:"Private networks that may contain the authorization server, such as 10.1.0.0/16."`
	InsecureLoopback *bool          `key:"insecureLoopback" doc:"Allow an authorization server on this machine, over plain HTTP as well. For development."`
}

// Introspection configures requests to the authorization server about tokens.
type Introspection struct {
	Endpoint     string         `key:"endpoint" required:"" doc:"URL of the introspection endpoint."`
	ClientID     string         `key:"clientID" doc:"Client ID of this server at the authorization server, if the endpoint requires authentication."`
	ClientSecret *Secret        `key:"clientSecret" doc:"Client secret for clientID."`
	CacheTime    *time.Duration `key:"cacheTime" doc:"How long an active token is cached. A revoked token may work that long; 0 asks every time."`
}

// DPoP configures the proofs of tokens that are bound to a key.
type DPoP struct {
	Required *bool   `key:"required" doc:"Refuse tokens that are not bound to a key."`
	NonceKey *Secret `key:"nonceKey" doc:"Require proofs to contain a nonce of the server, made with this key of at least 32 bytes. Every replica needs the same key."`
}

// Middleware configures the middleware around every method.
type Middleware struct {
	Logging     *Logging       `key:"logging" doc:"Log one line for each call, to the log configured under log, or else to slog.Default."`
	Audit       *Audit         `key:"audit" doc:"Append a record of each call (caller, method, outcome) to a file."`
	ErrorCodes  *bool          `key:"errorCodes" doc:"Report failures as JSON-RPC errors instead of tool errors."`
	RateLimit   *RateLimit     `key:"rateLimit" doc:"Limit the calls per second of each caller."`
	Concurrency *Concurrency   `key:"concurrency" doc:"Limit the calls that run at a time."`
	Timeout     *time.Duration `key:"timeout" min:"1" doc:"How long a call of any method that runs code may take."`
	ResultLimit *ResultLimit   `key:"resultLimit" doc:"Limit the size of results."`
	Cache       *Cache         `key:"cache" doc:"Cache the results of tools that only read, for each authenticated caller. Results of unauthenticated callers are not cached."`
}

// Logging configures middleware.Logging.
type Logging struct {
	Arguments        *bool `key:"arguments" doc:"Include the arguments, without secrets."`
	MaxArgumentBytes *Size `key:"maxArgumentBytes" min:"1" doc:"Most bytes of arguments in a line."`
}

// Audit configures middleware.Audit.
type Audit struct {
	File      Path  `key:"file" required:"" doc:"Path of the file."`
	Begin     *bool `key:"begin" doc:"Write a record before the call as well."`
	Arguments *bool `key:"arguments" doc:"Include the arguments, without secrets."`
}

// RateLimit configures middleware.RateLimit.
type RateLimit struct {
	PerSecond float64 `key:"perSecond" required:"" min:"0.000001" doc:"Average calls per second."`
	Burst     int     `key:"burst" required:"" min:"1" doc:"Most calls at once."`
}

// Concurrency configures middleware.Concurrency.
type Concurrency struct {
	Limit int `key:"limit" required:"" min:"1" doc:"Most calls that run. Further calls are refused."`
}

// ResultLimit configures middleware.ResultLimit.
type ResultLimit struct {
	MaxBytes     Size  `key:"maxBytes" required:"" min:"1" doc:"Most bytes of a result."`
	NoTruncation *bool `key:"noTruncation" doc:"Refuse larger results instead of truncating them."`
}

// Cache configures middleware.Cache.
type Cache struct {
	TTL      time.Duration `key:"ttl" required:"" min:"1" doc:"How long a result is cached."`
	Entries  *int          `key:"entries" min:"1" doc:"Most cached results."`
	MaxBytes *Size         `key:"maxBytes" min:"1" doc:"Most bytes of a cached result."`
}

// A Size is a number of bytes: 4096, 64KiB, 4MiB, 1GiB.
type Size int64

// A Path is the path of a file. It is relative to the folder of the configuration file, also in the
// environment.
type Path string

// A Secret is a value that a reference names. It prints as the reference.
type Secret struct {
	source
	value []byte
}

// Bytes returns the value.
func (s Secret) Bytes() []byte { return s.value }

// A source is where a value is from. It is all that is printed of a secret.
type source struct{ from string }

// String returns the source, never the value.
func (s source) String() string { return s.from }

// GoString returns the source, never the value.
func (s source) GoString() string { return s.from }

// LogValue returns the source, never the value.
func (s source) LogValue() slog.Value { return slog.StringValue(s.from) }

// MarshalText writes the source, never the value.
func (s source) MarshalText() ([]byte, error) { return []byte(s.from), nil }
