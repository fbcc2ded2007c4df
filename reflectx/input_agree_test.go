package reflectx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// compileSchema compiles a published schema with an independent implementation.
func compileSchema(t testing.TB, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("mem:///schema.json", doc))
	s, err := c.Compile("mem:///schema.json")
	require.NoError(t, err, "%s", schema)
	return s
}

func schemaValue(args []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(args)) }

func validJSON(b []byte) bool { return jsonx.Valid(b) }

// schemaTakes reports whether the schema accepts the JSON.
func schemaTakes(t testing.TB, s *jsonschema.Schema, args string) bool {
	t.Helper()
	return takesArgs(t, s, args)
}

// The reasons why a schema may accept more than the decoder.
const (
	exact = "" // none

	// JSON Schema has no format that is as exact as the rule.
	coarseFormat = "the format accepts more than the rule"
	// The rule has no keyword; it is in the description.
	onlyInDescription = "the rule stands in the description alone"
	// The type's own method reads the text.
	ownText = "the type's UnmarshalText decides"
	// encoding/base64 refuses non-zero bits after the last byte.
	trailingBits = "a pattern cannot see the unused bits of base64"
)

// An agreement is a type with a tag, and how schema and decoder may differ.
type agreement struct {
	typ    reflect.Type
	tag    string // of validate
	more   string // other tags
	coarse string // why the schema accepts more; never may it accept less

	optional bool
}

// with is an agreement about a jsonschema tag.
func with[T any](jsonschema string) agreement {
	return agreement{typ: reflect.TypeFor[T](), more: " jsonschema:" + strconv.Quote(jsonschema)}
}

func of[T any](tag, coarse string) agreement {
	return agreement{typ: reflect.TypeFor[T](), tag: tag, coarse: coarse}
}

type color string

type tree struct {
	Name string  `json:"name" validate:"required,min=1"`
	Kids []*tree `json:"kids,omitempty"`
}

type pair struct {
	A int    `json:"a" validate:"required,max=3"`
	B string `json:"b,omitempty" validate:"alpha"`
}

