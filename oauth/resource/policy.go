package resource

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// Issuers admits only principals of these issuers.
func Issuers(issuers ...string) Policy {
	return func(_ context.Context, p *oauth.Principal) error {
		if !slices.Contains(issuers, p.Issuer) {
			return &oauth.TokenError{Reason: "its issuer is not admitted"}
		}
		return nil
	}
}

// Clients admits only requests of these OAuth clients, for any user.
func Clients(ids ...string) Policy {
	return func(_ context.Context, p *oauth.Principal) error {
		if p.ClientID == "" || !slices.Contains(ids, p.ClientID) {
			return fmt.Errorf("the client %q is not admitted", p.ClientID)
		}
		return nil
	}
}

// Tenants admits only principals of these tenants. It reads the claim "tid", as Entra ID has it, or
// "tenant".
func Tenants(ids ...string) Policy {
	return func(_ context.Context, p *oauth.Principal) error {
		for _, claim := range []string{"tid", "tenant"} {
			if v, ok := p.Claims[claim]; ok {
				if id, ok := v.(string); ok && slices.Contains(ids, id) {
					return nil
				}
				break
			}
		}
		return fmt.Errorf("the tenant is not admitted")
	}
}

// Groups admits only principals in at least one of these groups. It reads the claims "groups" and
// "roles" (RFC 9068, section 2.2.3.1), each a list or a single name.
func Groups(names ...string) Policy {
	return func(_ context.Context, p *oauth.Principal) error {
		for _, claim := range []string{"groups", "roles"} {
			for _, have := range values(p.Claims[claim]) {
				if name, ok := have.(string); ok && slices.Contains(names, name) {
					return nil
				}
			}
		}
		return fmt.Errorf("the principal is in none of the groups %q", names)
	}
}

// RequireClaim admits only principals with one of the values in a claim, which may be a list.
// Without values, the claim only has to exist. Numbers are compared as float64, as in JSON.
func RequireClaim(name string, allowed ...any) Policy {
	return func(_ context.Context, p *oauth.Principal) error {
		claim, ok := p.Claims[name]
		if !ok {
			return fmt.Errorf("the claim %q is missing", name)
		}
		if len(allowed) == 0 {
			return nil
		}
		for _, have := range values(claim) {
			switch have.(type) {
			case string, float64, bool:
				if slices.Contains(allowed, have) {
					return nil
				}
			}
		}
		return fmt.Errorf("the claim %q has none of the values %v", name, allowed)
	}
}

// values returns the elements of a list, or a single value as a list.
func values(claim any) []any {
	switch claim := claim.(type) {
	case nil:
		return nil
	case []any:
		return claim
	}
	return []any{claim}
}
