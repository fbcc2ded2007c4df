package resource

import "github.com/mcpkit/mcpkit-go/oauth/internal/dpop"

// LimitedDPoP returns options with a store of up to total proofs, and up to perKey proofs by one key.
func LimitedDPoP(total, perKey int) *DPoP { return &DPoP{replays: dpop.NewReplays(total, perKey)} }
