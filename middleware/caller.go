package middleware

import "github.com/mcpkit/mcpkit-go/mcpkit"

// A Caller tells callers apart, as a key for limits and caches: a principal, or a session where nobody was authenticated.
// Where there is neither all callers are the same.
type Caller struct {
	Issuer, Subject, ClientID string
	Session                   string // "" where there is a principal
}

// CallerOf says whose call it is.
func CallerOf(call *mcpkit.Call) Caller {
	if p := call.Principal(); p != nil {
		return Caller{Issuer: p.Issuer, Subject: p.Subject, ClientID: p.ClientID}
	}
	return Caller{Session: call.SessionID()}
}

// A CallerAndTarget tells apart, too, what is called.
type CallerAndTarget struct {
	Caller
	Method, Target string
}

// CallerAndTargetOf says whose call it is, of what. What is not registered counts as one thing.
func CallerAndTargetOf(call *mcpkit.Call) CallerAndTarget {
	return CallerAndTarget{CallerOf(call), call.Method(), call.Target()}
}

// everybodyFor is the key for limits of a tool, prompt or resource that all callers share.
type everybodyFor struct{ Method, Target string }

// TargetOf says what is called, whoever calls it.
func TargetOf(call *mcpkit.Call) any { return everybodyFor{call.Method(), call.Target()} }
