package mcpkit

// The markers say in a service's annotation block what its methods are. The block is a blank field of anonymous struct
// type; its field names are method names:
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
	// Tool marks a method as a tool. Without a block, an exported method is one.
	Tool struct{}
	// Resource marks a method as a resource or, when its uri has variables, a resource template.
	Resource struct{}
	// Prompt marks a method as a prompt.
	Prompt struct{}
	// Skip marks an exported method that is not for clients.
	Skip struct{}
	// Info, as the type of a blank field of a service, carries the server's name, version, title and so on in its tags.
	Info struct{}
)
