package resource

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/oauth"
)

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
