// Package oauthclient logs an MCP client in to an MCP server and puts access tokens on its
// requests.
//
// A [Transport] is the transport of an http.Client. It sends a request. If the server answers with
// a challenge, the transport finds the authorization server, gets a token with one of the grants
// ([AuthorizationCode], [ClientCredentials], [EnterpriseManaged], [WorkloadIdentity]), and sends
// the request again.
//
// The transport does not trust the server or its metadata. It compares issuers byte by byte,
// connects to endpoints by https at public addresses only, and sends a token only to the origin
// that it was requested for.
//
// An authorization server that rejects a request causes a [*GrantError]. [ErrNotSaved] and
// [ErrClosed] are the other errors that programs test for. The zero value of [Options] is ready to
// use. A Transport and the stores of this package are safe for concurrent use.
//
// The package follows the authorization chapter of the MCP specification, OAuth 2.1 and the RFCs
// that each declaration names.
package oauthclient
