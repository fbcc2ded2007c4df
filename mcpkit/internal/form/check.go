package form

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Check validates content, the answer to a form, by the keywords that the schema of a form may have
// (client/elicitation, "Requested Schema"). It ignores other keywords, and those with a value that
// they cannot have. The error is an [*reflectx.ArgumentError].
func Check(schema, content json.RawMessage) error {
	c := checker{whole: content}
	if c.hasType(schema, content) && jsonx.Kind(content) == '{' {
		c.members(schema, content)
	}
	if len(c.wrong.Violations) > 0 {
		return &c.wrong
	}
	return nil
}

// A checker collects what is wrong with an answer.
type checker struct {
	whole json.RawMessage
	path  []string // of the value that is being checked
	wrong reflectx.ArgumentError
}

func (c *checker) errorf(format string, args ...any) {
	c.wrong.Add(c.whole, c.path, "what the schema says: "+fmt.Sprintf(format, args...))
}

// at checks a member or an element.
func (c *checker) at(token string, schema, value json.RawMessage) {
	c.path = append(c.path, token)
	c.value(schema, value)
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) members(schema, content json.RawMessage) {
	var missing []string
	for name := range jsonx.Elements(jsonx.Member(schema, "required")) {
		if name := jsonx.String(name); jsonx.Member(content, name) == nil {
			missing = append(missing, "'"+name+"'")
		}
	}
	switch {
	case len(missing) == 1:
		c.errorf("missing property %s", missing[0])
	case len(missing) > 1:
		c.errorf("missing properties %s", strings.Join(missing, ", "))
	}
	properties := jsonx.Member(schema, "properties")
	for quoted, value := range jsonx.Members(content) {
		name := jsonx.String(quoted)
		if property := jsonx.Member(properties, name); property != nil {
			c.at(name, property, value)
		}
	}
}

// value checks one field, or one element of a list.
func (c *checker) value(schema, value json.RawMessage) {
	if !c.hasType(schema, value) || !c.isListed(schema, value) {
		return
	}
	switch jsonx.Kind(value) {
	case '"':
		text := jsonx.String(value)
		format := jsonx.String(jsonx.Member(schema, "format"))
		if valid := formats[format]; valid != nil && !valid(text) {
			c.errorf("'%s' is not valid %s", text, format)
			return
		}
		c.within(schema, "minLength", strconv.Itoa(utf8.RuneCountInString(text)), "maxLength")
	case '0':
		c.within(schema, "minimum", string(value), "maximum")
	case '[':
		n := 0
		items := jsonx.Member(schema, "items")
		for element := range jsonx.Elements(value) {
			if items != nil {
				c.at(strconv.Itoa(n), items, element)
			}
			n++
		}
		c.within(schema, "minItems", strconv.Itoa(n), "maxItems")
	}
}

// within compares a number with the limits that two keywords set.
func (c *checker) within(schema json.RawMessage, least, got, most string) {
	if limit := string(jsonx.Member(schema, least)); less(got, limit) {
		c.errorf("%s: got %s, want %s", least, got, limit)
	}
	if limit := string(jsonx.Member(schema, most)); less(limit, got) {
		c.errorf("%s: got %s, want %s", most, got, limit)
	}
}

// less compares JSON numbers. It returns false if one is not a number.
func less(a, b string) bool {
	x, err := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err == nil && err2 == nil {
		return x < y
	}
	f, ok := float(a)
	g, ok2 := float(b)
	return ok && ok2 && f < g
}

func float(number string) (float64, bool) {
	if jsonx.Kind([]byte(number)) != '0' {
		return 0, false
	}
	f, _ := strconv.ParseFloat(number, 64) // infinite if it is too large
	return f, true
}

var kinds = map[byte]string{'{': "object", '[': "array", '"': "string", '0': "number", 't': "boolean", 'f': "boolean", 'n': "null"}