// agreements are the types and rules that the property test covers.
func agreements() []agreement {
	list := []agreement{
		of[string](``, exact), of[bool](``, exact), of[int](``, exact), of[int8](``, exact), of[int16](``, exact), of[int32](``, exact),
		of[uint](``, exact), of[uint8](``, exact), of[uint16](``, exact), of[uint32](``, exact), of[float64](``, exact), of[color](``, exact),
		of[*string](``, exact), of[*int](``, exact), of[any](``, exact), of[json.RawMessage](``, exact), of[json.Number](``, exact),
		of[[]string](``, exact), of[[]int](``, exact), of[[][]int8](``, exact), of[[3]int](``, exact), of[[4]byte](``, exact), of[[]*int](``, exact),
		of[[]*string](``, exact), of[[]**bool](``, exact), of[[][]*color](``, exact), of[[]*string](`dive,min=2`, exact),
		of[map[string]int](``, exact), of[map[int]bool](``, exact), of[map[uint16]string](``, coarseFormat), of[map[string]any](``, exact),
		of[map[string][]string](``, exact), of[pair](``, exact), of[*pair](``, exact), of[[]pair](``, exact), of[map[string]pair](``, exact), of[tree](``, exact),
		of[big.Int](``, exact), of[*big.Int](``, exact), of[[]byte](``, trailingBits), of[time.Time](``, coarseFormat), of[time.Duration](``, exact),
		of[url.URL](``, coarseFormat), of[*url.URL](``, coarseFormat), of[netip.Addr](``, ownText),
		of[bool](`eq=true`, exact), of[bool](`ne=true`, exact),
		of[[]string](`required,min=1,max=3`, exact), of[[]string](`unique`, exact), of[[]int](`unique,len=2`, exact), of[[]string](`dive,min=2,alpha`, exact),
		of[[]int](`gt=1,dive,gte=0,lt=10`, exact), of[[]string](`dive,required`, exact), of[[]int](`dive,required`, exact), of[[][]int](`dive,max=2,dive,min=0`, exact),
		of[map[string]int](`min=1,max=2`, exact), of[map[string]int](`dive,keys,min=2,alpha,endkeys,max=5`, exact), of[map[string]string](`len=1,dive,oneof=a b`, exact),
		of[map[int]int](`dive,keys,min=1,endkeys`, onlyInDescription), of[map[string]string](`unique`, onlyInDescription), of[[]string](`ne=2`, exact),
		of[time.Duration](`min=1s,max=1h`, onlyInDescription), of[time.Time](`gt`, onlyInDescription),
		of[string](`required,omitempty,min=3`, exact), of[any](`required`, exact),
		of[string](`email|uuid`, coarseFormat), of[string](`alpha|numeric`, exact), of[int](`eq=1|gt=5`, exact), of[string](`len=0|min=3`, exact),
		with[string](`minLength=2,maxLength=3`), with[string](`pattern=^a\\,?b+$`), with[string](`enum=a,enum=b`), with[string](`format=uuid`), with[string](`format=date`),
		with[int](`minimum=1,maximum=3`), with[int](`minimum=0.5,exclusiveMaximum=2.5`), with[int](`multipleOf=3`), with[int](`enum=1,enum=2`), with[uint8](`multipleOf=2,maximum=10`),
		with[float64](`multipleOf=0.1`), with[float64](`exclusiveMinimum=-1,maximum=1.5`), with[[]string](`minItems=1,maxItems=2,uniqueItems=true`), with[[]string](`pattern=^a`),
		with[[]int](`minimum=0,enum=1,enum=-1`), with[string](`required`), with[any](`required`),
		of[url.URL](`http_url`, coarseFormat), of[*url.URL](`startswith=https`, coarseFormat), of[netip.Addr](`ipv4`, ownText), of[netip.Addr](`required,ip`, ownText),
		of[int](`port`, exact), of[uint16](`port`, exact), of[float64](`latitude`, exact), of[int](`longitude`, exact), of[int](`numeric`, exact), of[int](`iso4217_numeric`, onlyInDescription),
	}
	for _, tag := range []string{"min=2", "gte=2", "max=3", "lte=3", "gt=1", "lt=4", "len=2", "min=1,max=2", "gt=-1", "min=0x2"} {
		list = append(list, of[string](tag, exact), of[int](tag, exact), of[[]int](tag, exact), of[map[string]bool](tag, exact), of[*int](tag, exact))
		if !strings.Contains(tag, "-") {
			list = append(list, of[uint8](tag, exact))
		}
		if !strings.Contains(tag, "x") {
			list = append(list, of[float64](tag, exact))
		}
	}
	for _, tag := range []string{"eq=2", "ne=2", "oneof=1 2 3", "noneof=1 2"} {
		list = append(list, of[string](tag, exact), of[int](tag, exact), of[uint8](tag, exact))
	}
	for _, tag := range []string{"eq=2.5", "ne=2.5", "min=0.1", "max=1e2", "gt=-0.5,lt=0.5"} {
		list = append(list, of[float64](tag, exact))
	}
	for _, tag := range []string{
		"alpha", "alphaspace", "alphanum", "alphanumspace", "alphaunicode", "alphanumunicode", "numeric", "number", "hexadecimal", "hexcolor", "e164",
		"base32", "base64", "base64url", "base64rawurl", "uuid", "uuid3", "uuid4", "uuid5", "uuid7", "uuid_rfc4122", "uuid3_rfc4122", "uuid4_rfc4122",
		"uuid5_rfc4122", "md4", "md5", "sha256", "sha384", "sha512", "ascii", "printascii", "ssn", "eth_addr", "jwt", "bic", "semver", "cve", "mongodb", "ulid", "ein",
		"startswith=ab", "endswith=b.", "contains=a+b", "startsnotwith=a", "endsnotwith=b", "excludes=a b", "containsany=xyz]^-", "excludesall=a[b", "containsrune=ü", "excludesrune=a",
		"oneof='a b' c", "oneof=a b,ne=b", "contains=0x2C", "min=2,max=4,alpha,startswith=a,endswith=b", "datetime=2006-01-02",
	} {
		list = append(list, of[string](tag, exact))
	}
	for _, tag := range []string{"email", "url", "http_url", "https_url", "uri", "hostname", "hostname_rfc1123", "fqdn", "ipv4", "ipv6", "datetime=2006-01-02T15:04:05Z07:00"} {
		list = append(list, of[string](tag, coarseFormat))
	}
	for _, tag := range []string{
		"ip", "cidr", "cidrv4", "cidrv6", "mac", "lowercase", "uppercase", "json", "timezone", "credit_card", "cron", "datauri", "html", "isbn", "iso3166_1_alpha2",
		"iso4217", "bcp47_language_tag", "oneofci=a B", "datetime=15:04", "iscolor", "country_code", "dns_rfc1035_label", "multibyte", "luhn_checksum", "eq_ignore_case=ab", "boolean",
		"bcp47_strict_language_tag", "bic_iso_9362_2014", "btc_addr", "btc_addr_bech32", "cmyk", "duration", "eth_addr_checksum", "eu_country_code", "hostname_label", "hostname_port",
		"hsl", "hsla", "html_encoded", "ip4_addr", "ip6_addr", "ip_addr", "isbn10", "isbn13", "iso3166_1_alpha2_eu", "iso3166_1_alpha3", "iso3166_1_alpha3_eu",
		"iso3166_1_alpha_numeric", "iso3166_1_alpha_numeric_eu", "iso3166_2", "issn", "mongodb_connection_string", "ne_ignore_case=ab", "noneofci=a B",
		"origin", "postcode_iso3166_alpha2=DE", "rgb", "rgba", "ripemd128", "ripemd160", "spicedb", "tcp4_addr", "tcp6_addr", "tcp_addr", "tiger128", "tiger160", "tiger192",
		"udp4_addr", "udp6_addr", "udp_addr", "unix_addr", "url_encoded", "urn_rfc2141", "urn_rfc8141",
	} {
		list = append(list, of[string](tag, onlyInDescription))
	}
	return list
}

