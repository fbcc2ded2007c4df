package protocol

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// An Implementation names a client or a server and its version.
type Implementation struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"` // for display; 2025-06-18 and later
	Version     string `json:"version"`
	Description string `json:"description,omitzero"` // 2025-11-25 and later
	WebsiteURL  string `json:"websiteUrl,omitzero"`  // 2025-11-25 and later
	Icons       []Icon `json:"icons,omitzero"`       // 2025-11-25 and later
}

// An Icon is an image that a client may show. Since 2025-11-25.
type Icon struct {
	Src      string   `json:"src"` // an https or data URI
	MIMEType string   `json:"mimeType,omitzero"`
	Sizes    []string `json:"sizes,omitzero"` // "48x48", or "any" for a scalable image
	Theme    string   `json:"theme,omitzero"` // "light" or "dark"
}

// InitializeParams are the params of initialize, which opens a legacy session.
type InitializeParams struct {
	ProtocolVersion Version            `json:"protocolVersion"`
	Capabilities    ClientCapabilities `json:"capabilities"`
	ClientInfo      Implementation     `json:"clientInfo"`
	Meta            Meta               `json:"_meta,omitzero"`
}

// An InitializeResult is the result of initialize.
type InitializeResult struct {
	ProtocolVersion Version            `json:"protocolVersion"`
	Capabilities    ServerCapabilities `json:"capabilities"`
	ServerInfo      Implementation     `json:"serverInfo"`
	Instructions    string             `json:"instructions,omitzero"`
	Meta            Meta               `json:"_meta,omitzero"`
}

// A DiscoverResult lists the versions and the capabilities of a modern server.
type DiscoverResult struct {
	SupportedVersions []Version          `json:"supportedVersions"`
	Capabilities      ServerCapabilities `json:"capabilities"`
	Instructions      string             `json:"instructions,omitzero"`
	Cache
	ResultType string `json:"resultType,omitzero"`
	Meta       Meta   `json:"_meta,omitzero"`
}

// MarshalJSON writes the result; nil versions are written as [].
func (r DiscoverResult) MarshalJSON() ([]byte, error) {
	type plain DiscoverResult
	return jsonx.Marshal(plain(r))
}

// Result types. Extensions may define more.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
)

// EmptyParams are params without members of their own: those of ping, server/discover, roots/list,
// notifications/initialized and the list-changed notifications.
type EmptyParams struct {
	Meta Meta `json:"_meta,omitzero"`
}

// An EmptyResult is a result without members of its own.
type EmptyResult struct {
	ResultType string `json:"resultType,omitzero"` // modern
	Meta       Meta   `json:"_meta,omitzero"`
}

// Cache says for how long and by whom a modern result may be cached. The zero Cache is not written,
// which is right for legacy peers. Modern results of list methods, server/discover and
// resources/read must set both fields.
type Cache struct {
	TTLMs      *int64 `json:"ttlMs,omitzero"`      // milliseconds, 0 or more
	CacheScope string `json:"cacheScope,omitzero"` // CachePublic or CachePrivate
}

// Values of [Cache.CacheScope]: everybody may share the cached result, or only requests with the
// same authorization.
const (
	CachePublic  = "public"
	CachePrivate = "private"
)

// ClientCapabilities say what a client supports. It does not support what a nil member stands for;
// an empty member means support.
type ClientCapabilities struct {
	Roots        *RootsCapability       `json:"roots,omitzero"`
	Sampling     *SamplingCapability    `json:"sampling,omitzero"`
	Elicitation  *ElicitationCapability `json:"elicitation,omitzero"` // 2025-06-18 and later
	Tasks        json.RawMessage        `json:"tasks,omitzero"`       // 2025-11-25 only
	Experimental map[string]Object      `json:"experimental,omitzero"`
	Extensions   map[string]Object      `json:"extensions,omitzero"`
}

// A RootsCapability says that a client has roots.
type RootsCapability struct {
	ListChanged bool `json:"listChanged,omitzero"` // legacy
}

// A SamplingCapability says what sampling a client supports.
type SamplingCapability struct {
	Context Object `json:"context,omitzero"` // includeContext; 2025-11-25 and later
	Tools   Object `json:"tools,omitzero"`   // tools and toolChoice; 2025-11-25 and later
}

// An ElicitationCapability says how a client can ask its user. Without any member it means forms
// only.
type ElicitationCapability struct {
	Form Object `json:"form,omitzero"` // 2025-11-25 and later
	URL  Object `json:"url,omitzero"`  // 2025-11-25 and later
}

// SupportsForm reports whether the client can show forms.
func (c *ElicitationCapability) SupportsForm() bool {
	return c != nil && (c.Form != nil || c.URL == nil)
}

// SupportsURL reports whether the client can send its user to URLs.
func (c *ElicitationCapability) SupportsURL() bool { return c != nil && c.URL != nil }

// ServerCapabilities say what a server offers. It does not offer what a nil member stands for; an
// empty member means that it does.
type ServerCapabilities struct {
	Logging      Object               `json:"logging,omitzero"`
	Completions  Object               `json:"completions,omitzero"` // 2025-03-26 and later
	Prompts      *ListCapability      `json:"prompts,omitzero"`
	Resources    *ResourcesCapability `json:"resources,omitzero"`
	Tools        *ListCapability      `json:"tools,omitzero"`
	Tasks        json.RawMessage      `json:"tasks,omitzero"`  // 2025-11-25 only
	Events       Object               `json:"events,omitzero"` // beside the extension, for clients of today
	Experimental map[string]Object    `json:"experimental,omitzero"`
	Extensions   map[string]Object    `json:"extensions,omitzero"`
}

// ListChanges returns the list-changed notifications that the server sends.
func (c *ServerCapabilities) ListChanges() SubscriptionFilter {
	return SubscriptionFilter{
		ToolsListChanged:     c.Tools != nil && c.Tools.ListChanged,
		PromptsListChanged:   c.Prompts != nil && c.Prompts.ListChanged,
		ResourcesListChanged: c.Resources != nil && c.Resources.ListChanged,
	}
}

// A ListCapability says that a server has tools or prompts, and whether it sends list-changed
// notifications for them.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
}

// A ResourcesCapability says that a server has resources.
type ResourcesCapability struct {
	Subscribe   bool `json:"subscribe,omitzero"` // sends updates of single resources
	ListChanged bool `json:"listChanged,omitzero"`
}

// ListParams are the params of the four list methods.
type ListParams struct {
	Cursor *string `json:"cursor,omitzero"` // opaque; nil for the first page; an empty string is a cursor too
	Meta   Meta    `json:"_meta,omitzero"`
}

// CancelledParams are the params of notifications/cancelled: the sender no longer wants the
// response to a request.
type CancelledParams struct {
	RequestID jsonrpc.ID `json:"requestId,omitzero"` // absent only in 2025-11-25
	Reason    string     `json:"reason,omitzero"`
	Meta      Meta       `json:"_meta,omitzero"`
}
