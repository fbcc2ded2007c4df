package config

import (
	"crypto/tls"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A certificate is read again when its files change, so that one that was renewed needs no restart.
type certificate struct {
	files  TLS
	logger *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu
	read    [2]stamp         // of what was read last, good or not; guarded by mu
	lost    bool             // the files cannot be found, which was said; guarded by mu
}

// A stamp changes when a file does.
type stamp struct {
	size int64
	at   time.Time
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.Size(), info.ModTime()} }

// get is tls.Config.GetCertificate. It looks at the files for each handshake, which costs far more
// than that does. While what they hold is no certificate with its key, as it is when one of them is
// written and the other is not yet, the last one that was serves on.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.stamps()
	switch {
	case err == nil && c.current != nil && now == c.read, err != nil && c.lost:
		return c.current, nil
	case err == nil:
		c.read, c.lost = now, false
		var fresh tls.Certificate
		if fresh, err = tls.LoadX509KeyPair(string(c.files.Certificate), string(c.files.Key)); err == nil {
			c.current = &fresh
			return c.current, nil
		}
	}
	if c.current == nil {
		return nil, err
	}
	c.lost = now == [2]stamp{}
	c.logger.Warn("config: the certificate cannot be read; the last one serves on", "error", err)
	return c.current, nil
}

func (c *certificate) stamps() (s [2]stamp, err error) {
	for i, path := range []Path{c.files.Certificate, c.files.Key} {
		info, err := os.Stat(string(path))
		if err != nil {
			return [2]stamp{}, err
		}
		s[i] = stampOf(info)
	}
	return s, nil
}