// input compiles a struct with the one field V.
func (a agreement) input(t testing.TB) *reflectx.Input {
	t.Helper()
	in, err := reflectx.NewInput("Test", a.structType(), reflectx.InputOptions{})
	require.NoError(t, err)
	return in
}

func (a agreement) structType() reflect.Type {
	tag := `json:"v"`
	if a.optional {
		tag = `json:"v,omitempty"`
	}
	if a.tag != "" {
		tag += " validate:" + strconv.Quote(a.tag)
	}
	tag += a.more
	return reflect.StructOf([]reflect.StructField{{Name: "V", Type: a.typ, Tag: reflect.StructTag(tag)}})
}

func TestSchemaAndDecoderAcceptTheSameArguments(t *testing.T) {
	list := agreements()
	for _, a := range agreements() {
		a.optional = true
		list = append(list, a)
	}
	for _, a := range list {
		t.Run(fmt.Sprintf("%s %s%s optional=%t", a.typ, a.tag, a.more, a.optional), func(t *testing.T) {
			t.Parallel()
			in := a.input(t)
			schema := compileSchema(t, in.Schema())
			accepted := 0
			check := func(t fataler, args string) {
				v := reflect.New(in.Type()).Elem()
				err := in.Decode(context.Background(), json.RawMessage(args), v)
				if err == nil && args != `{}` {
					accepted++
				}
				takes := takesArgs(t, schema, withoutNulls(in, args))
				switch {
				case err == nil && !takes:
					t.Fatalf("the decoder accepts %s, the schema %s does not", args, in.Schema())
				case err != nil && takes && a.coarse == exact:
					t.Fatalf("the schema %s accepts %s, the decoder does not: %v", in.Schema(), args, err)
				}
				askOracle(t, a, args, v, err)
			}
			check(t, `{}`)
			if in.Example() != nil {
				check(t, string(in.Example()))
			}
			for _, value := range append(slices.Clone(numbers), "null", "true", "false", "[]", "{}", `[1]`, `["ab"]`, `[1,2]`, `[1,1,1]`, `{"ab":2}`, `{"1":1}`, `{"a":true,"b":false}`, `{"1":"a"}`, `{"a":["b"]}`, `{"a":1,"b":"c"}`, `{"name":"n"}`, `[{"a":1}]`) {
				check(t, `{"v":`+value+`}`)
			}
			for _, text := range texts {
				check(t, `{"v":`+quoted(text)+`}`)
			}
			require.Positive(t, accepted, "no value was accepted, so nothing was shown")
			if !a.optional {
				rapid.Check(t, func(rt *rapid.T) { check(rt, drawArgs(rt, a)) })
			}
		})
	}
}

