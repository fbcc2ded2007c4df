package duplex

import (
	"fmt"
	"time"
)

// A StalledError is returned if the connection was closed because the peer did not read for
// Timeout.
type StalledError struct{ Timeout time.Duration }

// Error names the timeout.
func (e *StalledError) Error() string {
	return fmt.Sprintf("closed, since the peer read nothing for %v", e.Timeout)
}

// write writes lines, or a part of one. The caller has set writing and does not hold mu.
func (o *output) write(lines []byte) error {
	for len(lines) > chunkSize {
		if err := o.writePart(lines[:chunkSize]); err != nil {
			return err
		}
		lines = lines[chunkSize:]
	}
	return o.writePart(lines)
}

func (o *output) writePart(part []byte) error {
	begun := o.stall.now()
	o.stall.begin(begun)
	_, err := o.wire.Write(part)
	o.stall.end(begun)
	return err
}

// stalled closes the connection, so that goroutines that wait for room or for a Write continue.
func (o *output) stalled() {
	o.mu.Lock()
	o.fail(&StalledError{o.stall.limit})
	o.mu.Unlock()
	_ = o.wire.Close()
}
