package mcpkit

// The markers say in a service's annotation block what its methods are. The block is a blank field
// of anonymous struct type; its field names are method names:
//
//	type Notes struct {
//		_ struct {
//			Search mcpkit.Tool     `hints:"readonly"`
//			Note   mcpkit.Resource `uri:"note://{id}"`
//			Ask    mcpkit.Prompt   `params:"topic,style?"`
//			Reload mcpkit.Skip
//		}
//	}
//
// They take no space. The tags that each takes are listed in docs/reference/tags.md.
type (
	// Tool marks a method as a tool. Exported methods that the block does not list are tools. The
	// definition that clients get is a [protocol.Tool].
	Tool struct{}
	// Resource marks a method as a resource or, if its URI has variables, as a resource template.
	Resource struct{}
	// Prompt marks a method as a prompt.
	Prompt struct{}
	// Skip hides an exported method from clients.
	Skip struct{}
	// Info is the type of a blank field of a service, whose tags set the server's name, version,
	// title and so on.
	Info struct{}
)
