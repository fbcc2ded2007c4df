// Package middleware holds middleware for mcpkit servers, one a file: put them on with Server.Use, around one service with
// mcpkit.Around, around what has a tag or a name with mcpkit.Server.UseFor, and around what a function picks with [When].
//
//	srv.Use(middleware.Logging(logger), middleware.RateLimit(10, 20))
//	srv.UseFor(mcpkit.OnTag("admin"), middleware.Scopes("admin"))
//
// Each is a mcpkit.Middleware: it sees every request of every method and every revision once, also of what is registered
// later, and is safe for concurrent use. The server recovers from panics and bounds tool calls in time by itself.
//
// What needs more than the standard library, or net/http, lies in packages of its own below this one.
package middleware