// hasType checks the keyword type.
func (c *checker) hasType(schema, value json.RawMessage) bool {
	want, got := jsonx.String(jsonx.Member(schema, "type")), kinds[jsonx.Kind(value)]
	switch want {
	case got, "":
		return true
	case "integer":
		if f, ok := float(string(value)); ok && f == math.Trunc(f) {
			return true
		}
	case "object", "array", "string", "number", "boolean", "null":
	default:
		return true
	}
	c.errorf("got %s, want %s", got, want)
	return false
}

// isListed checks the keywords enum, oneOf and anyOf; the latter two list options with a const.
func (c *checker) isListed(schema, value json.RawMessage) bool {
	for _, keyword := range []string{"enum", "oneOf", "anyOf"} {
		list := jsonx.Member(schema, keyword)
		if jsonx.Kind(list) != '[' {
			continue
		}
		var words []string
		found := false
		for option := range jsonx.Elements(list) {
			if keyword != "enum" {
				option = jsonx.Member(option, "const")
			}
			found = found || option == nil || same(option, value)
			words = append(words, display(option))
		}
		if !found {
			want := strings.Join(words, ", ")
			if len(words) > 1 {
				want = "one of " + want
			}
			c.errorf("value must be %s", want)
			return false
		}
	}
	return true
}

// same reports whether two values without members and elements are equal.
func same(a, b json.RawMessage) bool {
	switch kind := jsonx.Kind(a); {
	case kind != jsonx.Kind(b):
		return false
	case kind == '"':
		return jsonx.String(a) == jsonx.String(b)
	case kind == '0':
		return !less(string(a), string(b)) && !less(string(b), string(a))
	}
	return string(a) == string(b)
}

func display(value json.RawMessage) string {
	if jsonx.Kind(value) == '"' {
		return "'" + jsonx.String(value) + "'"
	}
	return string(value)
}

// formats are checks of formFormats.
var formats = map[string]func(string) bool{"email": isEmail, "uri": isURI, "date": isDate, "date-time": isDateTime}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isDateTime reports whether s is a date-time of RFC 3339, which may have a leap second.
func isDateTime(s string) bool {
	s = strings.ToUpper(s)
	zone := s[max(len(s)-len("00:00"), 0):]
	if len(s) <= 19 || s[13] != ':' || s[19] == ',' || !strings.HasSuffix(s, "Z") && (zone[:2] > "23" || zone[3:] > "59") {
		return false // package time allows hours of one digit, commas, and zones 24 hours and 60 minutes away
	}
	if s[17:19] == "60" {
		t, err := time.Parse(time.RFC3339, s[:17]+"59"+s[19:])
		return err == nil && t.UTC().Hour() == 23 && t.UTC().Minute() == 59
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && (!strings.Contains(u.Hostname(), ":") || strings.Contains(u.Host, "[") && isIPv6(u.Hostname()))
}

func isIPv6(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is6() && addr.Zone() == ""
}

// isEmail reports whether s is an address of RFC 5321 in ASCII.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || len(s) > 254 || at > 64 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if quoted, ok := strings.CutPrefix(local, `"`); ok && strings.HasSuffix(quoted, `"`) {
		if strings.ContainsAny(quoted[:len(quoted)-1], `\"`) {
			return false
		}
	} else if strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") || strings.Trim(local, letters+digits+".!#$%&'*+-/=?^_`{|}~") != "" {
		return false
	}
	if literal, ok := strings.CutPrefix(domain, "["); ok && strings.HasSuffix(literal, "]") {
		literal = literal[:len(literal)-1]
		if six, ok := strings.CutPrefix(literal, "IPv6:"); ok {
			return isIPv6(six)
		}
		addr, err := netip.ParseAddr(literal)
		return err == nil && addr.Is4()
	}
	return isHostname(domain)
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

func isHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, letters+digits+"-") != "" {
			return false
		}
	}
	return len(s) <= 253
}
