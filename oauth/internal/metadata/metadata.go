// Package metadata has the documents that describe protected resources, authorization servers and
// clients, their well-known URLs, and the challenges that name them. It reads documents from
// untrusted URLs without server-side request forgery: it sends no requests to addresses of this
// machine or its network, and follows no redirects to another origin.
//
// The package validates no content: programs that read a document must check it. The documents have the members that clients and servers of MCP use. The package has no state,
// so all functions are safe for concurrent use. Sources are RFC 7591, RFC
// 8414, RFC 9110, RFC 9728 and OpenID Connect Discovery 1.0.
package metadata

// ProtectedResource is the metadata of a protected resource (RFC 9728, section 2).
type ProtectedResource struct {
	// Resource is the identifier of the resource: for an MCP server the URL of its endpoint.
	Resource string `json:"resource"`
	// AuthorizationServers are the issuers whose tokens the resource accepts. MCP requires at least
	// one.
	AuthorizationServers []string `json:"authorization_servers,omitempty"`
	// ScopesSupported are the scopes that clients may ask for.
	ScopesSupported []string `json:"scopes_supported,omitempty"`
	// BearerMethodsSupported lists how tokens may be sent. MCP allows only "header".
	BearerMethodsSupported        []string `json:"bearer_methods_supported,omitempty"`
	ResourceName                  string   `json:"resource_name,omitempty"`
	DPoPSigningAlgValuesSupported []string `json:"dpop_signing_alg_values_supported,omitempty"`
	DPoPBoundAccessTokensRequired bool     `json:"dpop_bound_access_tokens_required,omitzero"`
}

// AuthorizationServer is the metadata of an authorization server (RFC 8414, section 2; OpenID
// Connect Discovery 1.0, section 3), with members of later specifications. It has the members that
// clients and resources read.
type AuthorizationServer struct {
	// Issuer must be identical to the issuer that the document was looked up for (RFC 8414, section
	// 3.3).
	Issuer                                     string   `json:"issuer"`
	AuthorizationEndpoint                      string   `json:"authorization_endpoint"`
	TokenEndpoint                              string   `json:"token_endpoint"`
	JWKSURI                                    string   `json:"jwks_uri"`
	RegistrationEndpoint                       string   `json:"registration_endpoint"`
	RevocationEndpoint                         string   `json:"revocation_endpoint"`
	ScopesSupported                            []string `json:"scopes_supported"`
	TokenEndpointAuthMethodsSupported          []string `json:"token_endpoint_auth_methods_supported"`
	TokenEndpointAuthSigningAlgValuesSupported []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	// CodeChallengeMethodsSupported must contain "S256"; otherwise MCP clients reject the server.
	CodeChallengeMethodsSupported []string `json:"code_challenge_methods_supported"`
	// ISSParameterSupported says that responses of the authorization endpoint carry iss (RFC 9207).
	ISSParameterSupported bool `json:"authorization_response_iss_parameter_supported"`
	// ClientIDMetadataDocumentSupported says that a client ID may be the URL of a [Client]
	// document.
	ClientIDMetadataDocumentSupported bool `json:"client_id_metadata_document_supported"`
	// AuthorizationGrantProfilesSupported contains "urn:ietf:params:oauth:grant-profile:id-jag" if
	// the server accepts identity assertions of an enterprise's identity provider.
	AuthorizationGrantProfilesSupported []string `json:"authorization_grant_profiles_supported"`
}

// Client describes a client: the body of a registration request (RFC 7591, section 2), or a Client
// ID Metadata Document.
type Client struct {
	// ClientID is the URL of a Client ID Metadata Document. A registration request has no ClientID.
	ClientID                string   `json:"client_id,omitempty"`
	ClientName              string   `json:"client_name,omitempty"`
	RedirectURIs            []string `json:"redirect_uris,omitempty"`
	GrantTypes              []string `json:"grant_types,omitempty"`
	ResponseTypes           []string `json:"response_types,omitempty"`
	TokenEndpointAuthMethod string   `json:"token_endpoint_auth_method,omitempty"`
	// ApplicationType is "native" for programs on the user's machine and "web" for others. MCP
	// requires it in registration requests.
	ApplicationType string `json:"application_type,omitempty"`
}

// Registration is the response to a registration request (RFC 7591, section 3.2.1).
type Registration struct {
	Client
	ClientSecret string `json:"client_secret,omitempty"`
	// ClientSecretExpiresAt is a Unix time in seconds. Zero means never.
	ClientSecretExpiresAt int64 `json:"client_secret_expires_at,omitzero"`
}
