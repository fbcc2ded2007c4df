// Package middleware has middleware for mcpkit servers. Add it with Server.Use for all calls, with
// mcpkit.Around for one service, and with [When] for the calls that a function selects.
//
//	admin := func(call *mcpkit.Call) bool { return slices.Contains(call.Tags(), "admin") }
//	srv.Use(
//		middleware.Logging(logger), middleware.RateLimit(10, 20),
//		middleware.When(admin, middleware.Scopes("admin")),
//	)
//
// Log: [Logging], [Audit], [Recover]. Limit: [RateLimit], [Concurrency],
// [Timeout], [ResultLimit]. Guard: [Scopes], [Authorize], [GuardArguments], [GuardResult].
// Save work: [Cache]. For programs without a model: [ErrorCodes].
//
// Middleware sees each request of each method and protocol version once, and is safe for concurrent
// use. The functions take what every user has to decide, then options. They panic on values that
// cannot work, such as a negative limit.
//
// The server itself recovers from panics and limits the time of tool calls. Middleware that needs
// more than the standard library, or net/http, is in packages below this one.
package middleware
