package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Editors and version control write several files, and some of them twice. A build begins after a
// quiet time, or when the longest time is over.
const (
	quietTime   = 80 * time.Millisecond
	longestTime = time.Second
)

// A watcher watches the folders of a source.
type watcher struct {
	fsw     *fsnotify.Watcher
	extra   []string      // of Options.Watch, absolute
	changed chan struct{} // has a buffer of one
	done    chan struct{} // closed when the goroutine has ended

	mu    sync.Mutex
	src   *source // guarded by mu
	tests bool    // files of tests count; guarded by mu
}

func newWatcher(opts Options) (*watcher, error) {
	fsw, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{fsw: fsw, changed: make(chan struct{}, 1), done: make(chan struct{}), src: &source{}}
	for _, name := range opts.Watch {
		if !filepath.IsAbs(name) {
			name = filepath.Join(opts.Dir, name)
		}
		info, err := os.Stat(name)
		if err == nil && info.IsDir() {
			err = w.addTree(name)
		} else if err == nil {
			err = fsw.Add(filepath.Dir(name)) // a file that is replaced is another one
		}
		if err != nil {
			_ = fsw.Close()
			return nil, fmt.Errorf("cannot watch %s: %w", name, err)
		}
		w.extra = append(w.extra, filepath.Clean(name))
	}
	// Ends when the watcher is closed.
	go w.run()
	return w, nil
}

func (w *watcher) close() {
	_ = w.fsw.Close()
	<-w.done
}

// countTests says whether files of tests count: one of them may be why a build failed.
func (w *watcher) countTests(count bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tests = count
}

// watch replaces the source. A file that was not watched before, and was written after since, counts
// as a change.
func (w *watcher) watch(src *source, since time.Time) {
	w.mu.Lock()
	old := w.src
	w.src = src
	w.mu.Unlock()
	for file := range src.files {
		if info, err := os.Stat(file); err == nil && !since.IsZero() && !old.has(file) && info.ModTime().After(since) {
			w.tell()
		}
	}
	known := map[string]bool{}
	for _, dir := range w.fsw.WatchList() {
		known[dir] = true
	}
	for dir := range src.folders {
		w.add(dir, known, since)
	}
	for dir := range src.embedded {
		w.add(dir, known, since)
	}
}

// add watches a folder.
func (w *watcher) add(dir string, known map[string]bool, since time.Time) {
	if known[dir] || w.fsw.Add(dir) != nil || since.IsZero() {
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(since) && w.matters(filepath.Join(dir, e.Name())) {
			w.tell()
		}
	}
}

// addTree watches a folder and those below it.
func (w *watcher) addTree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was removed meanwhile
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case path != root && leftOut(d.Name()):
			return filepath.SkipDir
		}
		return w.fsw.Add(path)
	})
}

// run reads the events until the watcher is closed.
func (w *watcher) run() {
	defer close(w.done)
	for {
		select {
		case event, ok := <-w.fsw.Events:
			if !ok {
				return
			}
			w.handle(event)
		case err, ok := <-w.fsw.Errors:
			if !ok {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				w.tell() // some events are lost
			}
		}
	}
}

// handle notes whether the event is a change of the program.
func (w *watcher) handle(event fsnotify.Event) {
	if event.Op == fsnotify.Chmod || event.Op == 0 {
		return
	}
	if event.Has(fsnotify.Create) {
		if info, err := os.Stat(event.Name); err == nil && info.IsDir() {
			w.appeared(event.Name)
			return
		}
	}
	if w.matters(event.Name) {
		w.tell()
	}
}

// appeared watches a new folder. The files that it has already count as changed.
func (w *watcher) appeared(dir string) {
	if leftOut(filepath.Base(dir)) {
		return
	}
	_ = w.addTree(dir) // it may be gone
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && w.matters(path) {
			w.tell()
		}
		return nil
	})
}

// matters reports whether the file belongs to the program.
func (w *watcher) matters(file string) bool {
	for _, extra := range w.extra {
		if file == extra || strings.HasPrefix(file, extra+string(filepath.Separator)) && !temporary(filepath.Base(file)) {
			return true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.src.has(file) && (w.tests || !strings.HasSuffix(file, "_test.go"))
}

// tell notes a change.
func (w *watcher) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// calm waits until nothing has changed for the quiet time.
func (w *watcher) calm(ctx context.Context) {
	longest := time.NewTimer(longestTime)
	defer longest.Stop()
	for {
		quiet := time.NewTimer(quietTime)
		select {
		case <-w.changed:
			quiet.Stop()
			continue
		case <-quiet.C:
		case <-longest.C:
		case <-ctx.Done():
		}
		quiet.Stop()
		return
	}
}
