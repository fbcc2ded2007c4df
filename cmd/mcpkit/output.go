package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"
	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// A saver writes images, sound and binary resources to files.
type saver struct{ dir string }

// saveFlag adds --save to a command whose results may have binary contents.
func saveFlag(r *remote, cmd *cobra.Command) {
	r.saver = new(saver)
	cmd.Flags().StringVar(&r.saver.dir, "save", "", "write images, sound and binary resources to new files in this `folder`")
}

// maxCopies limits the files with the same name in a folder.
const maxCopies = 10000

// save writes data to a new file, and returns its path. The name may be any text of the server.
func (s *saver) save(name, mime string, data []byte) (string, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return "", err
	}
	name = fileName(name, mime)
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 1; n <= maxCopies; n++ {
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", stem, n, ext)
		}
		f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return f.Name(), errors.Join(err, f.Close())
	}
	return "", fmt.Errorf("%s has %d files named %s%s; name another folder with --save", s.dir, maxCopies, stem, ext)
}

// notInFiles matches what is replaced in names of files.
var notInFiles = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// fileName makes a file name of the last part of a name, with an extension for the media type if it
// has none.
func fileName(name, mime string) string {
	if u, err := url.Parse(name); err == nil && u.Path+u.Opaque != "" {
		name = u.Path + u.Opaque
	}
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Trim(notInFiles.ReplaceAllString(name, "_"), "._")
	name = name[:min(len(name), 100)]
	if name == "" {
		name = "file"
	}
	if path.Ext(name) == "" {
		mime, _, _ = strings.Cut(mime, ";")
		name += extension(strings.TrimSpace(mime))
	}
	return name
}

// extension returns the usual extension of files of a media type.
func extension(mime string) string {
	if m := mimetype.Lookup(mime); m != nil && m.Extension() != "" {
		return m.Extension()
	}
	return ".bin"
}

// keep returns what to say about data after its size: the file it is saved to, or how to save it.
func (r *remote) keep(name, mime string, data []byte) string {
	if r.saver == nil {
		return ""
	}
	if r.saver.dir == "" {
		return "; --save FOLDER writes it to a file"
	}
	file, err := r.saver.save(name, mime, data)
	if err != nil {
		r.unsaved = errors.Join(r.unsaved, err)
		return "; not saved"
	}
	if r.asJSON {
		r.say("saved %s", file)
	}
	return ", saved as " + file
}

// writeContents writes blocks of content as text, and saves what is binary.
func (r *remote) writeContents(blocks ...protocol.Content) {
	for _, b := range blocks {
		for _, line := range r.describe(b) {
			r.out.printf("%s\n", clean(line))
		}
	}
}

// describe returns the lines of a block, and saves what is binary.
func (r *remote) describe(b protocol.Content) []string {
	switch b := b.(type) {
	case *protocol.TextContent:
		return []string{b.Text}
	case *protocol.ImageContent:
		return []string{fmt.Sprintf("[image %s, %d bytes%s]", b.MIMEType, len(b.Data), r.keep("image", b.MIMEType, b.Data))}
	case *protocol.AudioContent:
		return []string{fmt.Sprintf("[audio %s, %d bytes%s]", b.MIMEType, len(b.Data), r.keep("audio", b.MIMEType, b.Data))}
	case *protocol.ResourceLink:
		size := ""
		if b.Size != nil {
			size = fmt.Sprintf("%d bytes", *b.Size)
		}
		title := b.Title
		if title == "" {
			title = b.Name
		}
		return []string{"[link " + joined(", ", joined(" ", b.URI, b.MIMEType), size, title) + "]"}
	case *protocol.EmbeddedResource:
		return r.describeResource(&b.Resource)
	}
	raw, err := b.AppendJSON(nil)
	if err != nil {
		return []string{fmt.Sprintf("[%s]", protocol.ContentType(b))}
	}
	return []string{fmt.Sprintf("[%s] %s", protocol.ContentType(b), raw)}
}

// describeResource returns a line about the contents of a resource, and their text.
func (r *remote) describeResource(c *protocol.ResourceContents) []string {
	what := "[resource " + joined(" ", c.URI, c.MIMEType) + ", "
	if c.Text != nil {
		return []string{what + fmt.Sprintf("%d bytes]", len(*c.Text)), *c.Text}
	}
	return []string{what + fmt.Sprintf("%d bytes%s]", len(c.Blob), r.keep(c.URI, c.MIMEType, c.Blob))}
}

// joined joins the parts that are not empty.
func joined(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), separator)
}

// write writes a result as JSON and saves what is binary in the blocks, or calls human for text.
func (r *remote) write(v any, human func(), blocks ...protocol.Content) error {
	r.err.clearStatus()
	if !r.asJSON {
		human()
		return r.unsaved
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	r.out.printf("%s\n", cleanJSON(text))
	if r.saver != nil && r.saver.dir != "" {
		for _, b := range blocks {
			r.describe(b)
		}
	}
	return r.unsaved
}
