package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
)

func TestFilesAreListedReadAndSearched(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		var l Listing
		c.CallInto(&l, "files_list", `{}`)
		kinds := map[string]Kind{}
		for _, e := range l.Entries {
			kinds[e.Path] = e.Kind
		}
		require.Equal(t, map[string]Kind{
			".git": KindDirectory, "doc": KindDirectory, "go.mod": KindFile, "sum.go": KindFile, "sum_test.go": KindFile,
			"data.bin": KindFile, "leak": KindLink, "up": KindLink,
		}, kinds)

		c.CallInto(&l, "files_list", `{"path":"doc"}`)
		require.Len(t, l.Entries, 1)
		require.Equal(t, "doc/notes.txt", l.Entries[0].Path)
		require.EqualValues(t, 10, l.Entries[0].Size)

		require.Equal(t, "one\nthree\n", c.CallTool("files_read", `{"path":"doc/notes.txt"}`).Text())

		binary := c.CallTool("files_read", `{"path":"data.bin"}`).Content[0]
		require.Equal(t, "resource", binary.Type)
		require.Equal(t, "file:///data.bin", binary.Resource.URI)
		require.Equal(t, "application/octet-stream", binary.Resource.MIMEType)
		require.Equal(t, []byte{0, 1, 2, 255}, binary.Resource.Blob)

		var found Found
		c.CallInto(&found, "files_search", `{"pattern":"^func \\w+","glob":"*.go"}`)
		require.Equal(t, Found{Files: 2, Matches: []Match{
			{"sum.go", 5, "func Add(a, b int) int { return a + b }"},
			{"sum_test.go", 5, "func TestAdd(t *testing.T) {"},
		}}, found)
		c.CallInto(&found, "files_search", `{"pattern":"e$","path":"doc","limit":1}`)
		require.Equal(t, Found{Files: 1, Truncated: true, Matches: []Match{{"doc/notes.txt", 1, "one"}}}, found)
	})
}

func TestFilesAreWritten(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		for _, content := range []string{"first", "2nd", ""} {
			args := fmt.Sprintf(`{"path":"new/dir/x.txt","content":%q}`, content)
			require.Equal(t, "wrote new/dir/x.txt", c.CallTool("files_write", args).Text())
			got, err := os.ReadFile(filepath.Join(root, "new/dir/x.txt"))
			require.NoError(t, err)
			require.Equal(t, content, string(got))
		}
	})
}

func TestBadFileArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	root := workplace(t)
	write(t, root, "big.txt", strings.Repeat("x", maxFileBytes+1))
	c := overHTTP(t, rawclient.Modern, root)
	for _, test := range []struct{ tool, args, want string }{
		{"files_read", `{"path":"none.txt"}`, `"none.txt" does not exist: file does not exist`},
		{"files_read", `{"path":"doc"}`, `"doc" is not a file but a directory`},
		{"files_read", `{"path":"big.txt"}`, `"big.txt" has 1048577 bytes; the limit is 1048576`},
		{"files_list", `{"path":"go.mod"}`, `"go.mod": not a directory`},
		{"files_write", `{"path":"doc","content":""}`, `"doc" is not a file but a directory`},
		{"files_write", `{"path":".git/config","content":""}`, `".git/config" belongs to git and cannot be written`},
		{"files_write", `{"path":"sub/.GIT/hooks/x","content":""}`, `"sub/.GIT/hooks/x" belongs to git and cannot be written`},
		{"files_search", `{"pattern":"("}`, "pattern: error parsing regexp: missing closing ): `(`"},
		{"files_search", `{"pattern":"x","glob":"["}`, `glob "[": syntax error in pattern`},
	} {
		require.Equal(t, test.want, refusal(t, c, test.tool, test.args), "%s %s", test.tool, test.args)
	}
	// More bytes than allowed, but fewer characters.
	wide := strings.Repeat("é", maxFileBytes/2+1)
	require.Equal(t, "the content has 1048578 bytes; the limit is 1048576",
		refusal(t, c, "files_write", fmt.Sprintf(`{"path":"wide.txt","content":%q}`, wide)))
}

func TestPathsThatLeaveTheRootAreRefused(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		secret := filepath.Join(filepath.Dir(root), "secret")
		for _, path := range []string{"../secret", "doc/../../secret", secret, "leak", "up/secret"} {
			want := fmt.Sprintf(`%q is outside the root: a path must be relative to the root and stay below it, neither by ".." nor through a symbolic link`, path)
			require.Equal(t, want, refusal(t, c, "files_read", fmt.Sprintf(`{"path":%q}`, path)))
			require.Equal(t, want, refusal(t, c, "files_write", fmt.Sprintf(`{"path":%q,"content":"x"}`, path)))
		}
		for _, path := range []string{"..", "/", "up", "doc/../.."} {
			want := fmt.Sprintf(`%q is outside the root: a path must be relative to the root and stay below it, neither by ".." nor through a symbolic link`, path)
			require.Equal(t, want, refusal(t, c, "files_list", fmt.Sprintf(`{"path":%q}`, path)))
		}
		require.Equal(t, `"../" is outside the root: a path must be relative to the root and stay below it, neither by ".." nor through a symbolic link`,
			refusal(t, c, "files_search", `{"pattern":"not","path":"../"}`))

		// A search does not follow links out of the root.
		var found Found
		c.CallInto(&found, "files_search", `{"pattern":"not for you"}`)
		require.Empty(t, found.Matches)

		kept, err := os.ReadFile(secret)
		require.NoError(t, err)
		require.Equal(t, "not for you", string(kept))
	})
}

func TestFilesAreResources(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		type contents struct {
			Contents []struct {
				URI, MIMEType, Text string
				Blob                []byte
			}
		}
		var got contents
		require.NoError(t, json.Unmarshal(c.Request("resources/read", `{"uri":"file:///doc/notes.txt"}`).Result, &got))
		require.Equal(t, "one\nthree\n", got.Contents[0].Text)
		require.Equal(t, "file:///doc/notes.txt", got.Contents[0].URI)
		require.NoError(t, json.Unmarshal(c.Request("resources/read", `{"uri":"file:///data.bin"}`).Result, &got))
		require.Equal(t, []byte{0, 1, 2, 255}, got.Contents[0].Blob)

		require.Equal(t, `"leak" is outside the root: a path must be relative to the root and stay below it, neither by ".." nor through a symbolic link`,
			c.Request("resources/read", `{"uri":"file:///leak"}`).Error.Message)
		for _, uri := range []string{"file:///../secret", "file:///doc/%2e%2e/%2e%2e/secret", "file:///none.txt"} {
			require.NotNil(t, c.Request("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)).Error, uri)
		}
	})
}
