// Package skillsclient finds and loads the Agent Skills of MCP servers (extension
// io.modelcontextprotocol/skills). It reads nothing before it is asked to, and checks the size, the
// digest and the front matter of what it reads.
//
//	for skill, err := range skillsclient.List(ctx, c) { ... }
//	loaded, err := skill.Load(ctx)                       // reads and checks SKILL.md
//	text, err := loaded.Read(ctx, "references/FORMS.md") // a file that it names
//
// A skill is text of the server, which a model may follow: show the user where it is from, let the
// user approve each skill and each change of its files, and run nothing that it says without asking.
// A digest shows that the text is what the server listed, not that it is harmless. The URI of a skill
// identifies it only within its server.
package skillsclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"path"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills/internal/skillmd"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// ErrNotOffered means that the server does not declare the extension, or that it does not declare
// that directories can be read.
var ErrNotOffered = errors.New("skillsclient: the server does not offer this")

// A VerificationError means that a file is not what the entry of its skill says: the server may
// have changed it since. It must not be used. [Get] returns the current entry, whose files the user
// has to approve again.
type VerificationError struct {
	URI    string
	Reason string
}

// Error returns the URI and the reason.
func (e *VerificationError) Error() string {
	return fmt.Sprintf("skillsclient: %s: %s", e.URI, e.Reason)
}

// An EntryError means that the server describes a skill in a way that the extension does not allow.
// Such a skill must not be loaded.
type EntryError struct{ Err error }

// Error returns what is wrong with the entry.
func (e *EntryError) Error() string {
	return "skillsclient: the server lists a skill that is not valid: " + e.Err.Error()
}

// Unwrap returns what is wrong.
func (e *EntryError) Unwrap() error { return e.Err }

// A File is a file of a skill, as the server lists it.
type File struct {
	Path   string // from the directory of the skill: "references/FORMS.md"
	URI    string
	Digest string // "sha256:" and 64 hexadecimal digits
	Size   int64  // bytes
}

// A Skill is a skill as the server describes it at one time. It never changes.
type Skill struct {
	c     *client.Client
	entry skillmd.Entry
	name  string
	files []File
}

// newSkill decodes an entry.
func newSkill(c *client.Client, raw json.RawMessage) (*Skill, error) {
	s := &Skill{c: c}
	if err := jsonx.Unmarshal(raw, &s.entry); err != nil {
		return nil, &EntryError{err}
	}
	s.name, _ = skillmd.NameOf(s.entry.FrontMatter) // UnmarshalJSON has checked it
	for _, f := range s.entry.Files {
		p, _ := skillmd.PathOf(strings.TrimSuffix(s.root(), "/"), f.URI) // UnmarshalJSON has checked it
		s.files = append(s.files, File{Path: p, URI: f.URI, Digest: f.Digest, Size: f.Size})
	}
	return s, nil
}

// root returns what the URIs of the skill's files begin with.
func (s *Skill) root() string { return strings.TrimSuffix(s.entry.URI, skillmd.FileName) }

// URI returns the URI of the skill's SKILL.md. It identifies the skill within its server.
func (s *Skill) URI() string { return s.entry.URI }

// Name returns the name. Several skills of a server may have the same.
func (s *Skill) Name() string { return s.name }

// Description returns what the skill does and when to use it.
func (s *Skill) Description() string {
	return jsonx.String(jsonx.Member(s.entry.FrontMatter, "description"))
}

// FrontMatter returns the front matter of SKILL.md, a JSON object. It must not be changed. Do not
// follow the field allowed-tools, which asks for rights, unless the user approves it.
func (s *Skill) FrontMatter() json.RawMessage { return s.entry.FrontMatter }

// Files returns all files of the skill, with SKILL.md. It is nil for a dynamic skill. It must not be
// changed.
func (s *Skill) Files() []File { return s.files }

// Dynamic reports whether the server makes the files when they are read. Then they have no digests,
// and only the front matter is checked.
func (s *Skill) Dynamic() bool { return s.entry.Files == nil }

