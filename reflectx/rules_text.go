package reflectx

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/invopop/jsonschema"
)

// A textRule is a rule about a string: how the schema says it, and what a violation says is wanted.
type textRule struct {
	pattern string // exactly what the rule accepts
	format  string // roughly what the rule accepts, where no short pattern is exact
	phrase  string
}

// textRules are the rules about strings that JSON Schema can say. The patterns stay within what regular expressions
// of Go and of JavaScript have in common. Where there is a format only, the validator checks.
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
}

// charClasses are the rules that ask the same of every character, which a loop sees faster than a regular expression.
var charClasses = map[string]func(byte) bool{
	"alpha":         isLetter,
	"alphaspace":    func(c byte) bool { return isLetter(c) || c == ' ' },
	"alphanum":      func(c byte) bool { return isLetter(c) || isDigit(c) },
	"alphanumspace": func(c byte) bool { return isLetter(c) || isDigit(c) || c == ' ' },
	"number":        isDigit,
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func only(s string, class func(byte) bool) bool {
	for i := range len(s) {
		if !class(s[i]) {
			return false
		}
	}
	return true
}

// formatGuards refuse what the validator's rules accept and the published format does not: nothing may be accepted
// that a client was told to leave out.
var formatGuards = map[string]func(string) bool{
	"ipv4":          func(s string) bool { return !strings.Contains(s, ":") }, // ::ffff:192.0.2.1
	"uri-reference": func(s string) bool { return !strings.Contains(s, `\`) },
	"hostname":      isHostname,
	"email": func(s string) bool { // RFC 5321 sections 4.1.2 and 4.5.3.1; what goes beyond ASCII is idn-email
		local, domain, _ := strings.Cut(s, "@")
		return len(s) <= 254 && len(local) <= 64 && isHostname(domain) && strings.IndexFunc(s, func(r rune) bool { return r > 0x7F }) < 0
	},
}

// isHostname reports whether s is a host name (RFC 1123 section 2.1).
func isHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; c != '-' && !isDigit(c) && !isLetter(c) {
				return false
			}
		}
	}
	return true
}

// partial are the rules whose pattern does not say everything, so that the validator checks too.
var partial = []string{"http_url", "https_url"}

// phrases are what violations say of the rules that have no keyword.
var phrases = map[string]string{
	"ip": "that is an IP address", "cidr": `that is a network such as "10.0.0.0/8"`, "cidrv4": `that is a network such as "10.0.0.0/8"`,
	"cidrv6": `that is a network such as "fd00::/8"`, "mac": "that is a MAC address", "lowercase": "without upper case letters",
	"uppercase": "without lower case letters", "json": "that is JSON", "timezone": `that is a time zone such as "Europe/Berlin"`,
	"credit_card": "that is a credit card number", "cron": `that is a cron schedule such as "0 5 * * *"`,
	"hostname_port": `that is a host and port such as "example.com:80"`, "datauri": "that is a data URI", "html": "that has HTML tags",
	"boolean": `that is a bool such as "true"`, "duration": `that is a duration such as "1h30m"`,
	"iso3166_1_alpha2": `that is a country code such as "DE"`, "iso3166_1_alpha3": `that is a country code such as "DEU"`,
	"iso4217": `that is a currency code such as "EUR"`, "bcp47_language_tag": `that is a language tag such as "en-US"`,
	"isbn": "that is an ISBN", "file": "that is a file that exists", "dir": "that is a directory that exists",
	"latitude": "that is a latitude", "longitude": "that is a longitude", "multibyte": "with a character beyond ASCII",
}

// hasKeyword reports whether the schema says something of the rule, so that the description need not.
func hasKeyword(tag string) bool {
	_, ok := textRules[tag]
	return ok && tag != "btc_addr"
}

// stringsOnly reports whether the rule makes sense for text alone. The validator takes any type for most of these,
// and then compares with what reflect prints.
func stringsOnly(tag string) bool {
	if _, ok := textRules[tag]; ok {
		return true
	}
	if _, ok := affixes[tag]; ok {
		return true
	}
	switch tag {
	case "containsrune", "excludesrune", "containsany", "excludesall", "ip", "cidr", "cidrv4", "cidrv6", "mac", "json", "datetime",
		"lowercase", "uppercase", "multibyte", "credit_card", "cron", "html", "datauri", "isbn", "timezone", "hostname_port":
		return true
	}
	return false
}

// pattern compiles the rules of textRules, and those that end in a format.
func (c *compiler) pattern(n *node, r rule) bool {
	if r.tag == "datetime" {
		c.datetime(n, r)
		return true
	}
	t, ok := textRules[r.tag]
	if !ok || t.pattern == "" && t.format == "" {
		return false
	}
	if t.format != "" {
		n.kw.Format = t.format
	}
	if t.pattern != "" {
		re, err := compiled(t.pattern)
		if err != nil {
			panic(err) // a mistake in the table above
		}
		if t.format != "uuid" { // the format says the same
			match(n.kw, t.pattern)
		}
		if class := charClasses[r.tag]; class != nil && fast {
			n.strs = append(n.strs, func(s string) bool { return s != "" && only(s, class) })
		} else {
			n.strs = append(n.strs, re.MatchString)
		}
	}
	if guard := formatGuards[t.format]; guard != nil {
		n.strs = append(n.strs, guard)
	}
	if t.pattern == "" || slices.Contains(partial, r.tag) {
		c.residual(n, r)
		return true
	}
	n.phrases = append(n.phrases, t.phrase)
	return true
}

// datetime compiles a layout of package time.
func (c *compiler) datetime(n *node, r rule) {
	layout := r.param
	switch layout {
	case time.DateOnly:
		n.kw.Format = "date"
	case time.RFC3339:
		n.kw.Format = "date-time"
	default:
		n.notes = append(n.notes, "Written like "+layout+".")
	}
	n.phrases = append(n.phrases, "written like "+quoteJSON(layout))
	n.strs = append(n.strs, func(s string) bool {
		_, err := time.Parse(layout, s)
		return err == nil
	})
}

// An affixRule is a rule about a part of a string.
type affixRule struct {
	ok      func(s, part string) bool
	pattern func(quoted string) string
	not     bool // the schema refuses what the pattern matches
	phrase  string
}

var affixes = map[string]affixRule{
	"startswith":    {strings.HasPrefix, func(q string) string { return "^" + q }, false, "starting with "},
	"endswith":      {strings.HasSuffix, func(q string) string { return q + "$" }, false, "ending with "},
	"contains":      {strings.Contains, func(q string) string { return q }, false, "containing "},
	"startsnotwith": {strings.HasPrefix, func(q string) string { return "^" + q }, true, "not starting with "},
	"endsnotwith":   {strings.HasSuffix, func(q string) string { return q + "$" }, true, "not ending with "},
	"excludes":      {strings.Contains, func(q string) string { return q }, true, "not containing "},
	"containsrune":  {strings.Contains, func(q string) string { return q }, false, "containing "},
	"excludesrune":  {strings.Contains, func(q string) string { return q }, true, "not containing "},
	"containsany":   {strings.ContainsAny, func(q string) string { return "[" + q + "]" }, false, "containing one of the characters "},
	"excludesall":   {strings.ContainsAny, func(q string) string { return "[" + q + "]" }, true, "without any of the characters "},
}

// affix compiles the rules of affixes.
func (c *compiler) affix(n *node, r rule) bool {
	a, ok := affixes[r.tag]
	if !ok {
		return false
	}
	part := r.param
	if part == "" {
		c.errorf("rule %q lacks its parameter; write %s=text", r.tag, r.tag)
		return true
	}
	if strings.HasSuffix(r.tag, "rune") {
		part = string([]rune(part)[:1])
	}
	quoted := regexp.QuoteMeta(part)
	if a.phrase == affixes["containsany"].phrase || a.phrase == affixes["excludesall"].phrase {
		quoted = strings.NewReplacer(`\`, `\\`, `]`, `\]`, `[`, `\[`, `^`, `\^`, `-`, `\-`).Replace(part)
	}
	pattern := a.pattern(quoted)
	if a.not {
		n.strs = append(n.strs, func(s string) bool { return !a.ok(s, part) })
		refuse(n.kw, &jsonschema.Schema{Pattern: pattern})
	} else {
		n.strs = append(n.strs, func(s string) bool { return a.ok(s, part) })
		match(n.kw, pattern)
	}
	n.phrases = append(n.phrases, a.phrase+quoteJSON(part))
	return true
}

// numeric compiles the rules that have a meaning of their own for numbers.
func (c *compiler) numeric(n *node, r rule) bool {
	number := n.shape == shapeInt || n.shape == shapeUint || n.shape == shapeFloat
	switch r.tag {
	case "numeric", "number":
		return number // every number is one
	case "boolean":
		return n.shape == shapeBool
	case "port":
		return number && c.between(n, "1", "65535")
	case "latitude":
		return number && c.between(n, "-90", "90")
	case "longitude":
		return number && c.between(n, "-180", "180")
	}
	return false
}

func (c *compiler) between(n *node, low, high json.Number) bool {
	if n.shape == shapeUint && low[0] == '-' {
		low = "0"
	}
	c.bound(n, rule{tag: "min", param: string(low)})
	c.bound(n, rule{tag: "max", param: string(high)})
	return true
}

// validateTags are the words of validator/v10, which does not list them itself.
var validateTags = sync.OnceValue(func() []string {
	return slices.Concat(presenceTags, crossTags, strings.Fields(`
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
hostname_port port lowercase uppercase datetime timezone
iso3166_1_alpha2 iso3166_1_alpha2_eu iso3166_1_alpha3 iso3166_1_alpha3_eu iso3166_1_alpha_numeric iso3166_1_alpha_numeric_eu iso3166_2
iso4217 iso4217_numeric bcp47_language_tag bcp47_strict_language_tag postcode_iso3166_alpha2 bic_iso_9362_2014 bic semver
dns_rfc1035_label credit_card cve luhn_checksum mongodb mongodb_connection_string cron spicedb ein duration
iscolor country_code eu_country_code`))
})
