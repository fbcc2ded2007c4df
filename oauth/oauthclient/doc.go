// Package oauthclient asks for tokens on behalf of an MCP client, and puts them on its requests.
//
// A [Transport] stands below an http.Client. It sends a request; where the server challenges it, it finds the
// authorization server, gets a token by one of the grants ([AuthorizationCode], [ClientCredentials],
// [EnterpriseManaged], [WorkloadIdentity]), and sends the request again. What the server and its metadata say is
// believed only as far as the specification allows: issuers are compared byte by byte, endpoints have to be https at
// public addresses, and a token goes to the origin that it was asked for and nowhere else.
package oauthclient