// withoutNulls leaves out the members of args that count as absent because they are null. Only
// these are accepted by the decoder and not by the schema.
func withoutNulls(in *reflectx.Input, args string) string {
	types := map[reflect.Type][]reflectx.Field{}
	return string(dropNulls([]byte(args), in.Type(), in.Fields(), types))
}

func dropNulls(raw []byte, t reflect.Type, fields []reflectx.Field, types map[reflect.Type][]reflectx.Field) []byte {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known := types[t]; len(fields) < len(known) {
		fields = known // of a type within itself, whose inner fields leave it out
	} else {
		types[t] = fields
	}
	raw = bytes.TrimSpace(raw)
	elem := func(t reflect.Type) reflect.Type { return t }
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		elem = reflect.Type.Elem
	}
	switch {
	case jsonx.Kind(raw) == '[':
		var out [][]byte
		for e := range jsonx.Elements(raw) {
			out = append(out, dropNulls(e, elem(t), fields, types))
		}
		return slices.Concat([]byte{'['}, bytes.Join(out, []byte{','}), []byte{']'})
	case jsonx.Kind(raw) != '{':
		return raw
	}
	var out [][]byte
	for name, value := range jsonx.Members(raw) {
		if t.Kind() == reflect.Map {
			value = dropNulls(value, t.Elem(), fields, types)
		} else if i := slices.IndexFunc(fields, func(f reflectx.Field) bool { return f.Name == jsonx.String(name) }); i >= 0 {
			if string(value) == "null" && !fields[i].Required {
				continue
			}
			value = dropNulls(value, fields[i].Type, fields[i].Fields, types)
		}
		out = append(out, slices.Concat(name, []byte{':'}, value))
	}
	return slices.Concat([]byte{'{'}, bytes.Join(out, []byte{','}), []byte{'}'})
}

// A fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Fatalf(format string, args ...any)
}

func takesArgs(t fataler, s *jsonschema.Schema, args string) bool {
	v, err := schemaValue([]byte(args))
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return s.Validate(v) == nil
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

var oracle = func() *validator.Validate {
	return validator.New(validator.WithRequiredStructEnabled())
}()

// stricterThanOracle are the cases in which the decoder refuses a value that the validator accepts,
// with the reason.
var stricterThanOracle = map[string]string{
	"string http_url":  "the pattern in the schema is case-sensitive",
	"string https_url": "the pattern in the schema is case-sensitive",
	"string email":     "the format allows ASCII only",
	"string fqdn":      "the format allows no hyphen at the end of a label",
	"string uri":       "the format allows no backslash",
	"string ipv4":      "the format allows no IPv4 address in IPv6 notation",
}

// askOracle compares the result with that of the validator for the decoded value.
func askOracle(rt fataler, a agreement, args string, v reflect.Value, err error) {
	if a.tag == "" || strings.Contains(a.tag, "required") || !strings.Contains(args, `"v"`) || strings.Contains(args, `"w"`) {
		return // presence is not the validator's: it looks for zero values
	}
	if err != nil {
		// The validator only judges values of the right type.
		fresh := reflect.New(v.Type())
		if a.typ == reflect.TypeFor[map[int]int]() || a.typ == reflect.TypeFor[time.Duration]() || a.asText() || json.Unmarshal([]byte(args), fresh.Interface()) != nil || hasNull(args) {
			return
		}
		if oracle.Struct(fresh.Interface()) == nil && stricterThanOracle[a.typ.String()+" "+a.tag] == "" && a.coarse != ownText && a.coarse != trailingBits {
			rt.Fatalf("the validator accepts %s, the decoder does not: %v", args, err)
		}
		return
	}
	if a.asText() || strings.Contains(args, `"v":null`) {
		return
	}
	if found := oracle.Struct(v.Addr().Interface()); found != nil {
		rt.Fatalf("the decoder accepts %s, the validator does not: %v", args, found)
	}
}

// asText reports whether the type is a struct that is decoded from text. The validator does not see
// the text.
func (a agreement) asText() bool {
	t := strings.TrimPrefix(a.typ.String(), "*")
	return t == "url.URL" || t == "netip.Addr"
}

func hasNull(args string) bool { return strings.Contains(args, "null") }

// drawArgs draws arguments that are valid for a, or nearly.
func drawArgs(rt *rapid.T, a agreement) string {
	switch rapid.IntRange(0, 19).Draw(rt, "form") {
	case 0:
		return `{}`
	case 1:
		return `{"v":` + drawAny(rt, 2) + `,"w":1}`
	case 2, 3:
		return `{"v":` + drawAny(rt, 2) + `}`
	}
	return `{"v":` + drawType(rt, a.typ, a.tag, 4) + `}`
}

func drawAny(rt *rapid.T, depth int) string {
	limit := 5
	if depth > 0 {
		limit = 7
	}
	switch rapid.IntRange(0, limit).Draw(rt, "any") {
	case 0:
		return "null"
	case 1:
		return rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "bool")
	case 2, 3:
		return drawNumber(rt)
	case 4, 5:
		return drawString(rt, "")
	case 6:
		return drawList(rt, func() string { return drawAny(rt, depth-1) })
	}
	return drawMembers(rt, func() string { return drawString(rt, "") }, func() string { return drawAny(rt, depth-1) })
}

