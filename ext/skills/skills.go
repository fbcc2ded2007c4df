// Package skills serves Agent Skills with an MCP server: directories with a SKILL.md that tells
// models how to do something. It implements the extension io.modelcontextprotocol/skills.
//
//	//go:embed skills
//	var files embed.FS
//
//	mcpkit.Serve(&Notes{}, skills.FS(files, skills.Dir("skills")))
//
// Each file is a resource, skill://git-workflow/SKILL.md for example. Clients list the skills with
// the digest and the size of each file, and read a file when they need it. Package skillsclient is
// the side of the client.
//
// New finds what is wrong with a skill, and [Library.Reload] refuses it: front matter that is
// missing or that parsers read differently, a name that is not that of the directory, symbolic
// links, and more files or bytes than hosts accept. Files and directories whose names begin with a
// dot are not served.
package skills

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/ext/skills/internal/skillmd"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A Library is a set of skills, made by [FS], [Func] or [Join]. It is an option of [mcpkit.New] and
// [mcpkit.Serve]. A server has one Library; several servers may have the same.
//
// A Library keeps its files in memory. It is safe for concurrent use.
type Library struct {
	mcpkit.Option
	sources []*source
	items   mcpkit.ItemSet

	mu sync.Mutex // held while the library loads

	// Held while the contents and the resources of the servers are replaced together, so that
	// methods do not check the scopes of the old ones and show the new ones.
	swap sync.RWMutex
	held *contents // nil until a server is made; guarded by swap, and changed with mu held
}

// A source is one FS or Func.
type source struct {
	fsys   fs.FS
	dir    string
	prefix string
	scopes []string

	// Of Func; fsys is nil.
	name, description string
	text              func(context.Context) (string, error)
}

// An FSOption configures [FS]. Every [Option] is one.
type FSOption interface{ fs(*source) }

// An Option configures [FS] and [Func]. A value that is not allowed is an error of [mcpkit.New].
type Option interface {
	FSOption
	option()
}

type fsOption func(*source)

func (o fsOption) fs(s *source) { o(s) }

type option struct{ fsOption }

func (option) option() {}

// Dir is the directory of the file system whose skills are served. The default is its root. It is
// not part of the skills' URIs.
func Dir(name string) FSOption { return fsOption(func(s *source) { s.dir = path.Clean(name) }) }

// Prefix begins the URIs of the skills: skill://acme/billing/refunds/SKILL.md with the prefix
// "acme/billing".
func Prefix(path string) Option { return option{func(s *source) { s.prefix = path }} }

// Scopes are what a caller needs for the skills. For others they do not exist. Scopes need
// [mcpkit.Authenticated] or [mcpkit.TrustLocal].
func Scopes(scopes ...string) Option { return option{func(s *source) { s.scopes = scopes }} }

// FS returns the skills of a file system: each directory with a file SKILL.md is one, and so is its
// root. Skills may contain skills.
//
// An embed.FS cannot change. For another file system call [Library.Reload]. If others may write to
// a directory, use the FS of an [os.Root] instead of os.DirFS: it cannot be led out of the
// directory by a symbolic link that appears while the files are read.
func FS(fsys fs.FS, opts ...FSOption) *Library {
	s := &source{fsys: fsys, dir: "."}
	for _, o := range opts {
		o.fs(s)
	}
	return newLibrary(s)
}

// Func returns one skill whose instructions, the text below the front matter, come from a function:
// a method of a service, for instance. It is called when the skill is read, and [mcpkit.CallFrom]
// returns the call. Clients cannot check the text, and some decline such skills.
func Func(name, description string, text func(ctx context.Context) (string, error), opts ...Option) *Library {
	s := &source{name: name, description: description, text: text}
	for _, o := range opts {
		o.fs(s)
	}
	return newLibrary(s)
}

// Join returns the skills of all libraries as one. Reload it instead of its parts.
func Join(libraries ...*Library) *Library {
	var sources []*source
	for _, l := range libraries {
		sources = append(sources, l.sources...)
	}
	return newLibrary(sources...)
}

