// Signs URLs for a Nuthatch node, using only Go's standard library.
//
//	NUTHATCH_SIGNING_KEY=<secret> go run sign.go image <node> <URL> [<expires>]
//	NUTHATCH_SIGNING_KEY=<secret> go run sign.go site <name of the site> <URL> [<expires>]
//
// The secret is the part after the colon of a line in the node's --signing-key-file; <expires> is
// the time until which the URL is valid, in seconds since 1970.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// SignImage returns the address at which node (http://HOST:PORT) serves the image at url.
func SignImage(key, node, url, expires string) (string, error) {
	target, err := Normalised(url)
	if err != nil {
		return "", err
	}
	asked := strings.TrimRight(node, "/") + "/v1/image?url=" + queryValue(target)
	return asked + "&" + parameters(key, target, expires), nil
}

var printable = regexp.MustCompile(`^[!-"$-~]+$`)
var siteURL = regexp.MustCompile(`^https?://([^/?]*)(.*)$`)

// SignSite returns a URL of the site with this name in the node's settings; path and query are
// signed unchanged.
func SignSite(key, name, url, expires string) (string, error) {
	parts := siteURL.FindStringSubmatch(url)
	if parts == nil || !printable.MatchString(url) {
		return "", errors.New("not percent-encoded, or with a fragment: " + url)
	}
	host, rest := name, parts[2]
	if name == "*" {
		host = strings.TrimSuffix(strings.ToLower(parts[1]), ":80")
	}
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + parameters(key, "//"+host+rest, expires), nil
}

func parameters(key, target, expires string) string {
	code := hmac.New(sha256.New, []byte(key))
	code.Write([]byte("nuthatch-signed-url-v1\n" + target + "\n" + expires))
	signature := "signature=" + base64.RawURLEncoding.EncodeToString(code.Sum(nil))
	if expires == "" {
		return signature
	}
	return "expires=" + expires + "&" + signature
}

func queryValue(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

var controls = regexp.MustCompile(`[\x00-\x1f\x7f]`)
var absolute = regexp.MustCompile(`(?is)^(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$`)
var authorityForm = regexp.MustCompile(`^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]*))?$`)

// Normalised returns the URL under which the node stores the image.
func Normalised(url string) (string, error) {
	parts := absolute.FindStringSubmatch(url)
	if parts == nil || controls.MatchString(url) {
		return "", fmt.Errorf("not an absolute http or https URL: %q", url)
	}
	scheme := strings.ToLower(parts[1])
	authority, err := authorityOf(scheme, parts[2])
	if err != nil {
		return "", err
	}
	path, err := pathOf(parts[3])
	if err != nil {
		return "", err
	}
	query, err := escaped(parts[4])
	return scheme + "://" + authority + path + query, err
}

func authorityOf(scheme, authority string) (string, error) {
	parts := authorityForm.FindStringSubmatch(strings.ToLower(authority))
	if parts == nil {
		return "", errors.New("no host, or not in ASCII: " + authority)
	}
	host := strings.TrimSuffix(parts[1], ".")
	if strings.HasPrefix(host, "[") {
		address, err := netip.ParseAddr(host[1 : len(host)-1])
		if err != nil {
			return "", err
		}
		host = "[" + address.String() + "]"
	}
	port, _ := strconv.Atoi("0" + parts[2])
	if port == 0 || port == map[string]int{"http": 80, "https": 443}[scheme] {
		return host, nil
	}
	return fmt.Sprintf("%s:%d", host, port), nil
}

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-"

// escaped decodes unreserved characters, and percent-encodes characters that a URL cannot have.
func escaped(text string) (string, error) {
	var result strings.Builder
	for index := 0; index < len(text); index++ {
		letter := text[index]
		if letter == '%' {
			if index+3 > len(text) {
				return "", errors.New("% must be followed by two hexadecimal digits")
			}
			code, err := strconv.ParseUint(text[index+1:index+3], 16, 8)
			if err != nil {
				return "", err
			}
			index += 2
			letter = byte(code)
			if !strings.ContainsRune(unreserved, rune(letter)) {
				fmt.Fprintf(&result, "%%%02X", letter)
				continue
			}
		}
		if strings.IndexByte(unreserved+"!$&'()*+,;=:@/?", letter) >= 0 {
			result.WriteByte(letter)
		} else {
			fmt.Fprintf(&result, "%%%02X", letter)
		}
	}
	return result.String(), nil
}

// pathOf normalises the escapes and removes dot segments (RFC 3986 section 5.2.4).
func pathOf(path string) (string, error) {
	text, err := escaped(path)
	if err != nil {
		return "", err
	}
	segments := strings.Split(strings.TrimPrefix(text, "/"), "/")
	kept := []string{}
	for _, segment := range segments {
		if segment == ".." && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		} else if segment != "." && segment != ".." {
			kept = append(kept, segment)
		}
	}
	if last := segments[len(segments)-1]; last == "." || last == ".." {
		kept = append(kept, "")
	}
	return "/" + strings.Join(kept, "/"), nil
}

func main() {
	sign := map[string]func(key, place, url, expires string) (string, error){
		"image": SignImage, "site": SignSite,
	}
	if len(os.Args) < 4 || len(os.Args) > 5 || sign[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: sign image NODE URL [EXPIRES] | site NAME URL [EXPIRES]")
		os.Exit(2)
	}
	expires := strings.Join(os.Args[4:], "")
	signed, err := sign[os.Args[1]](os.Getenv("NUTHATCH_SIGNING_KEY"), os.Args[2], os.Args[3], expires)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(signed)
}
