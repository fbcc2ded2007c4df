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
// New finds what is wrong with a skill, and [Library.Reload] refuses it: front matter that is missing
// or not valid, a name that is not that of the directory, symbolic links, and more files or bytes
// than hosts accept. Files and directories whose names begin with a dot are not served.
package skills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
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

// A Library is a set of skills, made by [FS]. It is an option of [mcpkit.New] and [mcpkit.Serve]. A
// server has one Library; several servers may have the same.
//
// A Library keeps its files in memory. It is safe for concurrent use.
type Library struct {
	mcpkit.Option
	fsys   fs.FS
	dir    string
	scopes []string
	server *mcpkit.Server
	items  *mcpkit.ItemSet

	mu     sync.RWMutex
	skills *contents // nil until a server is made; guarded by mu
}

// An Option configures [FS].
type Option func(*Library)

// Dir is the directory of the file system whose skills are served. The default is its root. It is
// not part of the skills' URIs.
func Dir(name string) Option { return func(l *Library) { l.dir = path.Clean(name) } }

// Scopes are what a caller needs for the skills. For others they do not exist. Scopes need
// [mcpkit.Authenticated] or [mcpkit.TrustLocal].
func Scopes(scopes ...string) Option { return func(l *Library) { l.scopes = scopes } }

// FS returns the skills of a file system: each directory with a file SKILL.md is one. Skills may
// contain skills.
//
// An embed.FS cannot change. For another file system call [Library.Reload]. If others may write to
// a directory, use the FS of an [os.Root] instead of os.DirFS: it cannot be led out of the
// directory by a symbolic link that appears while the files are read.
func FS(fsys fs.FS, opts ...Option) *Library {
	l := &Library{fsys: fsys, dir: ".", server: mcpkit.MustNew(nil, mcpkit.Authenticated())}
	l.items = l.server.NewItemSet()
	for _, o := range opts {
		o(l)
	}
	l.Option = mcpkit.Extend(mcpkit.Extension{
		ID:       skillmd.ID,
		Settings: map[string]bool{"directoryRead": true},
		Methods: []*mcpkit.Method{
			mcpkit.NewMethod(skillmd.MethodList, l.list),
			mcpkit.NewMethod(skillmd.MethodGet, l.get),
			mcpkit.NewMethod("resources/directory/read", l.readDir),
		},
		Items: l.server,
		Check: l.loadOnce,
	})
	return l
}

// loadOnce loads the library for its first server.
func (l *Library) loadOnce() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skills != nil {
		return nil
	}
	_, err := l.load()
	return err
}

// Reload reads all files again. If a skill has a fault, nothing changes, and the error has all
// faults. Otherwise connected clients are notified that resources have changed, if any has, and
// subscribers of the files that did.
func (l *Library) Reload() error {
	l.mu.Lock()
	changed, err := l.load()
	l.mu.Unlock()
	for _, uri := range changed {
		l.server.ResourceUpdated(uri)
	}
	return err
}

// load replaces the skills, and returns the URIs of the files that have changed. The caller holds mu,
// so clients that are notified and ask at once wait.
func (l *Library) load() (changed []string, err error) {
	next, err := l.read()
	if err != nil {
		return nil, err
	}
	changed = next.changes(l.skills)
	if len(changed) == 0 {
		return nil, nil
	}
	if err := l.items.Replace(next.items(l.scopes)...); err != nil {
		return nil, err
	}
	l.skills = next
	return changed, nil
}

func (l *Library) current() *contents {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.skills
}

func (l *Library) cache() protocol.Cache {
	scope := protocol.CachePublic
	if len(l.scopes) > 0 {
		scope = protocol.CachePrivate
	}
	return protocol.Cache{TTLMs: new(int64(0)), CacheScope: scope}
}

func invalid(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
}

// pageSize is how many skills a page of skills/list has.
const pageSize = 50

type listParams struct {
	Cursor string `json:"cursor,omitempty"` // the URI of the last skill of the page before
}

type listResult struct {
	Skills     []skillmd.Entry `json:"skills"`
	NextCursor string          `json:"nextCursor,omitempty"`
	protocol.Cache
}