func newLibrary(sources ...*source) *Library {
	l := &Library{sources: sources}
	l.Option = mcpkit.Extend(mcpkit.Extension{
		ID:       skillmd.ID,
		Settings: map[string]bool{"directoryRead": true},
		Methods: []*mcpkit.Method{
			mcpkit.NewMethod(skillmd.MethodList, l.list),
			mcpkit.NewMethod(skillmd.MethodGet, l.get),
			mcpkit.NewMethod(skillmd.MethodReadDir, l.readDir),
		},
		Items: &l.items,
		Check: l.loadOnce,
	})
	return l
}

// loadOnce loads the library for its first server.
func (l *Library) loadOnce() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		return nil
	}
	return l.load()
}

// Reload reads all files again. If a skill has a fault, or a server refuses one, nothing changes,
// and the error has all faults. Otherwise connected clients are notified that resources have
// changed, if any has, and subscribers of the files that did.
func (l *Library) Reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load()
}

// load replaces the contents. The caller holds mu.
func (l *Library) load() error {
	next, err := read(l.sources)
	if err != nil {
		return err
	}
	old := l.held
	changed := next.changes(old)
	if old != nil && len(changed) == 0 {
		return nil
	}
	if err := l.replace(next); err != nil {
		return err
	}
	for _, uri := range changed {
		l.items.ResourceUpdated(uri)
	}
	return nil
}

// replace makes next the contents. Clients that are notified of the change, and ask at once, wait.
func (l *Library) replace(next *contents) error {
	l.swap.Lock()
	defer l.swap.Unlock()
	if err := l.items.Replace(next.items()...); err != nil {
		return err
	}
	l.held = next
	return nil
}

// maxPage limits the entries of a page, in bytes. An entry is never split.
const maxPage = 1 << 20

// maxPageItems limits the entries of a page.
const maxPageItems = 100

// cursorPrefix marks the cursors of this package.
const cursorPrefix = "skills:"

// page returns the items after the cursor that fit on one page, and the next cursor. Items are
// sorted by key.
func page[T any](items []T, cursor *string, key func(T) string, size func(T) int) ([]T, *string, error) {
	if cursor != nil {
		text, err := base64.RawURLEncoding.DecodeString(*cursor)
		after, ok := strings.CutPrefix(string(text), cursorPrefix)
		if err != nil || !ok {
			return nil, nil, invalid("cursor %q is not one that this server gave", *cursor)
		}
		at, found := slices.BinarySearchFunc(items, after, func(item T, after string) int { return strings.Compare(key(item), after) })
		if found {
			at++
		}
		items = items[at:]
	}
	bytes := 0
	for i, item := range items {
		if bytes += size(item); i > 0 && (i == maxPageItems || bytes > maxPage) {
			return items[:i], new(base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + key(items[i-1])))), nil
		}
	}
	return items, nil, nil
}

func invalid(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
}

type listParams struct {
	Cursor *string `json:"cursor,omitempty"`
}

type listResult struct {
	Skills     []skillmd.Entry `json:"skills"`
	NextCursor *string         `json:"nextCursor,omitzero"`
	protocol.Cache
}

// list answers skills/list.
func (l *Library) list(ctx context.Context, p listParams) (*listResult, error) {
	l.swap.RLock()
	defer l.swap.RUnlock()
	call, held := mcpkit.CallFrom(ctx), l.held
	visible := slices.DeleteFunc(slices.Clone(held.skills), func(s *skill) bool { return !call.CanRead(s.URI) })
	shown, next, err := page(visible, p.Cursor, func(s *skill) string { return s.URI }, func(s *skill) int { return s.bytes })
	if err != nil {
		return nil, err
	}
	result := &listResult{Skills: make([]skillmd.Entry, len(shown)), NextCursor: next, Cache: held.cache}
	for i, s := range shown {
		result.Skills[i] = s.Entry
	}
	return result, nil
}

type uriParams struct {
	URI    string  `json:"uri" validate:"required"`
	Cursor *string `json:"cursor,omitempty"`
}

type getParams struct {
	URI string `json:"uri" validate:"required"`
}

type getResult struct {
	Skill skillmd.Entry `json:"skill"`
	protocol.Cache
}

