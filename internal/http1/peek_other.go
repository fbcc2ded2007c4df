//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package http1

// canPeek says whether a connection can be asked whether it is alive. Where it cannot, net/http does all.
const canPeek = false

func (c *conn) alive() bool { return false }
