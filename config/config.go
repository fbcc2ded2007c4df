// Package config makes servers of what a file and the environment say:
//
//	c, err := config.Load("server.yaml")
//	err = c.Serve(ctx, &Notes{})
//
// A file is YAML or JSON. Everything in it can be said by a variable of the environment too, which then holds: code comes
// first, the file overrides code, and the environment overrides the file. Keys and variables that are not known are errors,
// and so is every value that does not fit; the error has all of them, each with its file, line and key. All keys are listed in
// docs/reference/config.md.
//
// Secrets are never written into a file: their values are references, env:NAME to a variable and file:PATH to a file, and they
// are not printed by anything here.
package config

import (
	"log/slog"
	"net"
	"time"
)

// A Config is what was said. The zero Config says nothing: a server on standard input and output, as mcpkit.Serve makes it.
// What is nil or empty was not said.
type Config struct {
	Server     Server     `key:"server" doc:"What the server is."`
	Log        Log        `key:"log" doc:"The log of the program, on standard error. Said at all, it replaces the logger that code gives."`
	Transport  Transport  `key:"transport" doc:"How the server is reached: on standard input and output when nothing is said. Several ways may be."`
	Auth       *Auth      `key:"auth" doc:"Who may ask: access tokens that an authorization server issues. For HTTP only."`
	Middleware Middleware `key:"middleware" doc:"What stands around every method, from the outside to the inside in this order, inside of what code gives to Use."`

	onListen func(net.Addr) // of tests
}

// Server is what the server is.
type Server struct {
	Name           string         `key:"name" doc:"Its name; needs version, too."`
	Version        string         `key:"version" doc:"Its version."`
	Instructions   string         `key:"instructions" doc:"How models are to use it."`
	PageSize       *int           `key:"pageSize" min:"1" doc:"Items of a page of a list."`
	ListTTL        *time.Duration `key:"listTTL" doc:"How long clients may keep lists."`
	ToolTimeout    *time.Duration `key:"toolTimeout" doc:"How long a tool call may take; 0 for no limit. A timeout tag of a tool overrides it."`
	MaxResultBytes *Size          `key:"maxResultBytes" min:"1" doc:"Bound of what is collected from readers and iterators that methods return."`
	ExposeErrors   *bool          `key:"exposeErrors" doc:"Show clients the text of every error."`
	Repair         *bool          `key:"repair" doc:"Accept arguments that are wrong in an unambiguous way."`
	StepUp         *bool          `key:"stepUp" doc:"Let principals see what they lack scopes for."`
	TrustLocal     []string       `key:"trustLocal" doc:"Scopes of who runs the server on standard input and output."`
	StateKeys      []Secret       `key:"stateKeys" doc:"Keys of at least 32 bytes, the current one first, that seal what travels through clients; every replica needs the same. A file is taken as it is but for white space at its end; base64: before the reference decodes it."`
}

// Log is the log of the program.
type Log struct {
	Level  *slog.Level `key:"level" doc:"The least level that is written: debug, info, warn or error."`
	Format string      `key:"format" enum:"text json" doc:"How lines look."`
}

// Transport is how the server is reached.
type Transport struct {
	Stdio *bool `key:"stdio" doc:"Serve on standard input and output."`
	HTTP  *HTTP `key:"http" doc:"Serve over Streamable HTTP, and beside it over HTTP+SSE and WebSockets."`
	Unix  *Unix `key:"unix" doc:"Serve on a Unix socket, to which only the user can connect who runs the server."`
	TCP   *TCP  `key:"tcp" doc:"Serve on a port, a message a line. Whoever reaches it is let in, and is nobody: for loopback addresses."`
}

// Unix is a server on a Unix socket.
type Unix struct {
	Path            Path           `key:"path" required:"" doc:"Where the socket is made."`
	MaxConnections  *int           `key:"maxConnections" min:"1" doc:"Bound of clients at a time."`
	MaxMessage      *Size          `key:"maxMessage" min:"1" doc:"Bound of a message."`
	Framing         string         `key:"framing" enum:"lines headers any" doc:"How messages are told apart: one a line, by header fields as in the Language Server Protocol, or as the client begins."`
	ShutdownTimeout *time.Duration `key:"shutdownTimeout" min:"1" doc:"How long calls may take to finish when the server ends."`
}

// TCP is a server on a port.
type TCP struct {
	Addr            string         `key:"addr" required:"" address:"" doc:"Address to listen on: 127.0.0.1:7000."`
	MaxConnections  *int           `key:"maxConnections" min:"1" doc:"Bound of clients at a time."`
	MaxMessage      *Size          `key:"maxMessage" min:"1" doc:"Bound of a message."`
	Framing         string         `key:"framing" enum:"lines headers any" doc:"How messages are told apart: one a line, by header fields as in the Language Server Protocol, or as the client begins."`
	ShutdownTimeout *time.Duration `key:"shutdownTimeout" min:"1" doc:"How long calls may take to finish when the server ends."`
}

