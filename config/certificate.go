package config

import (
	"crypto/tls"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A certificate is read again when its files change, so a renewed certificate needs no restart.
type certificate struct {
	files  TLS
	logger *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu
	read    [2]stamp         // of the last files read, valid or not; guarded by mu
	lost    bool             // the files are missing, and this was logged; guarded by mu
}

// A stamp identifies one state of a file.
type stamp struct {
	size int64
	at   time.Time
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.Size(), info.ModTime()} }

// get implements tls.Config.GetCertificate. It checks the files at each handshake, which costs far
// less than the handshake. While the files do not hold a certificate and its key, for example
// because only one of them is written yet, the previous certificate stays in use.
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
	c.logger.Warn("config: the certificate cannot be read; the previous one stays in use", "error", err)
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