// List yields the skills that the server lists. There may be more, which [Get] finds by their URI.
// For an entry that is not valid it yields an [*EntryError] and continues; it ends after any other
// error, such as [ErrNotOffered].
func List(ctx context.Context, c *client.Client, opts ...client.CallOption) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		if err := offered(c, ""); err != nil {
			yield(nil, err)
			return
		}
		for raw, err := range c.Items(ctx, skillmd.MethodList, "skills", struct{}{}, opts...) {
			var s *Skill
			if err == nil {
				s, err = newSkill(c, raw)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// Get returns the skill whose SKILL.md has the URI. The error is [ErrNotOffered] if the server does not
// declare the extension, and an [*EntryError] if the entry is not valid.
func Get(ctx context.Context, c *client.Client, uri string, opts ...client.CallOption) (*Skill, error) {
	if err := offered(c, ""); err != nil {
		return nil, err
	}
	var result struct {
		Skill json.RawMessage `json:"skill"`
	}
	opts = append([]client.CallOption{client.Idempotent()}, opts...)
	if err := c.Request(ctx, skillmd.MethodGet, map[string]string{"uri": uri}, &result, opts...); err != nil {
		return nil, err
	}
	s, err := newSkill(c, result.Skill)
	if err == nil && s.URI() != uri {
		err = fmt.Errorf("skillsclient: the server returned the skill %q for %q", s.URI(), uri)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ReadDir yields the files and directories in a directory of the server; directories have the media
// type inode/directory. It ends after an error, which is [ErrNotOffered] if the server does not declare
// that directories can be read. What it yields is not part of a loaded skill unless
// [Skill.Files] has it too.
func ReadDir(ctx context.Context, c *client.Client, uri string, opts ...client.CallOption) iter.Seq2[*protocol.Resource, error] {
	return func(yield func(*protocol.Resource, error) bool) {
		if err := offered(c, "directoryRead"); err != nil {
			yield(nil, err)
			return
		}
		for raw, err := range c.Items(ctx, skillmd.MethodReadDir, "resources", map[string]string{"uri": uri}, opts...) {
			r := new(protocol.Resource)
			if err == nil {
				err = jsonx.Unmarshal(raw, r)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// offered reports whether the server declares the extension, and the setting unless that is "".
func offered(c *client.Client, setting string) error {
	settings, ok := c.Extension(skillmd.ID)
	if !ok || setting != "" && string(settings[setting]) != "true" {
		return ErrNotOffered
	}
	return nil
}

// A Loaded skill is one whose SKILL.md was read and checked. It holds the entry that it was loaded
// from: files that the server adds later are not part of it. It is safe for concurrent use.
type Loaded struct {
	*Skill
	text string
	read atomic.Int64 // bytes of a dynamic skill that were read
}

// Load reads SKILL.md and checks it. Call it when the user has approved the skill, and a model needs
// it. The error is a [*VerificationError] if the text is not what the entry says, and an error that
// names the limit if the skill is larger than 512 files or 16 MiB. Files of more than about 12 MB need
// a client with [client.MaxMessageBytes](32 << 20).
func (s *Skill) Load(ctx context.Context, opts ...client.CallOption) (*Loaded, error) {
	if n := len(s.files); n > skillmd.MaxFiles {
		return nil, fmt.Errorf("skillsclient: %s has %d files; at most %d are accepted", s.URI(), n, skillmd.MaxFiles)
	}
	total := int64(0)
	for _, f := range s.files {
		if total += min(f.Size, skillmd.MaxBytes+1); total > skillmd.MaxBytes {
			return nil, fmt.Errorf("skillsclient: %s has more than %d bytes, which is the most that is accepted", s.URI(), skillmd.MaxBytes)
		}
	}
	l := &Loaded{Skill: s}
	text, err := l.Read(ctx, skillmd.FileName, opts...)
	if err != nil {
		return nil, err
	}
	frontMatter, err := skillmd.FrontMatter(text)
	if err != nil {
		return nil, &VerificationError{s.URI(), err.Error()}
	}
	if !sameJSON(frontMatter, s.entry.FrontMatter) {
		return nil, &VerificationError{s.URI(), "its front matter is not that of the server's entry"}
	}
	l.text = string(text)
	return l, nil
}

// Text returns the whole SKILL.md, with its front matter.
func (l *Loaded) Text() string { return l.text }

// Read reads a file of the skill and checks it. name is its path from the directory of the skill, as
// SKILL.md writes it: "references/FORMS.md". The error is a [*VerificationError] if the skill does not
// have the file, or if the contents are not what the entry says.
func (l *Loaded) Read(ctx context.Context, name string, opts ...client.CallOption) ([]byte, error) {
	clean := path.Clean(name)
	if !fs.ValidPath(clean) {
		return nil, &VerificationError{l.root() + name, "it is not in the directory of the skill"}
	}
	if l.Dynamic() {
		return l.readDynamic(ctx, clean, opts)
	}
	for _, f := range l.files {
		if f.Path != clean {
			continue
		}
		text, err := l.fetch(ctx, f.URI, opts)
		if err != nil {
			return nil, err
		}
		if fault := check(f, text); fault != nil {
			// The client may have it from its cache.
			if text, err = l.fetch(ctx, f.URI, append(opts[:len(opts):len(opts)], client.Fresh())); err != nil {
				return nil, err
			}
			if fault = check(f, text); fault != nil {
				return nil, fault
			}
		}
		return text, nil
	}
	return nil, &VerificationError{l.root() + name, "the server's entry of the skill does not list it"}
}

// check compares a file with the entry of its skill.
func check(f File, text []byte) error {
	if n := int64(len(text)); n != f.Size {
		return &VerificationError{f.URI, fmt.Sprintf("it has %d bytes; the server's entry says %d", n, f.Size)}
	}
	if digest := skillmd.Digest(text); digest != f.Digest {
		return &VerificationError{f.URI, fmt.Sprintf("its digest is %s; the server's entry says %s", digest, f.Digest)}
	}
	return nil
}

// readDynamic reads a file of a skill without a list of files.
func (l *Loaded) readDynamic(ctx context.Context, name string, opts []client.CallOption) ([]byte, error) {
	segments := strings.Split(name, "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	text, err := l.fetch(ctx, l.root()+strings.Join(segments, "/"), opts)
	if err != nil {
		return nil, err
	}
	if l.read.Add(int64(len(text))) > skillmd.MaxBytes {
		return nil, fmt.Errorf("skillsclient: more than %d bytes of the dynamic skill %s were read", skillmd.MaxBytes, l.URI())
	}
	return text, nil
}

// fetch reads a resource.
func (l *Loaded) fetch(ctx context.Context, uri string, opts []client.CallOption) ([]byte, error) {
	r, err := l.c.ReadResource(ctx, uri, opts...)
	if err != nil {
		return nil, err
	}
	if len(r.Contents) != 1 || r.Contents[0].URI != uri {
		return nil, &VerificationError{uri, "the server did not return one file with this URI"}
	}
	if text := r.Contents[0].Text; text != nil {
		return []byte(*text), nil
	}
	return r.Contents[0].Blob, nil
}

// sameJSON reports whether two JSON values are equal. Members have no order, and 1.0 is 1.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return jsonx.Unmarshal(a, &x) == nil && jsonx.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
