// Package mcpkit turns plain Go structs into MCP (Model Context Protocol) servers.
//
// Exported methods become tools, resources and prompts. Struct tags set their behaviour, and doc
// comments describe them:
//
//	// Notes keeps short notes and finds them again.
//	type Notes struct {
//		_ mcpkit.Info `name:"notes" version:"1.2.0"`
//		_ struct {
//			Search mcpkit.Tool     `hints:"readonly,idempotent"`
//			Note   mcpkit.Resource `uri:"note://{id}" mime:"text/markdown"`
//		}
//	}
//
//	func main() {
//		if err := mcpkit.Serve(&Notes{}); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// The package has these parts:
//
//   - Describe a service with tags: [Info], [Tool], [Resource], [Prompt], [Skip]; [Provide]
//     for parameters.
//   - Serve it: [Serve], or [New] and [Server.Serve], or any transport with a [Server] as its
//     handler. [Option] lists the options.
//   - Add to a server: [Server.Register], [Server.Mount], [NewTool], [NewPrompt] and [NewResource]
//     with [Server.Add], [Server.AddTool] and its like for complete definitions, and [Handle] for
//     methods of your own.
//   - In a method: [Call] for progress, logs and the caller; [Elicit], [Confirm], [Choose], [Sample],
//     [Roots], [Ask] and [Once] for questions to the user; [Image], [Blob], [Link] and so on for
//     results.
//   - Errors: [Errorf] for texts that callers may see, [ErrNotFound], [CodedError],
//     [DetailedError], [RetryableError].
//   - Middleware: [Server.Use], [Around], [Handler], [Result].
//   - Extensions of the protocol: [Extension] with [Extend], [NewMethod], [NewTopic] and [ItemSet].
//   - Authorization: scopes in tags, with [Authenticated], [TrustLocal] or [StepUp].
//
// A Server supports all five protocol versions at once and determines the version of each request.
// docs/design/architecture.md follows a request through the code.
package mcpkit
