package main

import "github.com/mcpkit/mcpkit-go/oauth"

// Whoami says who is calling.
func (*Notes) Whoami(user *oauth.Principal) string {
	if user == nil {
		return "nobody"
	}
	return user.Subject
}