// list answers skills/list.
func (l *Library) list(ctx context.Context, p listParams) (*listResult, error) {
	call := mcpkit.CallFrom(ctx)
	result := &listResult{Skills: []skillmd.Entry{}, Cache: l.cache()}
	for _, s := range l.current().skills {
		if s.URI <= p.Cursor || !call.CanRead(s.URI) {
			continue
		}
		if len(result.Skills) == pageSize {
			result.NextCursor = result.Skills[pageSize-1].URI
			break
		}
		result.Skills = append(result.Skills, s)
	}
	return result, nil
}

type uriParams struct {
	URI string `json:"uri" validate:"required"`
}

type getResult struct {
	Skill skillmd.Entry `json:"skill"`
	protocol.Cache
}

// get answers skills/get.
func (l *Library) get(ctx context.Context, p uriParams) (*getResult, error) {
	skills := l.current().skills
	at, found := slices.BinarySearchFunc(skills, p.URI, func(s skillmd.Entry, uri string) int {
		return strings.Compare(s.URI, uri)
	})
	if !found || !mcpkit.CallFrom(ctx).CanRead(p.URI) {
		return nil, invalid("there is no skill %q", p.URI)
	}
	return &getResult{Skill: skills[at], Cache: l.cache()}, nil
}

// readDir answers resources/directory/read with all children of the directory.
func (l *Library) readDir(ctx context.Context, p uriParams) (*protocol.ListResourcesResult, error) {
	call, files := mcpkit.CallFrom(ctx), l.current().files
	result := &protocol.ListResourcesResult{Cache: l.cache()}
	last := "" // the directory that was added last
	for _, uri := range slices.Sorted(maps.Keys(files)) {
		below, inside := strings.CutPrefix(uri, p.URI+"/")
		if !inside || p.URI == "skill:/" || !call.CanRead(uri) {
			continue
		}
		name, _, deeper := strings.Cut(below, "/")
		switch dir := p.URI + "/" + name; {
		case !deeper:
			result.Resources = append(result.Resources, files[uri].resource)
		case dir != last:
			last = dir
			name, _ = url.PathUnescape(name) // escape made it
			result.Resources = append(result.Resources, protocol.Resource{URI: dir, Name: name, MIMEType: "inode/directory"})
		}
	}
	if result.Resources == nil {
		return nil, invalid("%q is not a directory", p.URI)
	}
	return result, nil
}

// contents are the skills of a library at one time. They never change.
type contents struct {
	skills []skillmd.Entry  // sorted by URI
	files  map[string]*file // by URI
}

// A file is a resource.
type file struct {
	resource protocol.Resource
	contents []byte
	digest   string
	main     bool // it is the SKILL.md of a skill, which resources/list shows
}

// items returns the resources.
func (c *contents) items(scopes []string) []mcpkit.Item {
	var items []mcpkit.Item
	for _, uri := range slices.Sorted(maps.Keys(c.files)) {
		items = append(items, c.files[uri].item(scopes))
	}
	return items
}

