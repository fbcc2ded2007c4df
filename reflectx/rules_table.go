package reflectx

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The rules of validate tags that have a keyword in JSON Schema or a text of their own. All of them
// are also judged by the validator.

// numberRules are text rules that mean an interval for numbers. An empty limit allows every number.
var numberRules = map[string]struct{ low, high json.Number }{
	"numeric": {}, "number": {}, "port": {"1", "65535"}, "latitude": {"-90", "90"}, "longitude": {"-180", "180"},
}

// A textRule is a rule about a string.
type textRule struct {
	pattern string // a regular expression of Go and JavaScript, for the schema
	format  string // the format in the schema
	phrase  string // the text after "a string"
	others  bool   // values of other types can satisfy the rule, too
}

var textRules = map[string]textRule{
	"alpha":           {pattern: "^[a-zA-Z]+$", phrase: "of letters a-z only"},
	"alphaspace":      {pattern: "^[a-zA-Z ]+$", phrase: "of letters a-z and spaces only"},
	"alphanum":        {pattern: "^[a-zA-Z0-9]+$", phrase: "of letters a-z and digits only"},
	"alphanumspace":   {pattern: "^[a-zA-Z0-9 ]+$", phrase: "of letters a-z, digits and spaces only"},
	"alphaunicode":    {pattern: `^\p{L}+$`, phrase: "of letters only"},
	"alphanumunicode": {pattern: `^[\p{L}\p{N}]+$`, phrase: "of letters and digits only"},
	"numeric":         {pattern: `^[-+]?[0-9]+(\.[0-9]+)?$`, phrase: "that is a number"},
	"number":          {pattern: "^[0-9]+$", phrase: "of digits only"},
	"hexadecimal":     {pattern: "^(0[xX])?[0-9a-fA-F]+$", phrase: "of hexadecimal digits"},
	"hexcolor":        {pattern: "^#([0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$", phrase: `that is a color such as "#ff8800"`},
	"e164":            {pattern: `^\+?[1-9][0-9]{7,14}$`, phrase: `that is a phone number such as "+4912345678"`},
	"base32":          {pattern: "^([A-Z2-7]{8})*([A-Z2-7]{2}={6}|[A-Z2-7]{4}={4}|[A-Z2-7]{5}={3}|[A-Z2-7]{7}=|[A-Z2-7]{8})$", phrase: "that is base32"},
	"base64":          {pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$", phrase: "that is base64"},
	"base64url":       {pattern: "^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=|[A-Za-z0-9_-]{4})$", phrase: "that is URL-safe base64"},
	"base64rawurl":    {pattern: "^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2,4})$", phrase: "that is URL-safe base64 without padding"},
	"uuid":            {pattern: "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", format: "uuid", phrase: "that is a UUID"},
	"uuid3":           {pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-3[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$", phrase: "that is a UUID of version 3"},
	"uuid4":           {pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", phrase: "that is a UUID of version 4"},
	"uuid5":           {pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", phrase: "that is a UUID of version 5"},
	"uuid7":           {pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", phrase: "that is a UUID of version 7"},
	"uuid_rfc4122":    {pattern: "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", format: "uuid", phrase: "that is a UUID"},
	"uuid3_rfc4122":   {pattern: "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-3[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", phrase: "that is a UUID of version 3"},
	"uuid4_rfc4122":   {pattern: "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$", phrase: "that is a UUID of version 4"},
	"uuid5_rfc4122":   {pattern: "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-5[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$", phrase: "that is a UUID of version 5"},
	"md4":             {pattern: "^[0-9a-f]{32}$", phrase: "of 32 hexadecimal digits"},
	"md5":             {pattern: "^[0-9a-f]{32}$", phrase: "of 32 hexadecimal digits"},
	"sha256":          {pattern: "^[0-9a-f]{64}$", phrase: "of 64 hexadecimal digits"},
	"sha384":          {pattern: "^[0-9a-f]{96}$", phrase: "of 96 hexadecimal digits"},
	"sha512":          {pattern: "^[0-9a-f]{128}$", phrase: "of 128 hexadecimal digits"},
	"ascii":           {pattern: `^[\x00-\x7F]*$`, phrase: "of ASCII characters only"},
	"printascii":      {pattern: `^[\x20-\x7E]*$`, phrase: "of printable ASCII characters only"},
	"ssn":             {pattern: "^[0-9]{3}[ -]?(0[1-9]|[1-9][0-9])[ -]?([1-9][0-9]{3}|[0-9][1-9][0-9]{2}|[0-9]{2}[1-9][0-9]|[0-9]{3}[1-9])$", phrase: "that is a social security number"},
	"btc_addr":        {phrase: "that is a Bitcoin address"},
	"eth_addr":        {pattern: "^0x[0-9a-fA-F]{40}$", phrase: "that is an Ethereum address"},
	"jwt":             {pattern: `^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$`, phrase: "that is a JWT"},
	"bic":             {pattern: "^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$", phrase: "that is a BIC"},
	"semver":          {pattern: `^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-((0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?(\+([0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*))?$`, phrase: `that is a version such as "1.2.3"`},
	"cve":             {pattern: "^CVE-(1999|2[0-9]{3})-(0[^0][0-9]{2}|0[0-9][^0][0-9]|0[0-9]{2}[^0]|[1-9][0-9]{3,})$", phrase: `that is a CVE such as "CVE-2024-1234"`},
	"mongodb":         {pattern: "^[a-f0-9]{24}$", phrase: "of 24 hexadecimal digits"},
	"ulid":            {pattern: "^[0-7][A-HJKMNP-TV-Za-hjkmnp-tv-z0-9]{25}$", phrase: "that is a ULID"},
	"ein":             {pattern: "^([0-9]{2}-[0-9]{7})$", phrase: "that is an EIN"},

	"email":            {format: "email", phrase: "that is an email address"},
	"url":              {format: "uri", phrase: `that is a URL such as "https://example.com/"`},
	"http_url":         {format: "uri", pattern: "^https?://", phrase: "that begins with http:// or https://"},
	"https_url":        {format: "uri", pattern: "^https://", phrase: "that begins with https://"},
	"uri":              {format: "uri-reference", phrase: "that is a URI"},
	"hostname":         {format: "hostname", phrase: "that is a host name"},
	"hostname_rfc1123": {format: "hostname", phrase: "that is a host name"},
	"fqdn":             {format: "hostname", phrase: `that is a domain name such as "www.example.com"`},
	"ipv4":             {format: "ipv4", phrase: "that is an IPv4 address"},
	"ipv6":             {format: "ipv6", phrase: "that is an IPv6 address"},

	"ip":                 {phrase: "that is an IP address"},
	"cidr":               {phrase: `that is a network such as "10.0.0.0/8"`},
	"cidrv4":             {phrase: `that is a network such as "10.0.0.0/8"`},
	"cidrv6":             {phrase: `that is a network such as "fd00::/8"`},
	"mac":                {phrase: "that is a MAC address"},
	"lowercase":          {phrase: "without upper case letters"},
	"uppercase":          {phrase: "without lower case letters"},
	"multibyte":          {phrase: "with a character beyond ASCII"},
	"json":               {phrase: "that is JSON"},
	"html":               {phrase: "that has HTML tags"},
	"datauri":            {phrase: "that is a data URI"},
	"isbn":               {phrase: "that is an ISBN"},
	"credit_card":        {phrase: "that is a credit card number"},
	"cron":               {phrase: `that is a cron schedule such as "0 5 * * *"`},
	"hostname_port":      {phrase: `that is a host and port such as "example.com:80"`},
	"timezone":           {phrase: `that is a time zone such as "Europe/Berlin"`},
	"datetime":           {}, // see [compiler.datetime]
	"boolean":            {phrase: `that is a bool such as "true"`, others: true},
	"duration":           {phrase: `that is a duration such as "1h30m"`, others: true},
	"iso3166_1_alpha2":   {phrase: `that is a country code such as "DE"`, others: true},
	"iso3166_1_alpha3":   {phrase: `that is a country code such as "DEU"`, others: true},
	"iso4217":            {phrase: `that is a currency code such as "EUR"`, others: true},
	"bcp47_language_tag": {phrase: `that is a language tag such as "en-US"`, others: true},
	"file":               {phrase: "that is a file that exists", others: true},
	"dir":                {phrase: "that is a directory that exists", others: true},
	"latitude":           {phrase: "that is a latitude", others: true},
	"longitude":          {phrase: "that is a longitude", others: true},
}

// An affixRule is a rule about a part of a string.
type affixRule struct {
	pattern func(part string) string // the pattern in the schema
	not     bool                     // the string must not have the part
	phrase  string                   // the text before the part
}

var affixes = map[string]affixRule{
	"startswith":    {pattern: beginning, phrase: "starting with "},
	"startsnotwith": {pattern: beginning, phrase: "not starting with ", not: true},
	"endswith":      {pattern: ending, phrase: "ending with "},
	"endsnotwith":   {pattern: ending, phrase: "not ending with ", not: true},
	"contains":      {pattern: regexp.QuoteMeta, phrase: "containing "},
	"containsrune":  {pattern: regexp.QuoteMeta, phrase: "containing "},
	"containsany":   {pattern: anyOf, phrase: "containing one of the characters "},
	"excludes":      {pattern: regexp.QuoteMeta, phrase: "not containing ", not: true},
	"excludesrune":  {pattern: regexp.QuoteMeta, phrase: "not containing ", not: true},
	"excludesall":   {pattern: anyOf, phrase: "without any of the characters ", not: true},
}

func beginning(part string) string { return "^" + regexp.QuoteMeta(part) }
func ending(part string) string    { return regexp.QuoteMeta(part) + "$" }

func anyOf(chars string) string {
	return "[" + strings.NewReplacer(`\`, `\\`, `]`, `\]`, `[`, `\[`, `^`, `\^`, `-`, `\-`).Replace(chars) + "]"
}

// fieldRules compare with another field. The validator checks them on the whole struct. The
// description has the text with the name of the other field.
var fieldRules = map[string]string{
	"eqfield": "Must equal %s.", "nefield": "Must not equal %s.",
	"gtfield": "Must be greater than %s.", "gtefield": "Must not be less than %s.",
	"ltfield": "Must be less than %s.", "ltefield": "Must not be greater than %s.",
	"fieldcontains": "Must contain the value of %s.", "fieldexcludes": "Must not contain the value of %s.",
	"eqcsfield": "", "necsfield": "", "gtcsfield": "", "gtecsfield": "", "ltcsfield": "", "ltecsfield": "",
	"postcode_iso3166_alpha2_field": "", "skip_unless": "", "validateFn": "",
}

// presenceTags require or exclude a member. The validator checks them.
var presenceTags = []string{
	"required_if", "required_unless", "required_with", "required_with_all", "required_without", "required_without_all",
	"excluded_if", "excluded_unless", "excluded_with", "excluded_with_all", "excluded_without", "excluded_without_all",
}

// validateTags returns the rules of validator/v10, which has no function for that.
var validateTags = sync.OnceValue(func() []string {
	return slices.Concat(presenceTags, slices.Sorted(maps.Keys(fieldRules)), strings.Fields(`
required omitempty omitnil omitzero structonly nostructlevel dive keys endkeys isdefault
len min max eq eq_ignore_case ne ne_ignore_case lt lte gt gte
alpha alphaspace alphanum alphanumspace alphaunicode alphanumunicode boolean numeric number hexadecimal hexcolor rgb rgba hsl hsla cmyk
e164 email url http_url https_url uri origin urn_rfc8141 urn_rfc2141 file filepath base32 base64 base64url base64rawurl
contains containsany containsrune excludes excludesall excludesrune startswith endswith startsnotwith endsnotwith
image mimetype isbn isbn10 isbn13 issn eth_addr eth_addr_checksum btc_addr btc_addr_bech32
uuid uuid3 uuid4 uuid5 uuid7 uuid_rfc4122 uuid3_rfc4122 uuid4_rfc4122 uuid5_rfc4122 ulid
md4 md5 sha256 sha384 sha512 ripemd128 ripemd160 tiger128 tiger160 tiger192
ascii printascii multibyte datauri latitude longitude ssn ipv4 ipv6 ip cidrv4 cidrv6 cidr
tcp4_addr tcp6_addr tcp_addr udp4_addr udp6_addr udp_addr ip4_addr ip6_addr ip_addr unix_addr uds_exists mac
hostname hostname_rfc1123 hostname_label fqdn unique oneof oneofci noneof noneofci html html_encoded url_encoded dir dirpath json jwt
hostname_port port enum lowercase uppercase datetime timezone
iso3166_1_alpha2 iso3166_1_alpha2_eu iso3166_1_alpha3 iso3166_1_alpha3_eu iso3166_1_alpha_numeric iso3166_1_alpha_numeric_eu iso3166_2
iso4217 iso4217_numeric bcp47_language_tag bcp47_strict_language_tag postcode_iso3166_alpha2 bic_iso_9362_2014 bic semver
dns_rfc1035_label credit_card cve luhn_checksum mongodb mongodb_connection_string cron spicedb ein duration
iscolor country_code eu_country_code`))
})

func isBuiltin(tag string) bool { return slices.Contains(validateTags(), tag) }

// isCross reports whether the rule compares with another field.
func isCross(tag string) bool {
	_, ok := fieldRules[tag]
	return ok
}