// numbers are at the limits of types and rules, in every notation.
var numbers = []string{
	"0", "1", "2", "3", "-1", "2.0", "-0", "0.0", "1e0", "20e-1", "2.5", "1e2", "1.5e1", "0.1", "127", "128", "-128", "-129", "255", "256", "65535", "65536",
	"2147483647", "2147483648", "-2147483649", "4294967296", "9007199254740993", "1E+1", "-1e-1", "0e99", "100", "90", "-90", "180.0", "90.5",
}

func drawNumber(rt *rapid.T) string {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(-12, 12), strconv.Itoa),
		rapid.Map(rapid.IntRange(-70000, 70000), strconv.Itoa),
		rapid.SampledFrom(numbers),
	).Draw(rt, "number")
}

// texts are strings that one rule or another accepts, and near misses.
var texts = []string{
	"DEUTDEFF", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "cmyk(10%,20%,30%,40%)", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
	"example.com:80", ":80", "hsl(120,50%,50%)", "hsla(120,50%,50%,0.5)", "&lt;", "0-306-40615-2", "9783161484100", "0378-5955", "DEU", "DE-BE", "276", "978", "text/plain",
	"mongodb://localhost:27017", "https://example.com", "10115", "rgb(1,2,3)", "rgba(1,2,3,0.5)", "document:1#reader", "1.2.3.4:80", "[::1]:80", "/tmp/x.sock", "a%20b",
	"urn:isbn:0451450523", "de", "de-DE", "00000000000000000000000000000000", "0000000000000000000000000000000000000000", "000000000000000000000000000000000000000000000000",
	"", "a", "ab", "abc", "abcd", "AB", "a b", "c", "b", "1", "2", "12", "-1", "1.5", "+1", "0x1f", "é", "日本", "äöü", "a1", "aXb", "ab.", "xb.", "a+b", "a,b", "xa+b", "ü", "\x7f", "a\nb",
	"true", "false", "{}", "[1]", "{", "a@b.de", "user@example.com", "@", "a@b", "https://example.com/", "HTTP://x.y", "http://", "ftp://a/b", "mailto:a@b.de", "/path", "file:///a", "x:", "%zz",
	"example.com", "www.example.com", "-a.b", "a_b", "localhost", "example.com.", "1.2.3.4", "256.1.1.1", "::1", "fe80::1%eth0", "::ffff:1.2.3.4", "10.0.0.0/8", "fd00::/8",
	"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-42D3-A456-426614174000", "123e4567-e89b-42d3-a456-426614174000", "0190163d-8694-739b-aea5-966c26f8ad91", "123e4567-e89b-32d3-a456-426614174000",
	"123e4567-e89b-52d3-a456-426614174000", "2006-01-02", "2006-02-30", "2006-01-02T15:04:05Z", "2006-01-02t15:04:05z", "2006-01-02T15:04:05+01:00", "2006-01-02T24:00:00Z", "2006-01-02T15:04:60Z", "15:04", "2099-01-01T00:00:00Z",
	"2006-01-02T15:04:05.123456789012Z", "1h", "1h30m", "1.5s", "-2m", "0", "5", "1m0.5s", "10ms", "3h", "1", ".5s", "1.s", "#fff", "#ff8800", "#ggg", "+4912345678", "+0123", "aGVsbG8=", "aGVsbG9=", "aGVsbG8", "____", "MFRGG===",
	"d41d8cd98f00b204e9800998ecf8427e", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "1.2.3", "1.2.3-rc.1+b", "01.2.3", "CVE-2024-1234", "01ARZ3NDEKTSV4RRFFQ69G5FAV",
	"507f1f77bcf86cd799439011", "DEUTDEFF", "DEUTDEFF500", "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe", "a.b.c", "12-3456789", "123-45-6789", "Europe/Berlin", "DE", "DEU", "EUR", "en-US", "de", "4242424242424242", "0 5 * * *",
	"data:text/plain;base64,aGVsbG8=", "<b>x</b>", "9783161484100", "00:00:5e:00:53:01", "rgb(1,2,3)", "B", "A", "x]y", "x-y", "a[", "-", "2001:db8::1", "9.9.9",
	strings.Repeat("a", 96), strings.Repeat("b", 128), strings.Repeat("a", 64) + ".de",
}