// HTTP is a server of the bindings over HTTP, on one address.
type HTTP struct {
	Addr            string         `key:"addr" required:"" address:"" doc:"Address to listen on: 127.0.0.1:8080, or :8080 for all of this machine."`
	Path            string         `key:"path" doc:"Path of the MCP endpoint."`
	SSE             string         `key:"sse" doc:"Path at which clients of 2024-11-05 are served, by HTTP+SSE: /sse. Nobody is when nothing is said."`
	WebSocket       string         `key:"websocket" doc:"Path at which WebSockets are served: /ws. None are when nothing is said."`
	TLS             *TLS           `key:"tls" doc:"Serve https and wss. Without it a proxy in front has to."`
	Origins         []string       `key:"origins" doc:"Origins whose pages may send requests, besides the server's own."`
	Hosts           []string       `key:"hosts" doc:"Hosts that requests to a loopback address may name."`
	Stateless       *bool          `key:"stateless" doc:"Serve legacy clients without sessions."`
	JSONOnly        *bool          `key:"jsonOnly" doc:"Never open an event stream."`
	MaxBody         *Size          `key:"maxBody" min:"1" doc:"Bound of the body of a request, and of a message on a WebSocket."`
	MaxSessions     *int           `key:"maxSessions" min:"1" doc:"Bound of legacy sessions; as many streams of HTTP+SSE and as many WebSockets may be open."`
	SessionIdle     *time.Duration `key:"sessionIdle" doc:"How long a session lives that is not used; 0 for ever."`
	KeepAlive       *time.Duration `key:"keepAlive" doc:"How long a stream may be silent before a comment is sent; 0 for ever."`
	Retry           *time.Duration `key:"retry" doc:"How long clients are to wait before they come back to a stream that broke."`
	ShutdownTimeout *time.Duration `key:"shutdownTimeout" doc:"How long requests may take to finish when the server ends."`
	Health          *bool          `key:"health" doc:"Answer health checks at /livez and /readyz."`
	Drain           *time.Duration `key:"drain" doc:"How long /readyz says no before the server takes no more requests."`
}

// TLS is by what the server is known.
type TLS struct {
	Certificate Path `key:"certificate" required:"" doc:"PEM file of the certificate, with those between it and the root after it. Read again when it changes."`
	Key         Path `key:"key" required:"" doc:"PEM file of its private key."`
}

// Auth says whose access tokens are taken.
type Auth struct {
	Issuer           string         `key:"issuer" required:"" doc:"URL of the authorization server."`
	Resource         string         `key:"resource" required:"" doc:"URL of the MCP endpoint as clients know it; tokens have to be for it."`
	Audience         []string       `key:"audience" doc:"What else the authorization server calls the resource."`
	JWKSURI          string         `key:"jwksURI" doc:"Where its keys are, unless its metadata says so."`
	Algorithms       []string       `key:"algorithms" doc:"What tokens may be signed by; every asymmetric algorithm when nothing is said."`
	AllowUntyped     *bool          `key:"allowUntyped" doc:"Also accept tokens whose typ is missing or JWT; by default it must be at+jwt (RFC 9068). Many authorization servers need it."`
	Introspection    *Introspection `key:"introspection" doc:"Ask the authorization server about every token, where tokens are no JWTs or have to end when they are revoked (RFC 7662)."`
	DPoP             *DPoP          `key:"dpop" doc:"Take tokens that are bound to a key of the client (RFC 9449), which without it are refused. Each replica remembers the proofs that it saw, and no others."`
	Leeway           *time.Duration `key:"leeway" doc:"How much clocks may differ; 0 for not at all."`
	Scopes           []string       `key:"scopes" doc:"Scopes that every request needs."`
	ScopesSupported  []string       `key:"scopesSupported" doc:"Scopes that clients may ask for."`
	Anonymous        *bool          `key:"anonymous" doc:"Let requests without a token pass, to what demands no scopes."`
	Name             string         `key:"name" doc:"What the resource is called, for people."`
	Documentation    string         `key:"documentation" doc:"URL of a page for people who write clients."`
	Policy           string         `key:"policy" doc:"URL of a page on what is done with data."`
	Terms            string         `key:"terms" doc:"URL of the terms of service."`
	PrivateNetworks  []string       `key:"privateNetworks" doc:"Networks that are not public in which the authorization server may be: 10.1.0.0/16."`
	InsecureLoopback *bool          `key:"insecureLoopback" doc:"Let the authorization server be on this machine, also by http. For development."`
}

