package config

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// A certificate is read again when its files change, so a renewed certificate needs no restart.
type certificate struct {
	files  TLS
	logger *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu
	read    string           // the state of the files that were read last, valid or not; guarded by mu
}

// get implements tls.Config.GetCertificate. It checks the files at each handshake, which costs far
// less than the handshake. While the files do not hold a certificate and its key, for example
// because only one of them is written yet, the previous certificate stays in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := stateOf(c.files.Certificate) + stateOf(c.files.Key)
	if c.current != nil && now == c.read {
		return c.current, nil
	}
	c.read = now
	fresh, err := tls.LoadX509KeyPair(string(c.files.Certificate), string(c.files.Key))
	switch {
	case err == nil:
		c.current = &fresh
	case c.current == nil:
		return nil, err
	default:
		c.logger.Warn("config: the certificate cannot be read; the previous one stays in use", "error", err)
	}
	return c.current, nil
}

// stateOf returns the size and time of a file.
func stateOf(path Path) string {
	info, err := os.Stat(string(path))
	if err != nil {
		return "missing"
	}
	return fmt.Sprint(info.Size(), info.ModTime())
}
