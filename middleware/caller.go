package middleware

import (
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A KeyOption returns the key of a call. Calls with equal keys share a limit of [RateLimit] or
// [Concurrency]. See [By].
type KeyOption func(*mcpkit.Call) any

// By gives each key its own limit. The key function is [CallerOf], [TargetOf], [CallerAndTargetOf]
// or a function of the program. By panics if key is nil.
func By[K comparable](key func(*mcpkit.Call) K) KeyOption {
	if key == nil {
		panic("middleware: By: the key function is nil")
	}
	return func(call *mcpkit.Call) any { return key(call) }
}

// keyOf returns the last of the options, or otherwise if there are none.
func keyOf(opts []KeyOption, otherwise KeyOption) KeyOption {
	if len(opts) == 0 {
		return otherwise
	}
	return opts[len(opts)-1]
}

// A Caller identifies who sends a request, as a key for limits and caches: the principal, or the
// address if the request is not authenticated. The zero value stands for all callers with neither.
type Caller struct {
	Issuer, Subject, ClientID string
	Address                   string // "" if there is a principal
}

// CallerOf returns the caller of a call.
func CallerOf(call *mcpkit.Call) Caller {
	if p := call.Principal(); p != nil {
		return Caller{Issuer: p.Issuer, Subject: p.Subject, ClientID: p.ClientID}
	}
	return Caller{Address: call.Address()}
}

// A Target identifies what a call is for. Name is that of a tool or prompt, or the URI or template
// of a resource. It is "" for names that are not registered.
type Target struct{ Method, Name string }

// TargetOf returns the target of a call.
func TargetOf(call *mcpkit.Call) Target { return Target{call.Method(), call.Target()} }

// A CallerAndTarget identifies both.
type CallerAndTarget struct {
	Caller
	Target
}

// CallerAndTargetOf returns the caller and the target of a call.
func CallerAndTargetOf(call *mcpkit.Call) CallerAndTarget {
	return CallerAndTarget{CallerOf(call), TargetOf(call)}
}
