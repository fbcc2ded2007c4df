// Package skillsclient finds and loads the Agent Skills of MCP servers (extension
// io.modelcontextprotocol/skills). It reads nothing before it is asked to, and checks the size, the
// digest and the front matter of what it reads.
//
//	for skill, err := range skillsclient.List(ctx, c) { ... }
//	instructions, err := skill.Load(ctx)                // reads and checks SKILL.md
//	text, err := skill.Read(ctx, "references/FORMS.md") // a file that it names
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
	"regexp"
	"strings"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills/internal/skillmd"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// ErrNotOffered means that the server does not declare the extension.
var ErrNotOffered = errors.New("skillsclient: the server does not offer skills")

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

// A File is a file of a skill, as the server lists it.
type File struct {
	Path   string // from the directory of the skill: "references/FORMS.md"
	URI    string
	Digest string // "sha256:" and 64 hexadecimal digits
	Size   int64  // bytes
}

// A Skill is a skill as the server describes it at one time. Its fields must not be changed.
type Skill struct {
	// URI is that of the SKILL.md. It identifies the skill within its server.
	URI string
	// Name is the name. Several skills of a server may have the same.
	Name string
	// Description says what the skill does and when to use it.
	Description string
	// FrontMatter is that of SKILL.md, a JSON object. Do not follow the field allowed-tools, which
	// asks for rights, unless the user approves it.
	FrontMatter json.RawMessage
	// Files are all files of the skill, with SKILL.md. It is nil if the server makes them when they
	// are read: then they have no digests, and Load refuses the skill.
	Files []File

	c *client.Client
}

var validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// newSkill decodes an entry and checks what the specification demands of it. Unknown members are
// ignored.
func newSkill(c *client.Client, text json.RawMessage) (*Skill, error) {
	var raw struct {
		URI         string          `json:"uri"`
		FrontMatter json.RawMessage `json:"frontmatter"`
		Resources   json.RawMessage `json:"resources"`
	}
	if err := jsonx.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("skillsclient: the server lists a skill that is not valid: %w", err)
	}
	fail := func(format string, args ...any) (*Skill, error) {
		err := fmt.Errorf(format, args...)
		return nil, fmt.Errorf("skillsclient: the server lists a skill that is not valid: %q: %w", raw.URI, err)
	}
	meta, err := skillmd.Check(raw.FrontMatter)
	if err != nil {
		return fail("%w", err)
	}
	if !strings.HasSuffix(raw.URI, "/"+meta.Name+"/"+skillmd.FileName) {
		return fail("the URI does not end in %q", meta.Name+"/"+skillmd.FileName)
	}
	s := &Skill{URI: raw.URI, Name: meta.Name, Description: meta.Description, FrontMatter: raw.FrontMatter, c: c}
	if jsonx.IsString(raw.Resources, "dynamic") {
		return s, nil
	}
	if jsonx.Kind(raw.Resources) != '[' {
		return fail(`resources is neither a list nor "dynamic"`)
	}
	seen := map[string]bool{} // paths
	for element := range jsonx.Elements(raw.Resources) {
		f := struct {
			skillmd.File
			Size *int64 `json:"size"`
		}{}
		if err := jsonx.Unmarshal(element, &f); err != nil {
			return fail("%w", err)
		}
		p, inside := s.pathOf(f.URI)
		switch {
		case !inside:
			return fail("the file %q is not in its directory", f.URI)
		case seen[p]:
			return fail("the file %q is listed twice", f.URI)
		case f.Size == nil || *f.Size < 0 || !validDigest.MatchString(f.Digest):
			return fail("the digest or the size of the file %q is not valid", f.URI)
		}
		seen[p] = true
		s.Files = append(s.Files, File{Path: p, URI: f.URI, Digest: f.Digest, Size: *f.Size})
	}
	if !seen[skillmd.FileName] {
		return fail("its SKILL.md is not listed")
	}
	return s, nil
}