func drawString(rt *rapid.T, tag string) string {
	gens := []*rapid.Generator[string]{rapid.SampledFrom(texts), rapid.StringN(0, 5, -1), rapid.StringMatching(`[a-c0-3 .+-]{0,5}`), rapid.StringMatching(`a[a-z]{0,2}b`)}
	if strings.Contains(tag, "e164") || strings.Contains(tag, "number") {
		gens = append(gens, rapid.StringMatching(`[+]?[0-9]{0,16}`))
	}
	return quoted(rapid.OneOf(gens...).Draw(rt, "string"))
}

func drawList(rt *rapid.T, elem func() string) string {
	out := make([]string, rapid.IntRange(0, 4).Draw(rt, "length"))
	for i := range out {
		out[i] = elem()
	}
	return "[" + strings.Join(out, ",") + "]"
}

func drawMembers(rt *rapid.T, name, value func() string) string {
	seen := map[string]bool{}
	var out []string
	for range rapid.IntRange(0, 4).Draw(rt, "members") {
		n := name()
		var s string
		if json.Unmarshal([]byte(n), &s) != nil || seen[s] {
			continue // the schema cannot see a second member of the same name
		}
		seen[s] = true
		out = append(out, n+":"+value())
	}
	return "{" + strings.Join(out, ",") + "}"
}

// drawType draws a value that usually has the JSON type of t.
func drawType(rt *rapid.T, t reflect.Type, tag string, depth int) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[big.Int](), reflect.TypeFor[json.Number]():
		return drawNumber(rt)
	case reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[url.URL](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[[]byte]():
		return drawString(rt, tag)
	case reflect.TypeFor[json.RawMessage]():
		return drawAny(rt, 2)
	}
	if depth == 0 {
		return "[]"
	}
	switch t.Kind() {
	case reflect.Bool:
		return rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "bool")
	case reflect.String:
		return drawString(rt, tag)
	case reflect.Slice, reflect.Array:
		return drawList(rt, func() string { return drawType(rt, t.Elem(), tag, depth-1) })
	case reflect.Map:
		return drawMembers(rt, func() string {
			if t.Key().Kind() != reflect.String {
				return rapid.SampledFrom([]string{`"1"`, `"-1"`, `"0"`, `"01"`, `"a"`, `"70000"`, `"-0"`}).Draw(rt, "key")
			}
			return drawString(rt, tag)
		}, func() string { return drawType(rt, t.Elem(), tag, depth-1) })
	case reflect.Struct:
		var out []string
		for i := range t.NumField() {
			if rapid.IntRange(0, 3).Draw(rt, "has") > 0 {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				out = append(out, strconv.Quote(name)+":"+drawType(rt, t.Field(i).Type, tag, depth-1))
			}
		}
		return "{" + strings.Join(out, ",") + "}"
	case reflect.Interface:
		return drawAny(rt, 2)
	default:
		return drawNumber(rt)
	}
}