// Introspection is how an authorization server is asked about tokens.
type Introspection struct {
	Endpoint     string         `key:"endpoint" required:"" doc:"URL that is asked."`
	ClientID     string         `key:"clientID" doc:"What the authorization server calls this resource, if it has to say who it is."`
	ClientSecret *Secret        `key:"clientSecret" doc:"By what it proves that."`
	CacheTime    *time.Duration `key:"cacheTime" doc:"For how long a token is not asked about again, and may outlive its revocation; 0 asks every time."`
}

// DPoP is how proofs of keys are checked.
type DPoP struct {
	Required   *bool          `key:"required" doc:"Refuse tokens that are not bound to a key."`
	Algorithms []string       `key:"algorithms" doc:"What proofs may be signed by; every asymmetric algorithm when nothing is said."`
	MaxAge     *time.Duration `key:"maxAge" min:"1" doc:"How old a proof may be."`
	NonceKey   *Secret        `key:"nonceKey" doc:"Demand that proofs hold a nonce of the server, made by this key of at least 32 bytes; every replica needs the same."`
}

// Middleware is what stands around every method.
type Middleware struct {
	Logging     *Logging       `key:"logging" doc:"One line per call, in the log that log describes, and otherwise in that of slog.Default."`
	Audit       *Audit         `key:"audit" doc:"An append-only file of who called what with which outcome."`
	ErrorCodes  *bool          `key:"errorCodes" doc:"Answer failures by JSON-RPC codes."`
	RateLimit   *RateLimit     `key:"rateLimit" doc:"Calls per second of each caller."`
	Concurrency *Concurrency   `key:"concurrency" doc:"Calls at a time."`
	Timeout     *time.Duration `key:"timeout" min:"1" doc:"How long every method that runs code may take."`
	ResultLimit *ResultLimit   `key:"resultLimit" doc:"Size of results."`
	Cache       *Cache         `key:"cache" doc:"Keep the results of tools that only read."`
	Retry       *Retry         `key:"retry" doc:"Repeat calls that failed of tools that may be repeated."`
}

// Logging is middleware.Logging.
type Logging struct {
	Arguments        *bool `key:"arguments" doc:"Write the arguments too, without secrets."`
	MaxArgumentBytes *Size `key:"maxArgumentBytes" min:"1" doc:"How much of them."`
}

// Audit is middleware.Audit.
type Audit struct {
	File      string `key:"file" required:"" doc:"Where it is."`
	Sync      *bool  `key:"sync" doc:"Wait for the disk after each record."`
	Begin     *bool  `key:"begin" doc:"Write a record before the call, too."`
	Arguments *bool  `key:"arguments" doc:"Write the arguments too, without secrets."`
}

// RateLimit is middleware.RateLimit.
type RateLimit struct {
	PerSecond float64 `key:"perSecond" required:"" min:"0.000001" doc:"How many calls, in the long run."`
	Burst     int     `key:"burst" required:"" min:"1" doc:"How many at once."`
}

// Concurrency is middleware.Concurrency.
type Concurrency struct {
	Limit int  `key:"limit" required:"" min:"1" doc:"How many run."`
	Queue *int `key:"queue" min:"0" doc:"How many wait; further ones are refused."`
}

// ResultLimit is middleware.ResultLimit.
type ResultLimit struct {
	MaxBytes Size  `key:"maxBytes" required:"" min:"1" doc:"Bound of a result."`
	Strict   *bool `key:"strict" doc:"Refuse what is larger in place of cutting it."`
}

// Cache is middleware.Cache.
type Cache struct {
	TTL      time.Duration `key:"ttl" required:"" min:"1" doc:"For how long."`
	Entries  *int          `key:"entries" min:"1" doc:"How many."`
	MaxBytes *Size         `key:"maxBytes" min:"1" doc:"Bound of one."`
}

// Retry is middleware.Retry.
type Retry struct {
	Attempts *int           `key:"attempts" min:"1" doc:"How often in all."`
	Backoff  *time.Duration `key:"backoff" doc:"How long to wait before the second attempt; longer before further ones."`
}

// A Size is a number of bytes: 4096, 64KiB, 4MiB, 1GiB.
type Size int64

// A Path is that of a file. A relative one begins at the folder of the file that says it, and one of the environment as if that file did.
type Path string

// A Secret is a value that was read by a reference. It does not print.
type Secret struct {
	from  string // the reference
	value []byte
}

// Bytes is the value.
func (s Secret) Bytes() []byte { return s.value }

// String is the reference, never the value.
func (s Secret) String() string { return s.from }

// GoString is the reference, never the value.
func (s Secret) GoString() string { return s.from }

// LogValue is the reference, never the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.from) }

// MarshalText writes the reference, never the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.from), nil }
