// Package mcpkit turns plain Go structs into MCP (Model Context Protocol) servers.
//
// Exported methods become tools, resources and prompts. What changes behaviour stands in struct
// tags, what describes stands in doc comments:
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
// A [Server] is a transport.Handler: it understands all five protocol revisions, decides for each
// request which one it is, and leaves framing to the transports. Every request of every revision
// walks the same way: era and version, the middleware chain, the method, the result (see
// docs/design/architecture.md).
package mcpkit
