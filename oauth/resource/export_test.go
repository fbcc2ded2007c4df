package resource

import "github.com/mcpkit/mcpkit-go/oauth/internal/dpop"

// LimitedDPoP returns options with a store of up to total proofs.
func LimitedDPoP(total int) *DPoP { return &DPoP{replays: dpop.NewReplays(total)} }

// Helpers of the tests inside of the package.
var (
	RSAKeys = rsaKeys
	Sign    = sign
	With    = with
)
