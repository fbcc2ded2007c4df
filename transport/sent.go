package transport

import "context"

type sentKey struct{}

// OnSent returns a context for [Peer.Call]: the transport calls f once the request is on its way, behind everything that
// was sent before it and before everything that is sent after f returned. So several requests can be sent in order while
// all of them wait for their responses. f may be called more than once, and is not called if the request was not sent.
func OnSent(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, sentKey{}, f)
}

// Sent tells whoever called [OnSent] that the request of ctx is on its way. Transports call it in [Peer.Call].
func Sent(ctx context.Context) {
	if f, ok := ctx.Value(sentKey{}).(func()); ok {
		f()
	}
}
