// Package middleware holds middleware for mcpkit servers, one a file: put them on with Server.Use.
//
//	srv.Use(middleware.Logging(logger), middleware.Timeout(30*time.Second), middleware.RateLimit(10, 20))
//
// Each is a mcpkit.Middleware: it runs once for every request of every method and every revision, and is safe for
// concurrent use. The server recovers from panics and bounds tool calls in time by itself.
package middleware
