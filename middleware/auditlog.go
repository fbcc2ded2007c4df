package middleware

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/filelock"
)

// An AuditLog is a file or another writer to which [Audit] appends one JSON object per line. It is
// safe for concurrent use.
type AuditLog struct {
	path string // "" for a writer
	sync bool

	waitingMu    sync.Mutex
	waiting      map[string]*waitingCall // guarded by waitingMu: calls that wait for answers, by ref
	waitingBytes int                     // guarded by waitingMu: of the arguments of these calls
	ended        bool                    // guarded by waitingMu: no further calls may wait

	mu      sync.Mutex
	w       io.Writer
	file    *os.File // nil for a writer; Reopen replaces it and holds both locks
	stream  *os.File // nil unless the path names a pipe or a terminal
	size    int64    // of the complete lines in file
	written uint64   // lines
	failed  error    // set once the log may have lost or cut a line; nothing is written after that

	syncing sync.Mutex
	synced  uint64                        // guarded by syncing: lines that are on the disk
	lost    struct{ after, until uint64 } // guarded by syncing: lines that a previous file may lack
}

// NewAuditLog returns a log that appends to w, one Write per line. After a partial Write it writes
// nothing more, since further records would become part of the broken line.
func NewAuditLog(w io.Writer) *AuditLog { return &AuditLog{w: w} }

// An AuditFileOption configures [OpenAuditFile].
type AuditFileOption func(*AuditLog)

// SyncAudit makes every call wait until its record is on the disk (fsync). Calls that end at the
// same time wait for the same sync. Without it, records survive the end of the program, but not a
// crash of the machine.
func SyncAudit() AuditFileOption { return func(l *AuditLog) { l.sync = true } }

// OpenAuditFile opens a file to append to. It creates a missing file with mode 0600. It removes a
// partial line at the end, which a crash left: the response of that record was never sent. Only one
// process may write to a file; on Unix, OpenAuditFile returns an error to a second one.
//
// The path may also name a pipe or a terminal, such as /dev/stdout in a container. SyncAudit has no
// effect then, and the log cannot be reopened.
func OpenAuditFile(path string, opts ...AuditFileOption) (*AuditLog, error) {
	path, err := filepath.Abs(path) // for Reopen, if the program changes its working directory
	if err != nil {
		return nil, fmt.Errorf("middleware: audit file %s: %w", path, err)
	}
	l := &AuditLog{}
	for _, o := range opts {
		o(l)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if err := l.openStream(path); err != nil {
			return nil, err
		}
		return l, nil
	}
	f, size, err := openAudit(path)
	if err != nil {
		return nil, err
	}
	l.w, l.file, l.path, l.size = f, f, path, size
	return l, nil
}

// openStream opens a pipe or a terminal.
func (l *AuditLog) openStream(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("middleware: audit file: %w", err)
	}
	l.w, l.stream, l.sync = f, f, false
	return nil
}

// openAudit opens a file, removes a partial line at its end, and returns its size.
func openAudit(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("middleware: audit file: %w", err)
	}
	// Another process that cut off half a line would cut off what this one is about to finish.
	locked, err := filelock.TryLock(f)
	switch {
	case err == nil && !locked:
		err = errors.New("another process, or another log of this process, writes to it; use one file for each")
	case err == nil:
		size, err = wholeLines(f)
	}
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("middleware: audit file %s: %w", path, err)
	}
	return f, size, nil
}

// Reopen continues in a new file after a program such as logrotate has renamed or removed the old
// one; call it on SIGHUP. It syncs the old file, which has all records until then. It does nothing
// if the file was not renamed, and keeps the old file if it cannot open a new one. A log that has
// lost or cut a line works again with its new file. Reopen returns errors.ErrUnsupported for other
// writers.
func (l *AuditLog) Reopen() error {
	if l.path == "" {
		return fmt.Errorf("middleware: the audit log is not a file: %w", errors.ErrUnsupported)
	}
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.failed, os.ErrClosed) {
		return l.failed
	}
	if same, err := l.inPlace(); same || err != nil {
		return err
	}
	f, size, err := openAudit(l.path)
	if err != nil {
		return err
	}
	err = l.file.Sync()
	if err == nil && l.failed == nil {
		l.synced = l.written // for calls that wait for a sync of the old file
	} else {
		l.lost.after, l.lost.until = l.synced, l.written
	}
	err = errors.Join(err, l.file.Close())
	l.w, l.file, l.size, l.failed = f, f, size, nil
	return err
}

// inPlace reports whether the path still names the open file.
func (l *AuditLog) inPlace() (bool, error) {
	named, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("middleware: audit file: %w", err)
	}
	open, err := l.file.Stat()
	return err == nil && os.SameFile(named, open), err
}

// wholeLines returns the offset at which the last complete line of a file ends.
func wholeLines(f *os.File) (int64, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 4096)
	for end > 0 {
		n := min(end, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// append writes one line with its newline, and syncs it if the log does.
func (l *AuditLog) append(line []byte) error {
	number, err := l.appendLine(line)
	if err != nil || !l.sync {
		return err
	}
	return l.waitSynced(number)
}

func (l *AuditLog) appendLine(line []byte) (number uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return 0, l.failed
	}
	n, err := l.w.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err == nil {
		l.size += int64(n)
		l.written++
		return l.written, nil
	}
	switch {
	case n == 0 && l.file == nil: // nothing was written; the next record may succeed
	case l.file != nil && l.file.Truncate(l.size) == nil: // for example a full disk
	default:
		l.failed = fmt.Errorf("it ends in a partial line since: %w", err)
	}
	return 0, err
}

// waitSynced returns when the line is on the disk. One sync serves all lines that were written
// before it.
func (l *AuditLog) waitSynced(number uint64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	switch {
	case l.lost.after < number && number <= l.lost.until:
		return errors.New("a sync failed before the file was reopened")
	case l.synced >= number:
		return nil
	}
	l.mu.Lock()
	written, failed := l.written, l.failed
	l.mu.Unlock()
	if failed != nil {
		return failed
	}
	if err := l.file.Sync(); err != nil {
		// The system may drop what it cannot write, so a later sync that succeeds proves nothing.
		l.mu.Lock()
		l.failed = fmt.Errorf("a sync failed before: %w", err)
		l.mu.Unlock()
		return err
	}
	l.synced = written
	return nil
}

// Close syncs and closes the file; it does not close other writers. Later calls fail. Before that,
// it writes an end record with the outcome [InputRequired] for each call that waits for an answer
// of its client.
func (l *AuditLog) Close() error {
	l.endWaiting()
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.failed, os.ErrClosed) {
		return nil
	}
	l.failed = fmt.Errorf("audit log: %w", os.ErrClosed)
	switch {
	case l.stream != nil:
		return l.stream.Close()
	case l.file == nil:
		return nil
	}
	err := l.file.Sync()
	if err == nil {
		l.synced = l.written // for calls that wait for this sync
	}
	return errors.Join(err, l.file.Close())
}