// pathOf returns the path of a file from the directory of the skill. It is false if the file is
// outside of it on any operating system: backslashes are slashes on Windows.
func (s *Skill) pathOf(uri string) (string, bool) {
	escaped, inside := strings.CutPrefix(uri, strings.TrimSuffix(s.URI, skillmd.FileName))
	p, err := url.PathUnescape(escaped)
	return p, inside && err == nil && fs.ValidPath(p) && p != "." && !strings.Contains(p, `\`)
}

// List yields the skills that the server lists. There may be more, which [Get] finds by their URI.
// For a skill that is not valid it yields an error and continues; it ends after any other error, such
// as [ErrNotOffered].
func List(ctx context.Context, c *client.Client, opts ...client.CallOption) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		if _, offered := c.Extension(skillmd.ID); !offered {
			yield(nil, ErrNotOffered)
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
// declare the extension.
func Get(ctx context.Context, c *client.Client, uri string, opts ...client.CallOption) (*Skill, error) {
	if _, offered := c.Extension(skillmd.ID); !offered {
		return nil, ErrNotOffered
	}
	var result struct {
		Skill json.RawMessage `json:"skill"`
	}
	opts = append([]client.CallOption{client.Idempotent()}, opts...)
	if err := c.Request(ctx, skillmd.MethodGet, map[string]string{"uri": uri}, &result, opts...); err != nil {
		return nil, err
	}
	s, err := newSkill(c, result.Skill)
	if err == nil && s.URI != uri {
		return nil, fmt.Errorf("skillsclient: the server returned the skill %q for %q", s.URI, uri)
	}
	return s, err
}

// Load reads SKILL.md, checks it, and returns its text with the front matter. Call it when the user
// has approved the skill, and a model needs it. The error is a [*VerificationError] if the text is not
// what the entry says, and an error that names the limit if the skill is larger than 512 files or 16
// MiB. Files of more than about 12 MB need a client with [client.MaxMessageBytes](32 << 20).
func (s *Skill) Load(ctx context.Context, opts ...client.CallOption) (text string, err error) {
	if n := len(s.Files); n > skillmd.MaxFiles {
		return "", fmt.Errorf("skillsclient: %s has %d files; at most %d are accepted", s.URI, n, skillmd.MaxFiles)
	}
	total := int64(0)
	for _, f := range s.Files {
		if total += min(f.Size, skillmd.MaxBytes+1); total > skillmd.MaxBytes {
			return "", fmt.Errorf("skillsclient: %s has more than %d bytes; no more are accepted", s.URI, skillmd.MaxBytes)
		}
	}
	b, err := s.Read(ctx, skillmd.FileName, opts...)
	if err != nil {
		return "", err
	}
	meta, err := skillmd.Parse(b)
	if err != nil {
		return "", &VerificationError{s.URI, err.Error()}
	}
	if !sameJSON(meta.JSON, s.FrontMatter) {
		return "", &VerificationError{s.URI, "its front matter is not that of the server's entry"}
	}
	return string(b), nil
}

// Read reads a file of the skill and checks it. name is its path from the directory of the skill, as
// SKILL.md writes it: "references/FORMS.md". The error is a [*VerificationError] if the skill does not
// list the file, or if the contents are not what the entry says.
func (s *Skill) Read(ctx context.Context, name string, opts ...client.CallOption) ([]byte, error) {
	for _, f := range s.Files {
		if f.Path != path.Clean(name) {
			continue
		}
		r, err := s.c.ReadResource(ctx, f.URI, append(opts[:len(opts):len(opts)], client.Fresh())...)
		if err != nil {
			return nil, err
		}
		if len(r.Contents) != 1 || r.Contents[0].URI != f.URI {
			return nil, &VerificationError{f.URI, "the server did not return one file with this URI"}
		}
		b := r.Contents[0].Blob
		if text := r.Contents[0].Text; text != nil {
			b = []byte(*text)
		}
		if n := int64(len(b)); n != f.Size {
			return nil, &VerificationError{f.URI, fmt.Sprintf("it has %d bytes; the server's entry says %d", n, f.Size)}
		}
		if digest := skillmd.Digest(b); digest != f.Digest {
			return nil, &VerificationError{f.URI, fmt.Sprintf("its digest is %s; the server's entry says %s", digest, f.Digest)}
		}
		return b, nil
	}
	uri := strings.TrimSuffix(s.URI, skillmd.FileName) + name
	return nil, &VerificationError{uri, "the server's entry of the skill does not list it"}
}

// sameJSON reports whether two JSON values are equal. Members have no order, and 1.0 is 1.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return jsonx.Unmarshal(a, &x) == nil && jsonx.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
