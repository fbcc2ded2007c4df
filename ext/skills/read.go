package skills

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/ext/skills/internal/skillmd"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

var errNotText = errors.New("it is not UTF-8 text")

// A reader collects the skills of all sources.
type reader struct {
	*contents
	faults []error
}

// read reads one source.
func (r *reader) read(s *source) {
	if !validPrefix(s.prefix) {
		r.fault("the prefix %q is not a path of names", s.prefix)
		return
	}
	if s.text != nil || s.fsys == nil {
		r.readFunc(s)
		return
	}
	paths := r.walk(s)
	var roots []string // directories of skills
	for _, p := range paths {
		if path.Base(p) == skillmd.FileName {
			roots = append(roots, path.Dir(p))
		}
	}
	texts := map[string][]byte{}
	for _, root := range roots {
		r.readSkill(s, root, slices.Contains(roots, s.dir), paths, texts)
	}
}

func validPrefix(prefix string) bool {
	return prefix == "" || fs.ValidPath(prefix) && prefix != "."
}

// walk returns the paths of the files of a source in lexical order.
func (r *reader) walk(s *source) []string {
	var paths []string
	err := fs.WalkDir(s.fsys, s.dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == s.dir && !d.IsDir():
			r.fault("%s: not a directory", p)
		case p == s.dir:
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			r.fault("%s: a symbolic link; skills have only files and directories", p)
		case !d.Type().IsRegular():
			r.fault("%s: neither a file nor a directory", p)
		case strings.EqualFold(d.Name(), skillmd.FileName) && d.Name() != skillmd.FileName:
			r.fault("%s: the name is %s, in capital letters", p, skillmd.FileName)
		case strings.Contains(p, `\`):
			r.fault("%s: the path has a backslash, which is a slash on Windows", p)
		default:
			paths = append(paths, p)
		}
		return nil
	})
	if err != nil {
		r.fault("%w", err)
	}
	return paths
}

// readSkill reads the skill in the directory root. The URI of a skill in the root of the source
// ends in the skill's name; inRoot says that there is one.
func (r *reader) readSkill(s *source, root string, inRoot bool, paths []string, texts map[string][]byte) {
	main := path.Join(root, skillmd.FileName)
	frontMatter, name, ok := r.frontMatter(s, main, texts)
	if !ok {
		return
	}
	if dir := path.Base(root); root != s.dir && dir != name {
		r.fault("%s: the name %q is not that of the directory, %q", main, name, dir)
		return
	}
	files := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return root != "." && !strings.HasPrefix(p, root+"/") })
	if len(files) > skillmd.MaxFiles {
		r.fault("%s: %d files; hosts accept at most %d in a skill", root, len(files), skillmd.MaxFiles)
		return
	}
	base := s.prefix
	if inRoot {
		top, _, ok := r.frontMatter(s, path.Join(s.dir, skillmd.FileName), texts)
		if !ok {
			return
		}
		base = path.Join(base, jsonx.String(jsonx.Member(top, "name")))
	}
	e := skillmd.Entry{URI: s.uri(base, main), FrontMatter: frontMatter}
	total := int64(0)
	for _, p := range files {
		text, ok := r.contentsOf(s, p, texts)
		if !ok {
			return
		}
		if total += int64(len(text)); total > skillmd.MaxBytes {
			r.fault("%s: more than %d bytes; hosts accept at most %d in a skill", root, skillmd.MaxBytes, skillmd.MaxBytes)
			return
		}
		f := &file{source: s, contents: text, digest: skillmd.Digest(text), resource: protocol.Resource{
			URI: s.uri(base, p), Name: path.Base(p), MIMEType: mimeOf(p, text), Size: new(int64(len(text))),
		}}
		e.Files = append(e.Files, skillmd.File{URI: f.resource.URI, Digest: f.digest, Size: int64(len(text))})
		r.addFile(f)
	}
	r.addSkill(s, e, name)
}

// uri returns the URI of a file of the source.
func (s *source) uri(base, p string) string {
	if s.dir != "." {
		p = strings.TrimPrefix(p, s.dir+"/")
	}
	return "skill://" + escape(path.Join(base, p))
}

// frontMatter returns the front matter of a SKILL.md, and its name.
func (r *reader) frontMatter(s *source, p string, texts map[string][]byte) (object []byte, name string, ok bool) {
	text, ok := r.contentsOf(s, p, texts)
	if !ok {
		return nil, "", false
	}
	object, err := skillmd.FrontMatter(text)
	if err == nil {
		name, err = skillmd.NameOf(object)
	}
	if err == nil {
		err = skillmd.CheckAuthor(object)
	}
	if err == nil && !utf8.Valid(text) {
		err = errNotText
	}
	if err != nil {
		r.fault("%s: %w", p, err)
	}
	return object, name, err == nil
}

// contentsOf returns the contents of a file, which is read once.
func (r *reader) contentsOf(s *source, p string, texts map[string][]byte) (text []byte, ok bool) {
	if text, ok = texts[p]; ok {
		return text, text != nil
	}
	text, err := readLimited(s.fsys, p)
	if err != nil {
		r.fault("%s: %w", p, err)
		text = nil
	}
	texts[p] = text
	return text, err == nil
}

// readLimited reads a file, up to one byte more than a skill may have.
func readLimited(fsys fs.FS, p string) ([]byte, error) {
	f, err := fsys.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := bytes.NewBuffer([]byte{})
	_, err = io.Copy(text, io.LimitReader(f, skillmd.MaxBytes+1))
	return text.Bytes(), err
}

// readFunc adds the skill of a function.
func (r *reader) readFunc(s *source) {
	if s.text == nil {
		r.fault("the file system, or the function of the skill %q, is nil", s.name)
		return
	}
	frontMatter, _ := jsonx.Marshal(struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}{s.name, s.description})
	_, err := skillmd.NameOf(frontMatter)
	if err == nil {
		err = skillmd.CheckAuthor(frontMatter)
	}
	if err != nil {
		r.fault("the skill %q of a function: %w", s.name, err)
		return
	}
	text := []byte("---\nname: ")
	text = append(jsonx.AppendString(text, s.name), "\ndescription: "...)
	text = append(jsonx.AppendString(text, s.description), "\n---\n\n"...)
	e := skillmd.Entry{URI: "skill://" + escape(path.Join(s.prefix, s.name, skillmd.FileName)), FrontMatter: frontMatter}
	r.addFile(&file{source: s, contents: text, text: s.text, digest: skillmd.Digest(text), resource: protocol.Resource{
		URI: e.URI, Name: skillmd.FileName, MIMEType: "text/markdown",
	}})
	r.addSkill(s, e, s.name)
}

// addFile adds a file. A file in a skill within a skill is added twice.
func (r *reader) addFile(f *file) {
	if known := r.files[f.resource.URI]; known == nil {
		r.files[f.resource.URI] = f
	} else if known.source != f.source {
		r.fault("two sources have the file %q; give one of them a Prefix", f.resource.URI)
	}
}

// addSkill adds a skill, whose files were added before.
func (r *reader) addSkill(s *source, e skillmd.Entry, name string) {
	main := r.files[e.URI]
	main.listed = true
	main.resource.Name, main.resource.Description = name, jsonx.String(jsonx.Member(e.FrontMatter, "description"))
	text, _ := e.MarshalJSON()
	r.skills = append(r.skills, &skill{e, len(text)})
}

// finish returns the contents, sorted and with their directories.
func (r *reader) finish() *contents {
	c := r.contents
	slices.SortFunc(c.skills, func(a, b *skill) int { return strings.Compare(a.URI, b.URI) })
	public := protocol.CachePublic
	for _, f := range c.files {
		c.addToDirectory(f.resource, f.source, f.resource.URI)
		if len(f.source.scopes) > 0 {
			public = protocol.CachePrivate
		}
	}
	for _, children := range c.directories {
		slices.SortFunc(children, func(a, b child) int { return strings.Compare(a.resource.URI, b.resource.URI) })
	}
	c.cache = protocol.Cache{TTLMs: new(int64(0)), CacheScope: public}
	return c
}

// addToDirectory adds a file or directory to the directory that it is in, and that to its own.
// sample is the file, or a file in the directory.
func (c *contents) addToDirectory(entry protocol.Resource, s *source, sample string) {
	slash := strings.LastIndexByte(entry.URI, '/')
	dir, name := entry.URI[:slash], entry.URI[slash+1:]
	if dir == "skill:/" {
		return
	}
	children := c.directories[dir]
	at := slices.IndexFunc(children, func(known child) bool { return known.resource.URI == entry.URI })
	if at < 0 {
		if entry.Name == "" {
			entry.Name, _ = url.PathUnescape(name) // escape made it
		}
		c.directories[dir] = append(children, child{resource: entry, files: []string{sample}})
	} else if known := &children[at]; !slices.ContainsFunc(known.files, func(uri string) bool { return c.files[uri].source == s }) {
		known.files = append(known.files, sample)
	} else {
		return // the directories above know the source
	}
	c.addToDirectory(protocol.Resource{URI: dir, MIMEType: skillmd.DirectoryMIME}, s, sample)
}

// escape returns the path with everything but unreserved characters and slashes percent-encoded
// (RFC 3986), so that its first segment is a valid host of a URI.
func escape(p string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(p) {
		switch c := p[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// mimeTypes are the media types of files that skills have often. They do not depend on the machine,
// as those of package mime do.
var mimeTypes = map[string]string{
	".md": "text/markdown", ".txt": "text/plain", ".csv": "text/csv", ".html": "text/html", ".css": "text/css",
	".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml", ".xml": "application/xml", ".toml": "application/toml",
	".py": "text/x-python", ".sh": "application/x-sh", ".js": "text/javascript", ".ts": "text/plain", ".go": "text/x-go", ".sql": "application/sql",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml",
	".pdf": "application/pdf", ".zip": "application/zip",
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
