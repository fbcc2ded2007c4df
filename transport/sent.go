package transport

import "context"

type sentKey struct{}

// OnSent returns a context for [Peer.Call]. The transport calls f once it has sent the request:
// after everything sent before it, and before everything sent once f has returned. A caller can
// thus send several requests in order while all of them wait for their responses. f may be called
// more than once, and is not called if the request was not sent.
func OnSent(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, sentKey{}, f)
}

// Sent calls the function that [OnSent] put into ctx, if any. Transports call it in [Peer.Call]
// once the request is sent.
func Sent(ctx context.Context) {
	if f, ok := ctx.Value(sentKey{}).(func()); ok {
		f()
	}
}