func (f *file) item(scopes []string) mcpkit.Item {
	var read any = func() []byte { return f.contents }
	if utf8.Valid(f.contents) {
		read = func() string { return string(f.contents) }
	}
	r := mcpkit.NewResource(f.resource.URI, f.resource.Name, read).
		Desc(f.resource.Description).MIME(f.resource.MIMEType).Size(*f.resource.Size).Scopes(scopes...)
	if !f.main {
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

// read reads all skills, or returns all of their faults.
func (l *Library) read() (*contents, error) {
	if l.fsys == nil {
		return nil, errors.New("skills: the file system is nil")
	}
	info, err := fs.Stat(l.fsys, l.dir)
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("skills: %s: not a directory", l.dir)
	}
	root, err := fs.Sub(l.fsys, l.dir)
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	paths, faults := walk(root)
	c := &contents{files: map[string]*file{}}
	for _, p := range paths {
		if path.Base(p) != skillmd.FileName {
			continue
		}
		if err := c.addSkill(root, path.Dir(p), paths); err != nil {
			faults = append(faults, err)
		}
	}
	if len(c.skills) == 0 && faults == nil {
		faults = []error{errors.New("there are no skills; a skill is a directory with a file " + skillmd.FileName)}
	}
	if faults != nil {
		for i, fault := range faults {
			faults[i] = fmt.Errorf("skills: %w", fault)
		}
		return nil, errors.Join(faults...)
	}
	slices.SortFunc(c.skills, func(a, b skillmd.Entry) int { return strings.Compare(a.URI, b.URI) })
	return c, nil
}

// walk returns the paths of all files in lexical order, and what is wrong with others.
func walk(root fs.FS) (paths []string, faults []error) {
	fault := func(p, text string) { faults = append(faults, fmt.Errorf("%s: %s", p, text)) }
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == ".":
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			fault(p, "a symbolic link; skills have only files and directories")
		case !d.Type().IsRegular():
			fault(p, "neither a file nor a directory")
		case strings.EqualFold(d.Name(), skillmd.FileName) && d.Name() != skillmd.FileName:
			fault(p, "the name is "+skillmd.FileName+", in capital letters")
		case strings.Contains(p, `\`):
			fault(p, "the path has a backslash, which is a slash on Windows")
		default:
			paths = append(paths, p)
		}
		return nil
	})
	if err != nil {
		faults = append(faults, err)
	}
	return paths, faults
}

// addSkill adds the skill in a directory, with all files in it.
func (c *contents) addSkill(root fs.FS, dir string, paths []string) error {
	main := path.Join(dir, skillmd.FileName)
	if dir == "." {
		return fmt.Errorf("%s: it is in the root; a skill is a directory with its name", main)
	}
	e := skillmd.Entry{URI: uriOf(main)}
	total := int64(0)
	for _, p := range paths {
		if !strings.HasPrefix(p, dir+"/") {
			continue
		}
		f, err := c.addFile(root, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		e.Files = append(e.Files, skillmd.File{URI: f.resource.URI, Digest: f.digest, Size: *f.resource.Size})
		if len(e.Files) > skillmd.MaxFiles {
			return fmt.Errorf("%s: more than %d files, which is what hosts accept in a skill", dir, skillmd.MaxFiles)
		}
		if total += *f.resource.Size; total > skillmd.MaxBytes {
			return fmt.Errorf("%s: more than %d bytes, which is what hosts accept in a skill", dir, skillmd.MaxBytes)
		}
	}
	f := c.files[e.URI]
	meta, err := skillmd.Parse(f.contents)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", main, err)
	case path.Base(dir) != meta.Name:
		return fmt.Errorf("%s: the name %q is not that of the directory, %q", main, meta.Name, path.Base(dir))
	}
	f.main, f.resource.Name, f.resource.Description = true, meta.Name, meta.Description
	e.FrontMatter = meta.JSON
	c.skills = append(c.skills, e)
	return nil
}

// addFile reads a file. One in a skill within a skill is read once.
func (c *contents) addFile(root fs.FS, p string) (*file, error) {
	uri := uriOf(p)
	if f := c.files[uri]; f != nil {
		return f, nil
	}
	info, err := fs.Stat(root, p)
	if err != nil {
		return nil, err
	}
	if info.Size() > skillmd.MaxBytes {
		return nil, fmt.Errorf("more than %d bytes, which is what hosts accept in a skill", skillmd.MaxBytes)
	}
	text, err := fs.ReadFile(root, p)
	if err != nil {
		return nil, err
	}
	f := &file{contents: text, digest: skillmd.Digest(text), resource: protocol.Resource{
		URI: uri, Name: path.Base(p), MIMEType: mimeOf(p, text), Size: new(int64(len(text))),
	}}
	c.files[uri] = f
	return f, nil
}

// uriOf returns the URI of a file. Everything but unreserved characters (RFC 3986) and slashes is
// percent-encoded, so that the first segment is a valid host.
func uriOf(p string) string {
	var b strings.Builder
	b.WriteString("skill://")
	for _, c := range []byte(p) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// mimeTypes are the media types of files that skills have often. They do not depend on the machine,
// as those of package mime do.
var mimeTypes = map[string]string{
	".md": "text/markdown", ".txt": "text/plain", ".csv": "text/csv", ".html": "text/html", ".css": "text/css",
	".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml",
	".xml": "application/xml", ".toml": "application/toml", ".sql": "application/sql",
	".py": "text/x-python", ".sh": "application/x-sh", ".js": "text/javascript", ".ts": "text/plain", ".go": "text/x-go",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".svg": "image/svg+xml", ".pdf": "application/pdf", ".zip": "application/zip",
}

// mimeOf returns the media type of a file.
func mimeOf(p string, contents []byte) string {
	if known := mimeTypes[strings.ToLower(path.Ext(p))]; known != "" {
		return known
	}
	if utf8.Valid(contents) {
		return "text/plain"
	}
	return "application/octet-stream"
}
