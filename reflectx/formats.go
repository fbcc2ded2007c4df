package reflectx

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// formats are the formats that are enforced; others are for the reader.
var formats = map[string]func(string) bool{
	"email": isEmail, "uri": isURI, "uri-reference": isURIReference, "date": isDate, "date-time": isDateTime, "uuid": isUUID,
	"hostname": isHostname, "ipv4": isIPv4, "ipv6": isIPv6,
}

func isURIReference(s string) bool {
	_, err := url.Parse(s)
	return err == nil && !strings.Contains(s, `\\`)
}

func isUUID(s string) bool {
	re, err := compiled(textRules["uuid"].pattern)
	return err == nil && re.MatchString(s)
}

func isIPv4(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is4()
}

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
	} else if strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") || strings.Trim(local, letters+ciphers+".!#$%&'*+-/=?^_`{|}~") != "" {
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
	ciphers = "0123456789"
)

func isHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, letters+ciphers+"-") != "" {
			return false
		}
	}
	return len(s) <= 253
}