// get answers skills/get.
func (l *Library) get(ctx context.Context, p getParams) (*getResult, error) {
	l.swap.RLock()
	defer l.swap.RUnlock()
	held := l.held
	at, found := slices.BinarySearchFunc(held.skills, p.URI, func(s *skill, uri string) int { return strings.Compare(s.URI, uri) })
	if !found || !mcpkit.CallFrom(ctx).CanRead(p.URI) {
		return nil, invalid("there is no skill %q", p.URI)
	}
	return &getResult{Skill: held.skills[at].Entry, Cache: held.cache}, nil
}

// readDir answers resources/directory/read.
func (l *Library) readDir(ctx context.Context, p uriParams) (*protocol.ListResourcesResult, error) {
	l.swap.RLock()
	defer l.swap.RUnlock()
	call, held := mcpkit.CallFrom(ctx), l.held
	var children []child
	for _, c := range held.directories[p.URI] {
		if slices.ContainsFunc(c.files, call.CanRead) {
			children = append(children, c)
		}
	}
	if children == nil {
		return nil, invalid("%q is not a directory", p.URI)
	}
	shown, next, err := page(children, p.Cursor, func(c child) string { return c.resource.URI }, func(c child) int { return len(c.resource.Description) + 200 })
	if err != nil {
		return nil, err
	}
	result := &protocol.ListResourcesResult{NextCursor: next, Cache: held.cache}
	for _, c := range shown {
		result.Resources = append(result.Resources, c.resource)
	}
	return result, nil
}

// contents are the skills of a library at one time. They never change.
type contents struct {
	skills      []*skill // sorted by URI
	files       map[string]*file
	directories map[string][]child // by URI; children are sorted by URI
	cache       protocol.Cache
}

// A skill is an entry with its size.
type skill struct {
	skillmd.Entry
	bytes int // of the entry as JSON
}

// A file is a resource.
type file struct {
	source   *source
	resource protocol.Resource
	contents []byte
	text     func(context.Context) (string, error) // of a dynamic skill; contents are its front matter
	listed   bool
	digest   string
}

// A child is a file or directory in a directory.
type child struct {
	resource protocol.Resource
	files    []string // the URI of one file of each source that is the child or is in it
}

// items returns the resources of the contents.
func (c *contents) items() []mcpkit.Item {
	var items []mcpkit.Item
	for _, uri := range slices.Sorted(maps.Keys(c.files)) {
		items = append(items, c.files[uri].item())
	}
	return items
}

func (f *file) item() mcpkit.Item {
	var read any
	switch {
	case f.text != nil:
		read = func(ctx context.Context) (string, error) {
			text, err := f.text(ctx)
			return string(f.contents) + text, err
		}
	case utf8.Valid(f.contents):
		text := string(f.contents)
		read = func() string { return text }
	default:
		read = func() []byte { return f.contents }
	}
	r := mcpkit.NewResource(f.resource.URI, f.resource.Name, read).
		Desc(f.resource.Description).MIME(f.resource.MIMEType).Scopes(f.source.scopes...)
	if f.resource.Size != nil {
		r.Size(*f.resource.Size)
	}
	if !f.listed {
		r.Hidden()
	}
	return r
}

// changes returns the URIs of the files that are new, gone or different.
func (c *contents) changes(old *contents) []string {
	var changed []string
	if old == nil {
		old = &contents{}
	}
	for uri, f := range c.files {
		if o := old.files[uri]; o == nil || o.digest != f.digest {
			changed = append(changed, uri)
		}
	}
	for uri := range old.files {
		if c.files[uri] == nil {
			changed = append(changed, uri)
		}
	}
	slices.Sort(changed)
	return changed
}

// read reads all skills of the sources, or returns all of their faults.
func read(sources []*source) (*contents, error) {
	r := &reader{contents: &contents{files: map[string]*file{}, directories: map[string][]child{}}}
	for _, s := range sources {
		r.read(s)
	}
	if len(r.skills) == 0 && r.faults == nil {
		r.fault("there are no skills; a skill is a directory with a file SKILL.md")
	}
	if r.faults != nil {
		return nil, errors.Join(r.faults...)
	}
	return r.finish(), nil
}

// fault notes what is wrong.
func (r *reader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("skills: "+format, args...))
}
