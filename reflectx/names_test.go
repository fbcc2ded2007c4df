package reflectx

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	for _, test := range []struct{ name, snake, title string }{
		{"", "", ""},
		{"Add", "add", "Add"},
		{"add", "add", "Add"},
		{"SearchNotes", "search_notes", "Search Notes"},
		{"GetURLByID", "get_url_by_id", "Get URL by ID"},
		{"List2024Reports", "list2024_reports", "List2024 Reports"},
		{"OAuth2Token", "oauth2_token", "OAuth2 Token"},
		{"NewOAuthClient", "new_oauth_client", "New OAuth Client"},
		{"HTTPServer", "http_server", "HTTP Server"},
		{"ServeHTTP", "serve_http", "Serve HTTP"},
		{"ID", "id", "ID"},
		{"IDs", "ids", "IDs"},
		{"UserIDs", "user_ids", "User IDs"},
		{"ListURLsByIDs", "list_urls_by_ids", "List URLs by IDs"},
		{"APIsOf", "apis_of", "APIs Of"},
		{"IDsafe", "i_dsafe", "I Dsafe"},
		{"JSONAPIServer", "jsonapi_server", "JSONAPI Server"},
		{"MP3sOf", "mp3s_of", "MP3s Of"},
		{"HTTPSProxy", "https_proxy", "HTTPS Proxy"},
		{"GetXYZ", "get_xyz", "Get XYZ"},
		{"A", "a", "A"},
		{"GetA", "get_a", "Get A"},
		{"AToB", "a_to_b", "A to B"},
		{"IsOK", "is_ok", "Is OK"},
		{"SHA256Sum", "sha256_sum", "SHA256 Sum"},
		{"Base64Encode", "base64_encode", "Base64 Encode"},
		{"S3Bucket", "s3_bucket", "S3 Bucket"},
		{"K8sPods", "k8s_pods", "K8s Pods"},
		{"GetV2API", "get_v2_api", "Get V2 API"},
		{"IPv6Address", "ipv6_address", "IPv6 Address"},
		{"MyGitHubRepo", "my_github_repo", "My GitHub Repo"},
		{"Github", "github", "Github"},
		{"Read_File", "read_file", "Read File"},
		{"__x__", "x", "X"},
		{"ByName", "by_name", "By Name"},
		{"SignIn", "sign_in", "Sign In"},
		{"ZählerÄndern", "zähler_ändern", "Zähler Ändern"},
		{"ÄÖÜText", "äöü_text", "ÄÖÜ Text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.snake, SnakeCase(test.name))
			require.Equal(t, test.title, Title(test.name))
		})
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"GetURLByID", "IDs", "3D", "2DD", "OAuth", "_", "URLIDURLID", "É", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		words := splitName(name)
		require.Equal(t, strings.ReplaceAll(name, "_", ""), strings.Join(words, ""), "no letter is lost or added")
		for _, w := range words {
			require.NotEmpty(t, w)
		}
		for _, r := range SnakeCase(name) {
			require.True(t, unicode.ToLower(r) == r || strings.ToLower(string(r)) == string(r))
		}
		Title(name)
	})
}

// docs/reference/tags.md has a row for each tag of fields.
func TestFieldTagReference(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/tags.md")
	require.NoError(t, err)
	for _, key := range fieldTags {
		require.Contains(t, string(page), "\n| `"+key+`:"`)
	}
}
